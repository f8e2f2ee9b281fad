// dlsym(RTLD_NEXT): what the program would have called without us, whoever provides it.

#include "runtime/core/interpose.h"

#include <dlfcn.h>

namespace assay {

constinit RealFunctions real = {};

void find_real_functions() {
  if (real.free)
    return;
#define ASSAY_REAL(symbol, field, result, parameters)                                              \
  real.field = reinterpret_cast<result(*) parameters>(dlsym(RTLD_NEXT, symbol));
#include "runtime/core/interpose.def"
}

} // namespace assay
