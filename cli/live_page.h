// The control page of a running program (abi/control.h), seen from the tool.
#pragma once

#include "abi/control.h"

#include <string>

namespace cli {

// Maps the page of a process for reading and writing. Throws Failure if it is not one, is of
// another version, or may not be opened.
class LivePage {
public:
  explicit LivePage(const std::string &path);
  ~LivePage();
  LivePage(const LivePage &) = delete;
  LivePage &operator=(const LivePage &) = delete;

  const std::string &path() const { return path_; }
  AssayControl read() const;

  // Asks for something (ASSAY_REQUEST_*) and waits for the answer at most `seconds`. Throws Failure
  // when there is none, or when the answer is that it failed.
  void ask(uint64_t request, unsigned seconds);

private:
  std::string path_;
  AssayControl *page_ = nullptr;
};

// The page that process `pid` has mapped. Throws Failure saying why there is none.
std::string live_page_of(int pid);

} // namespace cli
