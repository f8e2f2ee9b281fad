// The beginning, before all other constructors (-z initfirst): no code of the program has run, and it has one thread.
//
// The file that the tool shares is mapped in two parts: what the tool writes can only be read here,
// so no stray store of the program can change the micro-ops.
//
// Then comes who is not sampled: a process that /proc knows by another number than it knows itself,
// a program of Go, and one that begins when the recording is over. What the program before exec
// left waiting is taken back before Go is asked for: a signal of ours would end a program of Go.
// Signals are taken over before the first thread is sampled.

#include "runtime/upcall/upcall.h"

#include "runtime/core/system/preloaded.h"
#include "runtime/core/system/syscall.h"

#include <elf.h>
#include <sys/auxv.h>

namespace assay::upcall {

Shared shared;
uint32_t process, program;
bool is_off;

namespace {

char *map_part(long file, uint64_t from, uint64_t bytes, int protection) {
  const long at =
      sys::call(SYS_mmap, 0, (long)bytes, protection, MAP_SHARED | MAP_NORESERVE, file, (long)from);
  if (sys::failed(at))
    return nullptr;
  sys::advise((void *)at, bytes, MADV_DONTDUMP);
  return (char *)at;
}

bool map_shared(const char *path) {
  const long file = sys::open(path, O_RDWR);
  if (sys::failed(file))
    return false;
  assay_upcall_header header = {};
  const bool is_known =
      sys::read(file, &header, sizeof header) == (long)sizeof header &&
      __builtin_memcmp(header.magic, ASSAY_UPCALL_MAGIC, sizeof header.magic) == 0 &&
      header.version == ASSAY_UPCALL_VERSION;
  char *to_read = is_known ? map_part(file, 0, header.news_at, PROT_READ) : nullptr;
  char *to_write = to_read ? map_part(file, header.news_at, header.bytes - header.news_at,
                                      PROT_READ | PROT_WRITE)
                           : nullptr;
  sys::close(file);
  if (!to_write)
    return false;
  shared = {(const assay_upcall_header *)to_read,
            (const assay_code_page *)(to_read + header.pages_at),
            (const assay_uop *)(to_read + header.entries_at),
            (const assay_upcall_place *)(to_read + header.places_at),
            (assay_upcall_news *)to_write,
            (assay_upcall_slot *)(to_write + (header.slots_at - header.news_at))};
  return true;
}

// The runtime of Go installs its own handlers of all signals, without libc: a signal of ours would end the program.
bool is_go() {
  const auto *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
  const unsigned long count = getauxval(AT_PHNUM);
  uint64_t bias = 0;
  for (unsigned long i = 0; headers && i < count; i++)
    if (headers[i].p_type == PT_PHDR)
      bias = (uint64_t)headers - headers[i].p_vaddr;
  for (unsigned long i = 0; headers && i < count; i++) {
    if (headers[i].p_type != PT_NOTE)
      continue;
    const char *at = (const char *)(bias + headers[i].p_vaddr), *end = at + headers[i].p_memsz;
    while (at + sizeof(Elf64_Nhdr) <= end) {
      const auto *note = (const Elf64_Nhdr *)at;
      const char *name = at + sizeof *note;
      if (note->n_namesz == 4 && name + 4 <= end && __builtin_memcmp(name, "Go\0\0", 4) == 0)
        return true;
      at = name + ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
    }
  }
  return false;
}

[[gnu::constructor]] void begin(int, char **, char **envp) {
  const char *path = environment_of(envp, ASSAY_UPCALL_ENVIRONMENT);
  if (!path || !*path)
    return;
  if (!map_shared(path)) {
    say("what `assay values` shares with this program cannot be opened, so it is not sampled; run "
        "it as the same user, with /proc mounted as the tool has it");
    return;
  }
  process = sys::process_id();
  if (!is_known_by_number()) {
    shared.header = nullptr;
    return;
  }
  program = __atomic_add_fetch(&shared.news->programs, 1, __ATOMIC_RELAXED);
  take_back_waiting(); // of the program before exec
  if (is_go()) {
    __atomic_fetch_add(&shared.news->refused_programs, 1, __ATOMIC_RELAXED);
    say("Go programs take all signals for themselves, so this one is not sampled; use "
        "`--collector kernel`, as root");
    shared.header = nullptr;
    return;
  }
  if (is_over()) {
    shared.header = nullptr;
    return;
  }
  find_loader();
  take_signals();
  follow_forks();
  sample_thread();
}

} // namespace

bool is_known_by_number() {
  char text[16] = {};
  sys::read_link("/proc/self", text, sizeof text - 1);
  uint32_t number = 0;
  for (const char *at = text; *at >= '0' && *at <= '9'; at++)
    number = number * 10 + (uint32_t)(*at - '0');
  return number == process;
}

void say(const char *text) {
  say_line(text);
}

} // namespace assay::upcall
