// Which file is mapped where, over time: executables and shared objects with their build ids.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/core/ids.h"
#include "runtime/core/system/lock.h"

namespace assay {

struct Module {
  uint64_t start, end, bias;
  uint64_t frame_header; // address of .eh_frame_hdr; 0 if there is none
  uint64_t loaded_us;
  uint8_t build_id[32];
  uint32_t build_id_size;
  bool
      ended; // its last destructor has run: its memory may be gone, and `sites` is not read any more
  bool unloaded, unload_taken;
  const void *sites; // its SITES section, if it is instrumented
  uint64_t sites_size;
  const char *path;
};

class ModuleMap {
public:
  static constexpr uint32_t kMaxModules = 65535;

  bool create();
  // Reads the maps file: new mappings get new numbers, missing ones are marked unloaded. Uses no
  // libc.
  void refresh();
  // Whether the module is unloaded and this was not asked before.
  bool take_unloaded(ModuleId module);
  // Notes the SITES section of the module that holds it, refreshing if need be. Returns the module;
  // kNoModule if there is none or the section is known.
  ModuleId add_sites(const void *sites, uint64_t size);
  // Where the module of this SITES section has run its last destructor. Returns it; kNoModule if it is not known.
  ModuleId end(const void *sites);
  // Whether there are modules that have ended, and whose unloading was not seen.
  bool awaits_unload() const;
  // The live module that holds address; kNoModule if none does.
  ModuleId find(uint64_t address) const;
  const Module &get(ModuleId module) const { return at(module); }
  // How many there have been; they are numbered from 1.
  uint32_t count() const { return __atomic_load_n(&count_, __ATOMIC_ACQUIRE); }
  void reset_lock() { lock_.reset(); }

private:
  Module &at(ModuleId module) const { return modules_[(uint32_t)module - 1]; }
  void note_mapping(uint64_t start, uint64_t offset, const char *path, uint8_t *seen);
  Module *modules_ = nullptr;
  uint32_t count_ = 0;
  bool said_unreadable_ = false;
  mutable SpinLock lock_;
};

} // namespace assay
