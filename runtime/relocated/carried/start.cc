// The executable's entry. Nothing of libc has run: there is no thread-local storage, and the
// kernel's stack is all there is. What moved code logs until libc has made thread-local storage
// goes nowhere, into a block that fs is set to meanwhile; libc's block begins with the runtime's
// own image, which says that the thread has no stream yet.

#include "runtime/relocated/carried/carried.h"

#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

#include <stddef.h>

// The linker's; hidden, so that they are found without the table that is yet to be relocated.
extern "C" [[gnu::visibility("hidden")]] const Elf64_Dyn assay_dynamic[] asm("_DYNAMIC");
extern "C" [[gnu::visibility("hidden")]] const char assay_image[] asm("__ehdr_start");

namespace assay::relocated {

// In .data, not .bss: the tool writes it into the file.
[[gnu::section(".data")]] constinit AssayCarriedRuntime assay_carried_runtime = {};

namespace {

const AssayCarriedRuntime &carried = assay_carried_runtime;

// As a loader would. Before, nothing may be read that holds an address.
void relocate() {
  const uint64_t base = (uint64_t)assay_image;
  uint64_t table = 0, bytes = 0;
  for (const Elf64_Dyn *each = assay_dynamic; each->d_tag != DT_NULL; each++) {
    table = each->d_tag == DT_RELA ? base + each->d_un.d_ptr : table;
    bytes = each->d_tag == DT_RELASZ ? each->d_un.d_val : bytes;
  }
  const auto *begin = (const Elf64_Rela *)table;
  for (const Elf64_Rela *each = begin; each < begin + bytes / sizeof *each; each++) {
    const uint64_t type = ELF64_R_TYPE(each->r_info);
    if (type == R_X86_64_RELATIVE)
      *(uint64_t *)(base + each->r_offset) = base + (uint64_t)each->r_addend;
    else if (type == R_X86_64_TPOFF64)
      *(uint64_t *)(base + each->r_offset) =
          (uint64_t)(assay_carried_runtime.thread_offset + each->r_addend);
  }
}

// What libc is told of the program: older kernels look for the headers where the file would have them.
void correct(Elf64_auxv_t *vector) {
  for (; vector->a_type != AT_NULL; vector++) {
    if (vector->a_type == AT_PHDR)
      vector->a_un.a_val = loaded(carried.headers);
    else if (vector->a_type == AT_PHNUM)
      vector->a_un.a_val = carried.header_count;
    else if (vector->a_type == AT_ENTRY)
      vector->a_un.a_val = loaded(carried.entry);
  }
}

// Thread-local storage until libc makes its own.
bool set_first_block() {
  constexpr uint64_t kBehind = 4096; // what libc has there
  constexpr long kSetFs = 0x1002;    // ARCH_SET_FS
  const uint64_t before = page_up((uint64_t)-carried.thread_offset);
  const long block =
      sys::map(nullptr, before + kBehind, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (sys::failed(block))
    return false;
  const uint64_t fs = (uint64_t)block + before;
  *(uint64_t *)fs = fs;
  __builtin_memcpy((char *)fs + carried.thread_offset, (void *)loaded(carried.thread_template),
                   carried.thread_template_bytes);
  return !sys::failed(sys::call(SYS_arch_prctl, kSetFs, (long)fs));
}

// Limits of the program's addresses and data count what is mapped.
void give_back_room(uint64_t used) {
  if (used < carried.code_room_bytes)
    sys::unmap((void *)(loaded(carried.code_room) + used), carried.code_room_bytes - used);
}

void begin_recording() {
  __builtin_memcpy((void *)loaded(carried.thread_image), (void *)loaded(carried.thread_template),
                   carried.thread_template_bytes);
  if (!set_first_block()) {
    give_back_room(0);
    say("there is no memory for what is logged, so the program is not traced");
    return;
  }
  begin_streams();
  static SavedLog never_restored;
  stop_logging(never_restored);
  const MovedModule *module = move_module(
      "", loaded(0), (const Elf64_Phdr *)loaded(carried.headers), (uint32_t)carried.header_count);
  if (module)
    show_to_unwinders(*module);
  give_back_room(module ? page_up(module->header->code_bytes) : 0);
}

} // namespace

// `stack` as the kernel leaves it. Returns where the program begins.
extern "C" [[gnu::visibility("hidden")]] uint64_t assay_begin_carried(uint64_t *stack) {
  relocate();
  char **environment = (char **)(stack + stack[0] + 2);
  uint64_t *end = (uint64_t *)environment;
  while (*end)
    end++;
  correct((Elf64_auxv_t *)(end + 1));
  if (open_ring(environment))
    begin_recording();
  else
    give_back_room(0);
  return loaded(carried.entry);
}

asm(".text\n.globl assay_carried_start\n.type assay_carried_start, "
    "@function\nassay_carried_start:\n"
    "mov %rsp, %rbx\n mov %rdx, %r12\n mov %rsp, %rdi\n and $-16, %rsp\n"
    "call assay_begin_carried\n"
    "mov %rbx, %rsp\n mov %r12, %rdx\n xor %ebx, %ebx\n xor %r12d, %r12d\n xor %ebp, %ebp\n"
    "jmp *%rax\n.size assay_carried_start, . - assay_carried_start\n");

char *room_for_code(const AssayMovedHeader &moved, uint64_t) {
  const bool has_room = page_up(moved.code_bytes) <= carried.code_room_bytes;
  if (has_room && can_show_to_unwinders(moved))
    return (char *)loaded(carried.code_room);
  say("the executable has too little room for its moved code, so it is not traced; write it again "
      "with the same version of Assay: assay trace instrument");
  return nullptr;
}

} // namespace assay::relocated
