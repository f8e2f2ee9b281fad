// The control page of this process (abi/control.h): progress out, requests in.
#pragma once

#include "abi/control.h"

namespace assay {

class ControlPage {
public:
  // Makes and maps the file. Without one the program runs on; only `assay snapshot` does not work.
  void create(const char *path);
  void remove(const char *path);
  bool may_remove(const char *path) const; // not after chroot, or as another user
  // The request that is waiting, or ASSAY_REQUEST_NONE. answer() is for this one: what is asked meanwhile still waits.
  uint64_t pending();
  void answer(uint64_t answer);
  void publish(const AssayControl &progress); // elapsed_us and what follows it
  void reset_in_child();                      // in the child of a fork

private:
  AssayControl *page_ = nullptr;
  uint64_t seen_sequence_ = 0;
};

} // namespace assay
