// Ordinarily by dlsym(RTLD_NEXT): what the program would have called without us, whoever provides it.
// With --wrap by the names that the linker gives them; then libstdc++'s operators are not to be had,
// and what must throw throws by itself (interpose_new.cc).

#include "runtime/core/system/real_functions.h"

#include <dlfcn.h>
#include <stdlib.h>

#ifdef ASSAY_WRAP
#define ASSAY_REAL(symbol, field, result, parameters) extern "C" result __real_##symbol parameters;
#define ASSAY_REAL_WEAK(symbol, field, result, parameters)                                         \
  extern "C" __attribute__((weak)) result __real_##symbol parameters;
#define ASSAY_REAL_CXX(symbol, field, result, parameters)
#include "runtime/core/system/real_functions.def"
extern "C" __attribute__((weak)) const char __assay_own_malloc; // defined by the driver, or absent
#endif

namespace assay {

constinit RealFunctions real = {};

namespace {
constinit bool looking = false;
}

bool is_resolving_functions() {
  return looking;
}

void find_real_functions() {
  if (real.free || looking)
    return;
  looking = true;
#ifdef ASSAY_WRAP
#define ASSAY_REAL(symbol, field, result, parameters) real.field = __real_##symbol;
#define ASSAY_REAL_WEAK ASSAY_REAL
#define ASSAY_REAL_CXX(symbol, field, result, parameters)
#else
#define ASSAY_REAL(symbol, field, result, parameters)                                              \
  real.field = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, #symbol));
#define ASSAY_REAL_WEAK ASSAY_REAL
#define ASSAY_REAL_CXX ASSAY_REAL
#endif
#include "runtime/core/system/real_functions.def"
  looking = false;
}

// Ours, whoever defines malloc for the program.
extern "C" void *assay_malloc(size_t);
extern "C" void assay_free(void *);

#ifdef ASSAY_WRAP
bool is_interposed() {
  return true;
}
bool has_own_malloc() {
  return &__assay_own_malloc != nullptr;
}
#else
bool is_interposed() {
  return dlsym(RTLD_DEFAULT, "malloc") == (void *)assay_malloc &&
         dlsym(RTLD_DEFAULT, "free") == (void *)assay_free;
}
bool has_own_malloc() {
  return false;
}
#endif

} // namespace assay
