// The beginning, before all other constructors (-z initfirst): no code of the program has run, none of its threads exists, and the only
// frames on the stack are the loader's, which is never moved.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/syscall.h"

#include <dlfcn.h>
#include <stddef.h>

namespace assay::relocated {

AssayTraceRing *ring;

void find_real_functions();

namespace {

const char *environment(char **envp, const char *name) {
  for (; envp && *envp; envp++) {
    size_t n = 0;
    while (name[n] && (*envp)[n] == name[n])
      n++;
    if (!name[n] && (*envp)[n] == '=')
      return *envp + n + 1;
  }
  return nullptr;
}

bool map_ring(const char *path) {
  const long file = sys::open(path, O_RDWR);
  if (sys::failed(file))
    return false;
  const long at = sys::map(nullptr, ASSAY_RING_BYTES, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_NORESERVE, (int)file);
  sys::close(file);
  if (sys::failed(at))
    return false;
  auto *mapped = (AssayTraceRing *)at;
  if (__builtin_memcmp(mapped->magic, ASSAY_RING_MAGIC, sizeof mapped->magic) != 0 ||
      mapped->version != ASSAY_RING_VERSION || mapped->bytes != ASSAY_RING_BYTES) {
    sys::unmap(mapped, ASSAY_RING_BYTES);
    return false;
  }
  sys::advise(mapped, ASSAY_RING_BYTES, MADV_DONTDUMP);
  ring = mapped;
  return true;
}

[[gnu::constructor]] void begin(int, char **, char **envp) {
  const char *path = environment(envp, ASSAY_RING_ENVIRONMENT);
  if (!path)
    return;
  find_real_functions();
  if (!map_ring(path)) {
    say("what `assay trace` shares with this program cannot be opened, so it is not traced; run it "
        "as the same user, with /proc mounted");
    return;
  }
  begin_streams();
  move_modules();
  follow_loader();
}

} // namespace

void say(const char *text) {
  char line[512];
  size_t n = 0;
  const char *parts[] = {"assay: ", text, "\n"};
  for (const char *part : parts)
    for (; *part && n < sizeof line; part++)
      line[n++] = *part;
  sys::write(2, line, n);
}

} // namespace assay::relocated
