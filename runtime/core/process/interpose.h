// How functions that stand in front of libc's are defined.
#pragma once

#include "runtime/core/system/real_functions.h"

// How a function of abi/interposed.def is defined. Where its own name is the program's (a static
// link, or a malloc of the program's own), the linker's --wrap leads here.
//
// Weak: a program that defines one of them itself links, and its own is called. If that is malloc, it is told what to
// do.
#define ASSAY_EXPORT extern "C" __attribute__((visibility("default"), weak))
#ifdef ASSAY_WRAP
#define ASSAY_NAME(function) __wrap_##function
#else
#define ASSAY_NAME(function) function
#endif
