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

struct Loaded {
  const char *path;
  uint64_t bias;
  const ElfW(Phdr) * headers;
  uint32_t count;
};
constexpr uint32_t kMostLoaded = 512;
Loaded loaded[kMostLoaded];
uint32_t loaded_count;

// All but ourselves; the tool knows the loader and the kernel's page.
int note_module(dl_phdr_info *info, size_t, void *) {
  for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (uint64_t)&note_module - begin < segment.p_memsz)
      return 0;
  }
  if (loaded_count < kMostLoaded)
    loaded[loaded_count++] = {info->dlpi_name, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
  return 0;
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
}

} // namespace

void move_modules() {
  loaded_count = 0;
  dl_iterate_phdr(note_module, nullptr);
  for (uint32_t i = 0; i < loaded_count; i++)
    move_module(loaded[i].path, loaded[i].bias, loaded[i].headers, loaded[i].count);
}

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
