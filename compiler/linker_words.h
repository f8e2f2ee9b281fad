// The words of a command line that the compiler hands to the linker: those of -Wl, and -Xlinker.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::compiler {

class LinkerWords {
public:
  // An argument, and the one after it, which is a word if this one is -Xlinker. Others have none.
  void read(std::string_view argument, std::string_view next);

  // Whether the result is linked again (-r).
  bool relinks() const;
  // Whether there is an archive among them, so that there is something to link.
  bool names_archive() const;
  // Whether they keep the executable from exporting what the runtime's archive has. Reads version scripts.
  bool hides_runtime() const;

private:
  std::vector<std::string> words_;
};

} // namespace assay::compiler
