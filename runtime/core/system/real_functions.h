// The functions that stand behind ours, and how they are reached.
#pragma once

#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stddef.h>
#include <sys/select.h>

struct epoll_event;
struct pollfd;

namespace assay {

struct RealFunctions {
#define ASSAY_REAL(symbol, field, result, parameters) result(*field) parameters;
#define ASSAY_REAL_WEAK ASSAY_REAL
#include "runtime/core/system/real_functions.def"
};

// Next in the lookup order after us: libc's, or those of an allocator that was linked or preloaded;
// with --wrap, those that the program would have called without us.
// Filled by find_real_functions(); before that, all null.
extern constinit RealFunctions real;

// Idempotent; may be called by the first malloc of the process, before any initializer has run.
void find_real_functions();

// While functions are looked for: dlsym allocates then, a message for each function that is not
// there. At the end these are forgotten: they are no errors of the program's, and dlerror() says
// nothing of them.
class ResolvingFunctions {
public:
  ResolvingFunctions();
  ~ResolvingFunctions();
  ResolvingFunctions(const ResolvingFunctions &) = delete;
  ResolvingFunctions &operator=(const ResolvingFunctions &) = delete;
};
bool is_resolving_functions();

// Do calls of the program's malloc come here? Asked once, where the runtime begins: if not, the
// functions behind ours become the program's, because its free ends what strdup(), operator new and
// their like have made.
bool is_interposed();

// Does the program bring a malloc of its own? Then calls from shared objects do not come here, and a
// block may meet the allocator's own free: it must be the allocator's own block.
bool has_own_malloc();

} // namespace assay
