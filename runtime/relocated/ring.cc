// What the process shares with the tool (abi/trace_ring.h), mapped at its start.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/preloaded.h"
#include "runtime/core/system/syscall.h"

#include <stddef.h>

namespace assay::relocated {

AssayTraceRing *ring;

namespace {

bool contains(const char *text, const char *part) {
  for (; text && *text; text++) {
    size_t n = 0;
    while (part[n] && text[n] == part[n])
      n++;
    if (!part[n])
      return true;
  }
  return false;
}

// Why it could not be mapped; nullptr if it was.
const char *map_ring(const char *path) {
  constexpr const char *kNotOpened =
      "what `assay trace` shares with this program cannot be opened, so it is not traced; run it "
      "as the same user, with /proc mounted as the tool has it";
  const long file = sys::open(path, O_RDWR);
  if (sys::failed(file))
    return kNotOpened;
  const long at = sys::map(nullptr, ASSAY_RING_BYTES, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_NORESERVE, (int)file);
  sys::close(file);
  if (sys::failed(at))
    return "there are no addresses for the 1 GiB that `assay trace` shares with this program, so "
           "it is not traced; run it without `ulimit -v`";
  auto *mapped = (AssayTraceRing *)at;
  if (__builtin_memcmp(mapped->magic, ASSAY_RING_MAGIC, sizeof mapped->magic) != 0 ||
      mapped->version != ASSAY_RING_VERSION || mapped->bytes != ASSAY_RING_BYTES) {
    sys::unmap(mapped, ASSAY_RING_BYTES);
    return "`assay trace` is of another version than what is in this program, so it is not traced; "
           "install one version, and write static executables again (assay trace instrument)";
  }
  ring = mapped;
  return nullptr;
}

} // namespace

bool open_ring(char **environment) {
  const char *path = environment_of(environment, ASSAY_RING_ENVIRONMENT);
  if (!path)
    return false;
  const char *why = contains(environment_of(environment, "LD_PRELOAD"), "vgpreload_core")
                        ? "Valgrind executes this program's code in its own way, so it is not "
                          "traced; run it without Valgrind"
                        : map_ring(path);
  if (why)
    say(why);
  return ring != nullptr;
}

void say(const char *text) {
  say_line(text);
}

} // namespace assay::relocated
