// Unwinders ask the loader which file an address belongs to. Of moved code it does not know; so we
// stand in front of what they ask: _dl_find_object (libgcc since version 12) and dl_iterate_phdr
// (the others). Who wants names gets the original's addresses: backtrace, dladdr.

#include "runtime/core/system/export.h"
#include "runtime/relocated/relocated.h"

#include <dlfcn.h>
#include <stddef.h>

namespace assay::relocated {

struct RealFunctions {
  int (*find_object)(void *, dl_find_object *);
  int (*iterate_phdr)(int (*)(dl_phdr_info *, size_t, void *), void *);
  int (*backtrace)(void **, int);
  int (*dladdr)(const void *, Dl_info *);
};
static RealFunctions real;

template <class Function> static void find(Function &to, const char *name) {
  to = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void find_real_functions() {
  find(real.find_object, "_dl_find_object");
  find(real.iterate_phdr, "dl_iterate_phdr");
  find(real.backtrace, "backtrace");
  find(real.dladdr, "dladdr");
}

static void need_real_functions() {
  if (!real.iterate_phdr)
    find_real_functions();
}

// Of the loader, without moved code.
int iterate_loaded(int (*visit)(dl_phdr_info *, size_t, void *)) {
  need_real_functions();
  return real.iterate_phdr(visit, nullptr);
}

} // namespace assay::relocated

using namespace assay::relocated;

ASSAY_EXPORT int _dl_find_object(void *address, dl_find_object *result) {
  need_real_functions();
  const MovedModule *module = module_at(address);
  if (!module || !module->header->unwind_header)
    return real.find_object ? real.find_object(address, result) : -1;
  if (real.find_object((void *)module->image, result) != 0)
    return -1;
  result->dlfo_map_start = module->code;
  result->dlfo_map_end = module->code + module->header->code_bytes;
  result->dlfo_eh_frame = module->code + module->header->unwind_header;
  return 0;
}

ASSAY_EXPORT int dl_iterate_phdr(int (*visit)(dl_phdr_info *, size_t, void *), void *data) {
  need_real_functions();
  struct Last {
    int (*visit)(dl_phdr_info *, size_t, void *);
    void *data;
    dl_phdr_info info;
  } last = {visit, data, {}};
  const int result = real.iterate_phdr(
      [](dl_phdr_info *info, size_t size, void *state) {
        Last &seen = *(Last *)state;
        seen.info = *info;
        return seen.visit(info, size, seen.data);
      },
      &last);
  if (result)
    return result;
  for (uint32_t i = 0; i < module_count; i++) {
    const AssayMovedHeader &header = *modules[i].header;
    ElfW(Phdr) segments[2] = {};
    segments[0].p_type = PT_LOAD;
    segments[0].p_flags = PF_R | PF_X;
    segments[0].p_filesz = segments[0].p_memsz = header.code_bytes;
    segments[1].p_type = PT_GNU_EH_FRAME;
    segments[1].p_flags = PF_R;
    segments[1].p_vaddr = header.unwind_header;
    segments[1].p_filesz = segments[1].p_memsz = header.code_bytes - header.unwind_header;
    dl_phdr_info info = last.info;
    info.dlpi_addr = (uint64_t)modules[i].code;
    info.dlpi_name = "";
    info.dlpi_phdr = segments;
    info.dlpi_phnum = header.unwind_header ? 2 : 1;
    if (const int stop = visit(&info, sizeof info, data))
      return stop;
  }
  return 0;
}

// The first frame that is found is ours. So one more is asked for, but of very many, of which the last one is missing.
ASSAY_EXPORT int backtrace(void **frames, int size) {
  constexpr int kMany = 512;
  need_real_functions();
  if (!real.backtrace || size <= 0)
    return 0;
  const bool is_many = size > kMany;
  void **all = is_many ? frames : (void **)__builtin_alloca(((size_t)size + 1) * sizeof(void *));
  const int found = real.backtrace(all, is_many ? size : size + 1);
  for (int i = 1; i < found; i++)
    frames[i - 1] = original_of(all[i]);
  return found > 0 ? found - 1 : 0;
}

ASSAY_EXPORT int dladdr(const void *address, Dl_info *info) {
  need_real_functions();
  return real.dladdr ? real.dladdr(original_of((void *)address), info) : 0;
}
