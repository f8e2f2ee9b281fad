/* assay/annotate.h: what a program can tell Assay about itself. C99 and C++; found by assay-cc and
 * assay-c++ without an -I. In a program that is not instrumented every function is empty.
 *
 *   assay_mark("load");                       phases get names
 *   assay_event("cache miss", bytes);         counted by name and call stack, weights add up
 *   assay_dump();                             the profile is complete up to here
 *   assay_reset();                            forget what was measured so far (warm-up)
 *
 * An allocator of the program's own, described so that its objects appear like malloc's, at the call
 * stack of assay_pool_allocate:
 *
 *   assay_register_pool(arena, "strings");    any address that stays the same stands for the pool
 *   assay_pool_memory(arena, slab);           slab is from malloc and is no object itself
 *   assay_pool_allocate(arena, p, size);      handed out
 *   assay_pool_free(arena, p);                taken back
 *   assay_pool_clear(arena);                  all are taken back at once
 *   assay_unregister_pool(arena);             the same, and the pool is gone
 *
 * Objects that share a 64-byte block share its access counter: the first to end takes what was
 * counted, so that sums are right and whose they are is not. A pool whose objects begin on multiples of 64 is counted exactly.
 *
 * All functions may be called from any thread; none allocates with malloc, waits or changes errno;
 * names are copied. In a signal handler that interrupted Assay itself they do nothing.
 *
 * -DASSAY_ANNOTATE: the annotations also work in a program that was not built with assay-cc, when it
 * is run by `assay run --preload`; of `assay trace record --start-at load`, the mark "load". It must be a PIE, as compilers
 * build by default: the linker of another executable leaves the calls out.
 */
#ifndef ASSAY_ANNOTATE_H
#define ASSAY_ANNOTATE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__ASSAY__) || defined(ASSAY_ANNOTATE)
#ifdef __cplusplus
extern "C" {
#endif
/* Weak, so that the program links and runs without Assay's runtime too. */
#define ASSAY_HOOK_ __attribute__((weak, visibility("default")))
ASSAY_HOOK_ void __assay_mark(const char *name);
ASSAY_HOOK_ void __assay_event(const char *name, uint64_t weight);
ASSAY_HOOK_ void __assay_dump(void);
ASSAY_HOOK_ void __assay_reset(void);
ASSAY_HOOK_ void __assay_register_pool(const void *pool, const char *name);
ASSAY_HOOK_ void __assay_pool_memory(const void *pool, const void *block);
ASSAY_HOOK_ void __assay_pool_allocate(const void *pool, const void *object, uint64_t bytes);
ASSAY_HOOK_ void __assay_pool_free(const void *pool, const void *object);
ASSAY_HOOK_ void __assay_pool_clear(const void *pool);
ASSAY_HOOK_ void __assay_unregister_pool(const void *pool);
#undef ASSAY_HOOK_
#ifdef __cplusplus
}
#endif
#define ASSAY_CALL_(hook, arguments)                                                               \
  do {                                                                                             \
    if (hook)                                                                                      \
      hook arguments;                                                                              \
  } while (0)
#else
#define ASSAY_CALL_(hook, arguments) (void)0
#endif

/* Inlined always, so that call stacks begin at the caller. */
#define ASSAY_INLINE_ static inline __attribute__((always_inline, unused))

ASSAY_INLINE_ void assay_mark(const char *name) {
  (void)name;
  ASSAY_CALL_(__assay_mark, (name));
}
ASSAY_INLINE_ void assay_event(const char *name, uint64_t weight) {
  (void)name, (void)weight;
  ASSAY_CALL_(__assay_event, (name, weight));
}
ASSAY_INLINE_ void assay_dump(void) {
  ASSAY_CALL_(__assay_dump, ());
}
ASSAY_INLINE_ void assay_reset(void) {
  ASSAY_CALL_(__assay_reset, ());
}
ASSAY_INLINE_ void assay_register_pool(const void *pool, const char *name) {
  (void)pool, (void)name;
  ASSAY_CALL_(__assay_register_pool, (pool, name));
}
ASSAY_INLINE_ void assay_pool_memory(const void *pool, const void *block) {
  (void)pool, (void)block;
  ASSAY_CALL_(__assay_pool_memory, (pool, block));
}
ASSAY_INLINE_ void assay_pool_allocate(const void *pool, const void *object, size_t bytes) {
  (void)pool, (void)object, (void)bytes;
  ASSAY_CALL_(__assay_pool_allocate, (pool, object, bytes));
}
ASSAY_INLINE_ void assay_pool_free(const void *pool, const void *object) {
  (void)pool, (void)object;
  ASSAY_CALL_(__assay_pool_free, (pool, object));
}
ASSAY_INLINE_ void assay_pool_clear(const void *pool) {
  (void)pool;
  ASSAY_CALL_(__assay_pool_clear, (pool));
}
ASSAY_INLINE_ void assay_unregister_pool(const void *pool) {
  (void)pool;
  ASSAY_CALL_(__assay_unregister_pool, (pool));
}

#undef ASSAY_INLINE_
#undef ASSAY_CALL_
#endif
