// What compilers call for structures that are copied or set. Those of libc are the program's: moved, and traced.

#include <stddef.h>

extern "C" [[gnu::visibility("hidden")]] void *memcpy(void *to, const void *from, size_t bytes) {
  void *at = to;
  asm volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(bytes) : : "memory");
  return to;
}

extern "C" [[gnu::visibility("hidden")]] void *memset(void *to, int value, size_t bytes) {
  void *at = to;
  asm volatile("rep stosb" : "+D"(at), "+c"(bytes) : "a"(value) : "memory");
  return to;
}
