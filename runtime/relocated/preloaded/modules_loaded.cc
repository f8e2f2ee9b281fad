// Modules come with the program, and by dlopen. The loader calls an empty function whenever it has
// mapped some or taken some away, for debuggers to stop there; it is overwritten with a jump to us.
// There the new ones lie where they will be, and none of their code has run. The loader's lock is
// held, so this happens one thread at a time.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

#include <stddef.h>

namespace assay::relocated {

int iterate_loaded(int (*visit)(dl_phdr_info *, size_t, void *));

namespace {

struct Loaded {
  uint64_t name; // hash of the path
  const char *path;
  uint64_t bias;
  const ElfW(Phdr) * headers;
  uint32_t count;
};
struct Seen {
  uint64_t name, bias;
  const MovedModule *module; // null: it is not moved
  bool is_loaded;
};
constexpr uint32_t kMaxLoaded = 1024;
Loaded loaded[kMaxLoaded];
uint32_t loaded_count;
Seen seen[kMaxLoaded];
uint32_t seen_count;

uint64_t hash_of(const char *text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (; *text; text++)
    hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
  return hash;
}

// All but ourselves; the tool knows the loader and the kernel's page.
int note_module(dl_phdr_info *info, size_t, void *) {
  for (uint32_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) &segment = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (uint64_t)&note_module - begin < segment.p_memsz)
      return 0;
  }
  if (loaded_count < kMaxLoaded)
    loaded[loaded_count++] = {hash_of(info->dlpi_name), info->dlpi_name, info->dlpi_addr,
                              info->dlpi_phdr, info->dlpi_phnum};
  return 0;
}

bool is_still_loaded(const Seen &module) {
  for (uint32_t i = 0; i < loaded_count; i++)
    if (loaded[i].name == module.name && loaded[i].bias == module.bias)
      return true;
  return false;
}

void look_at(const Loaded &module) {
  for (uint32_t i = 0; i < seen_count; i++) {
    if (seen[i].name != module.name)
      continue;
    if (seen[i].bias != module.bias) { // a trace knows one place of a file
      if (seen[i].module && !seen[i].is_loaded)
        say("a file was closed and opened again at another place; from then on it is not traced");
      seen[i].module = nullptr;
      return;
    }
    if (!seen[i].is_loaded && seen[i].module)
      redirect(*seen[i].module, module.headers, module.count);
    seen[i].is_loaded = true;
    return;
  }
  if (seen_count == kMaxLoaded)
    return;
  seen[seen_count++] = {module.name, module.bias,
                        move_module(module.path, module.bias, module.headers, module.count), true};
}

// In place of the loader's empty function.
void modules_changed() {
  SavedLog saved;
  stop_logging(saved);
  move_modules();
  go_on_logging(saved);
}

constexpr uint32_t kJumpBytes = 14;

// Whether nothing but a return, and room up to the next function, is there.
bool is_empty_function(const uint8_t *code) {
  if ((uint64_t)code % 16)
    return false;
  const bool is_marked = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa;
  code += is_marked ? 4 : 0;
  return code[0] == 0xc3 &&
         (code[1] == 0x66 || code[1] == 0x0f || code[1] == 0x90 || code[1] == 0xcc);
}

} // namespace

void move_modules() {
  loaded_count = 0;
  iterate_loaded(note_module);
  for (uint32_t i = 0; i < seen_count; i++)
    seen[i].is_loaded = seen[i].is_loaded && is_still_loaded(seen[i]);
  for (uint32_t i = 0; i < loaded_count; i++)
    look_at(loaded[i]);
}

void follow_loader() {
  auto *code = (uint8_t *)_r_debug.r_brk;
  // Not where a debugger waits.
  if (!code || !is_empty_function(code))
    return;
  const uint64_t page = page_down((uint64_t)code);
  if (sys::failed(sys::call(SYS_mprotect, (long)page, kPage, PROT_READ | PROT_WRITE | PROT_EXEC)))
    return;
  uint8_t jump[kJumpBytes] = {0xff, 0x25}; // jmp [rip]
  void (*const to)() = modules_changed;
  __builtin_memcpy(jump + 6, &to, sizeof to);
  __builtin_memcpy(code, jump, sizeof jump);
  sys::call(SYS_mprotect, (long)page, kPage, PROT_READ | PROT_EXEC);
}

} // namespace assay::relocated
