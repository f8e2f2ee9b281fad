// The words that execl and its kin are given one by one, as the array that execv takes. libc's own
// calls of execve do not come through ours.
#pragma once

#include <stdarg.h>
#include <stddef.h>

namespace assay {

// How many words were given, with the null that ends them. Leaves `arguments` as they are.
inline size_t count_arguments(const char *first, va_list arguments) {
  va_list copy;
  va_copy(copy, arguments);
  size_t count = 1;
  for (const char *word = first; word; word = va_arg(copy, const char *))
    count++;
  va_end(copy);
  return count;
}

// `argv` has room for count_arguments(). What stands behind the null, of execle the environment, is
// next in `arguments`.
inline void take_arguments(char **argv, const char *first, va_list arguments) {
  for (*argv = (char *)first; *argv; *argv = va_arg(arguments, char *))
    argv++;
}

} // namespace assay

// Declares `argv`, the words from `first` on, as an array on the stack of the function that was given them, and
// `arguments`, which are at what follows; va_end is left to it.
#define ASSAY_EXEC_ARGUMENTS(argv, first, arguments)                                               \
  va_list arguments;                                                                               \
  va_start(arguments, first);                                                                      \
  char **argv =                                                                                    \
      (char **)__builtin_alloca(assay::count_arguments(first, arguments) * sizeof(char *));        \
  assay::take_arguments(argv, first, arguments)
