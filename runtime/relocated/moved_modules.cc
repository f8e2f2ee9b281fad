// Moved code lies where 32-bit distances reach it from the original, and back (room_for_code). Then
// the places that control arrives at in the original are overwritten with jumps.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

#include "abi/container.h"

#include <elf.h>
#include <stddef.h>

extern "C" [[gnu::visibility("hidden")]] char assay_check[], assay_check_inside[], assay_begun[],
    assay_act[], assay_before_call[];

namespace assay::relocated {

uint64_t log_offset();

MovedModule modules[kMaxModules];
uint32_t module_count;

namespace {

// The tool's answer: the file with the moved code. Processes and threads ask one after the other.
bool ask_tool(const char *path, uint64_t bias, bool is_main,
              char (&answer)[sizeof ring->request.answer], uint32_t &first_id) {
  AssayTraceRequest &request = ring->request;
  uint32_t waits = 0;
  uint32_t self = own_process();
  if (pid_namespace != ring->pid_namespace)
    self |= ASSAY_REQUEST_far;
  for (;;) {
    uint32_t asker = 0;
    if (__atomic_compare_exchange_n(&request.asker, &asker, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED))
      break;
    // The loader lets one thread ask at a time: this is of the program before exec.
    const bool is_ours = asker == self;
    if (is_ours && __atomic_load_n(&request.state, __ATOMIC_ACQUIRE) != ASSAY_REQUEST_module)
      break;
    if (!(is_ours ? wait_for_tool(request.state, ASSAY_REQUEST_module, waits)
                  : wait_for_tool(request.asker, asker, waits)))
      return false;
  }
  request.program = program_number;
  request.bias = bias;
  request.is_main = is_main;
  // By our id the tool finds our executable, unless it is of another namespace.
  char executable[sizeof request.path] = {};
  if (is_main && pid_namespace != ring->pid_namespace) {
    sys::read_link("/proc/self/exe", executable, sizeof executable - 1);
    path = executable;
  }
  size_t n = 0;
  while (path[n] && n + 1 < sizeof request.path) {
    request.path[n] = path[n];
    n++;
  }
  request.path[n] = 0;
  __atomic_store_n(&request.state, ASSAY_REQUEST_module, __ATOMIC_RELEASE);
  tell_tool();
  bool answered = true;
  while (answered && __atomic_load_n(&request.state, __ATOMIC_ACQUIRE) != ASSAY_REQUEST_answered)
    answered = wait_for_tool(request.state, ASSAY_REQUEST_module, waits);
  if (answered)
    for (size_t i = 0; i < sizeof answer; i++)
      answer[i] = request.answer[i];
  first_id = request.first_id;
  __atomic_store_n(&request.state, ASSAY_REQUEST_none, __ATOMIC_RELEASE);
  __atomic_store_n(&request.asker, 0, __ATOMIC_RELEASE);
  wake_all(request.asker);
  return answered && answer[0];
}

const AssayMovedHeader *map_file(const char *path) {
  const long file = sys::open(path, O_RDONLY);
  if (sys::failed(file))
    return nullptr;
  AssayMovedHeader header;
  const AssayMovedHeader *mapped = nullptr;
  if (sys::read(file, &header, sizeof header) == (long)sizeof header &&
      __builtin_memcmp(header.magic, ASSAY_MOVED_MAGIC, sizeof header.magic) == 0 &&
      header.version == ASSAY_MOVED_VERSION) {
    const long at = sys::map(nullptr, header.file_bytes, PROT_READ, MAP_PRIVATE, (int)file);
    if (!sys::failed(at))
      mapped = (const AssayMovedHeader *)at;
  }
  sys::close(file);
  return mapped;
}

void fill(char *code, const AssayMovedHeader &header, uint64_t bias, uint32_t first_id) {
  const auto *fixups = (const AssayMovedFixup *)(&header + 1);
  const char *from = (const char *)&header + header.code_offset;
  for (uint64_t i = 0; i < header.code_bytes; i += 8)
    *(uint64_t *)(code + i) = *(const uint64_t *)(from + i);
  const uint32_t more[] = {(uint32_t)(bias - (uint64_t)code), (uint32_t)log_offset(), first_id};
  for (uint32_t i = 0; i < header.fixups; i++) {
    uint32_t word;
    __builtin_memcpy(&word, code + fixups[i].at, sizeof word);
    word += more[fixups[i].kind];
    __builtin_memcpy(code + fixups[i].at, &word, sizeof word);
  }
  *(uint64_t *)(code + 8 * ASSAY_MOVED_SLOT_check) = (uint64_t)assay_check;
  *(uint64_t *)(code + 8 * ASSAY_MOVED_SLOT_check_inside) = (uint64_t)assay_check_inside;
  *(uint64_t *)(code + 8 * ASSAY_MOVED_SLOT_begun) = (uint64_t)assay_begun;
  *(uint64_t *)(code + 8 * ASSAY_MOVED_SLOT_act) = (uint64_t)assay_act;
  *(uint64_t *)(code + 8 * ASSAY_MOVED_SLOT_before_call) = (uint64_t)assay_before_call;
}

int protection_of(const ElfW(Phdr) & segment) {
  return (segment.p_flags & PF_R ? PROT_READ : 0) | (segment.p_flags & PF_W ? PROT_WRITE : 0) |
         (segment.p_flags & PF_X ? PROT_EXEC : 0);
}

bool protect_code(uint64_t bias, const ElfW(Phdr) * headers, uint32_t count, int more) {
  for (uint32_t i = 0; i < count; i++) {
    if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X))
      continue;
    const uint64_t begin = page_down(bias + headers[i].p_vaddr);
    const uint64_t end = page_up(bias + headers[i].p_vaddr + headers[i].p_memsz);
    if (sys::failed(sys::call(SYS_mprotect, (long)begin, (long)(end - begin),
                              protection_of(headers[i]) | more)))
      return false;
  }
  return true;
}

