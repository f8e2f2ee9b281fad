// Why a program with headers before its objects died in libc's free.
#pragma once

#include <ucontext.h>

namespace assay {

// Whether the signal came in libc's free or realloc, which were given an object with a header: by code that found
// them otherwise than by their names (dlsym, a library that was opened with RTLD_DEEPBIND, __libc_free).
bool died_freeing_unseen(const ucontext_t &context);

} // namespace assay
