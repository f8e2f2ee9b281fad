// The one interposer: which functions stand behind ours, and how to reach them.
#pragma once

#include <stddef.h>

struct sigaction;

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

namespace assay {

struct RealFunctions {
#define ASSAY_REAL(symbol, field, result, parameters) result(*field) parameters;
#include "runtime/core/interpose.def"
};

// Next in the lookup order after us: libc's, or those of an allocator that was linked or preloaded.
// Filled by find_real_functions(); before that, all null.
extern constinit RealFunctions real;

// Idempotent; may be called by the first malloc of the process, before any initializer has run.
void find_real_functions();

} // namespace assay
