// A mapped file and not a signal or a socket: signals interrupt the program's system calls, sockets
// show up in it. The file is sparse, one page, and gone after an ordinary end.

#include "runtime/core/system/control.h"

#include "abi/version.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay {

void ControlPage::create(const char *path) {
  if (sys::file_size_limit() < kPage)
    return;
  long fd = sys::open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
  if (sys::failed(fd))
    return;
  // Room for the page is reserved now: writing to a hole of a full disk would be a SIGBUS.
  if (!sys::failed(sys::call(SYS_fallocate, fd, 0, 0, kPage))) {
    long at = sys::map(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    if (!sys::failed(at)) {
      page_ = (AssayControl *)at;
      page_->version = ASSAY_ABI_VERSION;
      page_->pid = sys::process_id();
      __atomic_store_n(&page_->magic, ASSAY_CONTROL_MAGIC, __ATOMIC_RELEASE);
    }
  }
  sys::close(fd);
  if (!page_)
    sys::unlink(path);
}

bool ControlPage::may_remove(const char *path) const {
  return !page_ || !sys::failed(sys::call(SYS_faccessat, AT_FDCWD, (long)path, W_OK));
}

void ControlPage::remove(const char *path) {
  if (page_)
    sys::unlink(path);
}

uint64_t ControlPage::pending() {
  if (!page_)
    return ASSAY_REQUEST_NONE;
  seen_sequence_ = __atomic_load_n(&page_->request_sequence, __ATOMIC_ACQUIRE);
  return seen_sequence_ == page_->answer_sequence ? (uint64_t)ASSAY_REQUEST_NONE : page_->request;
}

void ControlPage::answer(uint64_t answer) {
  page_->answer = answer;
  __atomic_store_n(&page_->answer_sequence, seen_sequence_, __ATOMIC_RELEASE);
}

void ControlPage::publish(const AssayControl &progress) {
  if (!page_)
    return;
#define ASSAY_PUT(field) __atomic_store_n(&page_->field, progress.field, __ATOMIC_RELAXED)
  ASSAY_PUT(elapsed_us);
  ASSAY_PUT(allocations);
  ASSAY_PUT(live_bytes);
  ASSAY_PUT(peak_bytes);
  ASSAY_PUT(contexts);
  ASSAY_PUT(profile_bytes);
#undef ASSAY_PUT
}

void ControlPage::reset_in_child() {
  if (page_)
    sys::unmap(page_, kPage);
  page_ = nullptr;
}

} // namespace assay
