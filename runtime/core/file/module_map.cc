// From /proc/self/maps and the ELF headers in memory, and not from dl_iterate_phdr: that takes the
// loader's lock, and the helper thread may not call libc at all. Headers are read through the
// kernel, because a module can be unmapped at any moment.

#include "runtime/core/file/module_map.h"

#include <elf.h>

#include "runtime/core/system/arena.h"
#include "runtime/core/system/clock.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/proc_maps.h"

namespace assay {
namespace {

void find_build_id(Module &m, uint64_t note, uint64_t size) {
  while (size >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    char name[4];
    if (!sys::read_own_memory(note, &header, sizeof header))
      return;
    uint64_t name_size = (header.n_namesz + 3ULL) & ~3ULL,
             desc_size = (header.n_descsz + 3ULL) & ~3ULL;
    uint64_t whole = sizeof header + name_size + desc_size;
    if (whole > size)
      return;
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        sys::read_own_memory(note + sizeof header, name, 4) && equal(name, "GNU", 4)) {
      m.build_id_size = header.n_descsz < sizeof m.build_id ? header.n_descsz : sizeof m.build_id;
      sys::read_own_memory(note + sizeof header + name_size, m.build_id, m.build_id_size);
      return;
    }
    note += whole;
    size -= whole;
  }
}

// Fills bias, extent and build id from the ELF header that is mapped at start. False if there is
// none.
bool read_image(Module &m, uint64_t start) {
  Elf64_Ehdr header;
  if (!sys::read_own_memory(start, &header, sizeof header) ||
      !equal((char *)header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  uint64_t low = UINT64_MAX, high = 0;
  Elf64_Phdr segment;
  auto segment_at = [&](int i) {
    return sys::read_own_memory(start + header.e_phoff + (uint64_t)i * sizeof segment, &segment,
                                sizeof segment);
  };
  for (int i = 0; i < header.e_phnum && segment_at(i); i++)
    if (segment.p_type == PT_LOAD) {
      if (segment.p_offset == 0)
        low = segment.p_vaddr;
      if (segment.p_vaddr + segment.p_memsz > high)
        high = segment.p_vaddr + segment.p_memsz;
    }
  if (low == UINT64_MAX)
    return false;
  m.bias = start - low;
  m.start = start;
  m.end = m.bias + high;
  for (int i = 0; i < header.e_phnum && segment_at(i); i++) {
    if (segment.p_type == PT_GNU_EH_FRAME)
      m.frame_header = m.bias + segment.p_vaddr;
    if (segment.p_type == PT_NOTE && !m.build_id_size)
      find_build_id(m, m.bias + segment.p_vaddr, segment.p_filesz);
  }
  return true;
}

bool same_path(const Module &m, const char *path) {
  size_t n = length_of(path);
  return length_of(m.path) == n && equal(m.path, path, n);
}

} // namespace

bool ModuleMap::create() {
  modules_ = (Module *)reserve(sizeof(Module) * kMaxModules);
  return modules_ != nullptr;
}

void ModuleMap::note_mapping(uint64_t start, uint64_t offset, const char *path, uint8_t *seen) {
  if (offset != 0 || (path[0] != '/' && !equal(path, "[vdso]", 7)))
    return;
  for (uint32_t i = 0; i < count_; i++)
    if (!modules_[i].unloaded && modules_[i].start == start && same_path(modules_[i], path)) {
      seen[i] = 1;
      return;
    }
  Module m = {};
  if (!read_image(m, start))
    return;
  if (count_ == kMaxModules) {
    count_loss(ASSAY_LOSS_module_limit, 1);
    return;
  }
  size_t n = length_of(path) + 1;
  char *copy = (char *)arena_allocate(n);
  if (!copy)
    return;
  __builtin_memcpy(copy, path, n);
  m.path = copy;
  m.loaded_us = now_us();
  modules_[count_] = m;
  seen[count_] = 1;
  __atomic_store_n(&count_, count_ + 1, __ATOMIC_RELEASE);
}

void ModuleMap::refresh() {
  if (!modules_)
    return;
  Locked locked(lock_);
  static uint8_t seen[kMaxModules]; // under the lock
  __builtin_memset(seen, 0, count_);
  MapsReader maps;
  MapsLine line;
  bool any = false;
  for (; maps.next(line); any = true)
    note_mapping(line.start, line.offset, line.path, seen);
  if (!any) { // /proc is not there
    if (!count_ && !__atomic_exchange_n(&said_unreadable_, true, __ATOMIC_RELAXED))
      count_loss_quietly(ASSAY_LOSS_no_maps, 1);
    return;
  }
  for (uint32_t i = 0; i < count_; i++)
    if (!seen[i])
      modules_[i].unloaded = true;
}

bool ModuleMap::take_unloaded(ModuleId module) {
  Module &m = at(module);
  bool is_new = m.unloaded && !m.unload_taken;
  m.unload_taken = m.unloaded;
  return is_new;
}

ModuleId ModuleMap::find(uint64_t address) const {
  for (uint32_t i = count(); i > 0; i--) { // newest first
    const Module &m = modules_[i - 1];
    if (!m.unloaded && m.start <= address && address < m.end)
      return ModuleId{i};
  }
  return kNoModule;
}

ModuleId ModuleMap::end(const void *sites) {
  const ModuleId module = find((uint64_t)sites);
  if (module == kNoModule)
    return kNoModule;
  Locked locked(lock_);
  at(module).ended = true;
  return module;
}

bool ModuleMap::awaits_unload() const {
  for (uint32_t i = count(); i > 0; i--)
    if (modules_[i - 1].ended && !modules_[i - 1].unload_taken)
      return true;
  return false;
}

ModuleId ModuleMap::add_sites(const void *sites, uint64_t size) {
  if (!modules_)
    return kNoModule;
  ModuleId module = find((uint64_t)sites);
  if (module != kNoModule && at(module).ended) { // another one, or the same file again
    Locked locked(lock_);
    at(module).unloaded = true;
    module = kNoModule;
  }
  if (module == kNoModule) {
    refresh();
    module = find((uint64_t)sites);
  }
  if (module == kNoModule)
    return kNoModule;
  Locked locked(lock_);
  Module &m = at(module);
  if (m.sites == sites)
    return kNoModule;
  m.sites_size = size;
  __atomic_store_n(&m.sites, sites, __ATOMIC_RELEASE);
  return module;
}

} // namespace assay