void put_jumps(const MovedModule &module) {
  const AssayMovedHeader &header = *module.header;
  const auto *jumps =
      (const AssayMovedJump *)((const AssayMovedFixup *)(&header + 1) + header.fixups);
  for (uint32_t i = 0; i < header.jumps; i++) {
    char *from = (char *)(module.bias + jumps[i].from);
    if (jumps[i].bytes == 5) {
      const auto distance = (uint32_t)(uint64_t)(module.code + jumps[i].to - (from + 5));
      from[0] = (char)0xe9;
      __builtin_memcpy(from + 1, &distance, sizeof distance);
    } else {
      from[0] = (char)0xeb;
      from[1] = (char)(jumps[i].to - 2);
    }
  }
}

} // namespace

const MovedModule *module_at(const void *address) {
  for (uint32_t i = 0; i < __atomic_load_n(&module_count, __ATOMIC_ACQUIRE); i++)
    if ((uint64_t)((const char *)address - modules[i].code) < modules[i].header->code_bytes)
      return &modules[i];
  return nullptr;
}

void *original_of(void *address) {
  const MovedModule *module = module_at(address);
  if (!module)
    return address;
  const auto wanted = (uint32_t)((char *)address - module->code);
  uint32_t low = 0, high = module->header->returns;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (module->returns[middle].moved < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == module->header->returns || module->returns[low].moved != wanted)
    return address;
  return (void *)(module->bias + module->header->image_begin + module->returns[low].original);
}

void redirect(const MovedModule &module, const ElfW(Phdr) * headers, uint32_t count) {
  if (!protect_code(module.bias, headers, count, PROT_WRITE))
    return;
  put_jumps(module);
  protect_code(module.bias, headers, count, 0);
}

const MovedModule *move_module(const char *path, uint64_t bias, const ElfW(Phdr) * headers,
                               uint32_t count) {
  static char answer[sizeof ring->request.answer];
  uint32_t first_id = 0;
  if (module_count == kMaxModules || !ask_tool(path, bias, path[0] == 0, answer, first_id))
    return nullptr;
  const AssayMovedHeader *header = map_file(answer);
  if (!header) {
    say("the moved code of a file cannot be read, so it is not traced; look at the free space "
        "where traces are written");
    return nullptr;
  }
  const uint64_t size = page_up(header->code_bytes);
  char *code = room_for_code(*header, bias);
  if (!code)
    return nullptr;
  fill(code, *header, bias, first_id);
  if (sys::failed(sys::call(SYS_mprotect, (long)code, (long)size, PROT_READ | PROT_EXEC)) ||
      !protect_code(bias, headers, count, PROT_WRITE)) {
    say("the system forbids changed code, so a file of the program is not traced; allow it "
        "(SELinux: execmem, execmod; systemd: MemoryDenyWriteExecute; prctl: PR_SET_MDWE)");
    sys::unmap(code, size);
    return nullptr;
  }
  MovedModule &module = modules[module_count];
  module.header = header;
  module.returns =
      (const AssayMovedReturn *)((const AssayMovedJump *)((const AssayMovedFixup *)(header + 1) +
                                                          header->fixups) +
                                 header->jumps);
  module.code = code;
  module.image = bias + header->image_begin;
  module.bias = bias;
  __atomic_store_n(&module_count, module_count + 1, __ATOMIC_RELEASE);
  put_jumps(module);
  protect_code(bias, headers, count, 0);
  return &module;
}

} // namespace assay::relocated
