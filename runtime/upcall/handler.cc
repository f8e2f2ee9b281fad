// What happens in an interrupt: the thread's next instructions are interpreted (abi/sample_run.h),
// as in the kernel's program, and what they compute goes to the tool. The thread itself does not
// move.
//
// Loads are made directly. One that faults is caught by a handler of SIGSEGV and SIGBUS
// (signals.cc), as long as the program leaves these signals to the system: 0 system calls for a
// sample. Where the program handles faults itself, memory is read by process_vm_readv, which
// refuses what is not there: a microsecond and more for each line, so lines are kept for the
// sample. Asking the kernel whether an address can be read before it is was refused: another thread
// may unmap it in between.

#include "runtime/upcall/upcall.h"

#include "abi/timed_load.h"
#include "runtime/core/system/syscall.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>

ASSAY_TIMED_LOAD("assay_upcall_timed_load", "assay_upcall_timed_begin", "assay_upcall_timed_end",
                 "assay_upcall_timed_failed");
extern "C" [[gnu::visibility("hidden")]] uint32_t assay_upcall_timed_load(const void *from);

// int assay_upcall_load(void *to, const void *from, unsigned bytes): 1, or 0 if the memory cannot be read.
asm(".text\n.hidden assay_upcall_load\n.globl assay_upcall_load\n"
    ".type assay_upcall_load, @function\nassay_upcall_load:\n"
    ".hidden assay_upcall_load_begin\n.globl assay_upcall_load_begin\nassay_upcall_load_begin:\n"
    "cmp $8, %edx\n jne 1f\n mov (%rsi), %rax\n mov %rax, (%rdi)\n jmp 9f\n"
    "1: cmp $4, %edx\n jne 1f\n mov (%rsi), %eax\n mov %eax, (%rdi)\n jmp 9f\n"
    "1: test %edx, %edx\n je 9f\n"
    "2: movzbl -1(%rsi,%rdx), %eax\n mov %al, -1(%rdi,%rdx)\n dec %edx\n jne 2b\n"
    "9: mov $1, %eax\n ret\n"
    ".hidden assay_upcall_load_end\n.globl assay_upcall_load_end\nassay_upcall_load_end:\n"
    ".hidden assay_upcall_load_failed\n.globl assay_upcall_load_failed\nassay_upcall_load_failed:\n"
    "xor %eax, %eax\n ret\n.size assay_upcall_load, . - assay_upcall_load\n");
extern "C" [[gnu::visibility("hidden")]] int assay_upcall_load(void *to, const void *from,
                                                               unsigned bytes);

namespace assay::upcall {
namespace {

constexpr uint64_t kUserEnd = uint64_t{1} << 47;
constexpr uint64_t kMissIntervalNs = 50'000'000;
constexpr uint64_t kFlags = 0x8d5; // CF, PF, AF, ZF, SF, OF

bool put(Thread &thread, const void *head, size_t head_bytes, const void *tail, size_t tail_bytes) {
  assay_upcall_slot &slot = *thread.slot;
  const size_t bytes = head_bytes + tail_bytes, all = sizeof(assay_upcall_message) + bytes;
  uint64_t written = slot.written;
  const size_t at = written & (ASSAY_UPCALL_RING_BYTES - 1);
  const size_t skipped = at + all > ASSAY_UPCALL_RING_BYTES ? ASSAY_UPCALL_RING_BYTES - at : 0;
  const uint64_t used = written - __atomic_load_n(&slot.read, __ATOMIC_ACQUIRE);
  if (used + skipped + all > ASSAY_UPCALL_RING_BYTES)
    return false;
  if (skipped) {
    *(assay_upcall_message *)(slot.ring + at) = {ASSAY_UPCALL_SKIP, 0};
    written += skipped;
  }
  uint8_t *to = slot.ring + (written & (ASSAY_UPCALL_RING_BYTES - 1));
  *(assay_upcall_message *)to = {(uint32_t)bytes, program};
  memcpy(to + sizeof(assay_upcall_message), head, head_bytes);
  memcpy(to + sizeof(assay_upcall_message) + head_bytes, tail, tail_bytes);
  __atomic_store_n(&slot.written, written + all, __ATOMIC_RELEASE);
  return true;
}

#ifdef DLFO_EH_SEGMENT_TYPE             // of glibc 2.35; it may be called in signal handlers
decltype(&_dl_find_object) find_object; // null: an older libc than we were built with
#endif

bool read_file_begin(const Thread &thread, uint64_t *to, uint64_t from) {
  if (!thread.loads_directly)
    return sys::read_own_memory(from, to, ASSAY_UPCALL_FILE_BYTES);
  for (unsigned i = 0; i < ASSAY_UPCALL_FILE_BYTES / 8; i++)
    if (!assay_upcall_load(to + i, (const uint64_t *)from + i, 8))
      return false;
  return true;
}

// Where the build id lies in the first bytes of a file, down to 8 bytes; 0: not there.
uint64_t build_id_in(const uint64_t *file_begin) {
  const auto *words = (const uint32_t *)file_begin;
  constexpr uint32_t kGnu = 0x00554e47, kLast = ASSAY_UPCALL_FILE_BYTES / 4 - 10;
  for (uint32_t i = 0; i < kLast; i++)
    if (words[i] == 4 && words[i + 1] >= 16 && words[i + 2] == NT_GNU_BUILD_ID &&
        words[i + 3] == kGnu)
      return (i + 4) * 4 & ~7U;
  return 0;
}

// Words that tell files apart: where the program begins, where sections lie, and the build id.
bool read_words(const KnownFile &file, uint64_t *to) {
  const uint64_t at[kFileWords] = {offsetof(Elf64_Ehdr, e_entry), offsetof(Elf64_Ehdr, e_shoff),
                                   file.id_at, file.id_at + 8, file.id_at + 16};
  for (unsigned i = 0; i < kFileWords; i++)
    if (!assay_upcall_load(to + i, (const uint64_t *)(file.begin + at[i]), 8))
      return false;
  return true;
}

bool is_still_there(const KnownFile &file) {
  uint64_t words[kFileWords], changed = 0;
  if (!read_words(file, words))
    return false;
  for (unsigned i = 0; i < kFileWords; i++)
    changed |= words[i] ^ file.words[i];
  return !changed;
}

// assay_upcall_file_hash() of what begins there; 0: it cannot be read.
uint64_t file_that_begins(Thread &thread, uint64_t begin) {
  KnownFile &known = thread.files[(begin >> 12) * 0x9e3779b97f4a7c15 >> 61 & (kFiles - 1)];
  if (known.begin == begin && thread.loads_directly && is_still_there(known))
    return known.file;
  known.begin = 0;
  if (!read_file_begin(thread, thread.file_begin, begin))
    return 0;
  const uint64_t file = assay_upcall_file_hash(thread.file_begin);
  known = {begin, file, build_id_in(thread.file_begin), {}};
  if (!known.id_at || !thread.loads_directly || !read_words(known, known.words))
    known.begin = 0;
  return file;
}

// Which file the loader has loaded there. One that was closed may have left its place to another
// one, with the same bytes where we look; so the file's begin is asked in each sample. It takes some
// ten nanoseconds where the file has a build id, else hundreds. Before glibc 2.35 nothing says it in
// a signal handler.
uint64_t file_at(Thread &thread, uint64_t pc) {
  Loaded &loaded = thread.loaded;
  if (loaded.sample == thread.run.sample && pc - loaded.begin < loaded.end - loaded.begin)
    return loaded.file;
  const uint64_t page = assay_code_page_begin(pc);
  loaded = {page, page + ASSAY_CODE_PAGE_BYTES, 0, thread.run.sample};
#ifdef DLFO_EH_SEGMENT_TYPE
  dl_find_object found;
  if (!find_object || find_object((void *)pc, &found) != 0)
    return 0;
  const uint64_t file = file_that_begins(thread, (uint64_t)found.dlfo_map_start);
  if (file)
    loaded = {(uint64_t)found.dlfo_map_start, (uint64_t)found.dlfo_map_end, file, loaded.sample};
#endif
  return loaded.file;
}

// Told once in a while: the tool needs some time to decode.
int tell_miss(Thread &thread, uint64_t address) {
  const uint64_t now = sys::clock_ns(CLOCK_MONOTONIC_COARSE), file = file_at(thread, address);
  RecentMiss &recent = thread.recent[address * 0x9e3779b97f4a7c15 >> 58 & (kRecentMisses - 1)];
  if (recent.address == address && recent.file == file && now - recent.ns < kMissIntervalNs)
    return 0;
  recent = {address, now, file};
  assay_miss miss = {};
  miss.kind = ASSAY_MESSAGE_MISS;
  miss.pid = process;
  miss.tid = thread.tid;
  miss.address = address;
  miss.file = file;
  if (put(thread, &miss, sizeof miss, nullptr, 0)) {
    __atomic_fetch_add(&shared.news->posted, 1, __ATOMIC_RELEASE);
    sys::call(SYS_futex, (long)&shared.news->posted, FUTEX_WAKE, INT32_MAX);
  }
  return 0;
}

int find_page(assay_interpreter *run, uint64_t pc) {
  const uint64_t page = assay_code_page_begin(pc);
  const uint32_t here = assay_upcall_program_with(program, file_at(*mine, pc));
  const uint32_t hash = assay_upcall_place_hash(page, here);
  for (uint32_t i = 0; i < ASSAY_UPCALL_PROBES; i++) {
    const assay_upcall_place &place = shared.places[(hash + i) & (ASSAY_UPCALL_PLACES - 1)];
    const uint32_t number = __atomic_load_n(&place.number, __ATOMIC_ACQUIRE);
    if (number == 0)
      break;
    if (place.page == page && place.program == here) {
      run->page_number = number;
      return 1;
    }
  }
  return tell_miss(*mine, pc);
}

// Reads lines by a system call.
int read_by_kernel(Thread &thread, uint8_t *to, unsigned bytes, uint64_t address) {
  while (bytes) {
    const uint64_t line = address & ~uint64_t{kLineBytes - 1};
    Line &kept = thread.lines[line / kLineBytes % kLines];
    if (kept.address != line || kept.sample != thread.run.sample) {
      kept.address = 0;
      if (!sys::read_own_memory(line, kept.bytes, kLineBytes))
        return 0;
      kept.address = line;
      kept.sample = thread.run.sample;
    }
    const unsigned offset = (unsigned)(address - line);
    const unsigned part = bytes < kLineBytes - offset ? bytes : kLineBytes - offset;
    memcpy(to, kept.bytes + offset, part);
    to += part;
    address += part;
    bytes -= part;
  }
  return 1;
}

int read(assay_interpreter *run, void *to, unsigned bytes, uint64_t address) {
  Thread &thread = *mine;
  if (bytes == 0 || bytes > 8 || address >= kUserEnd - 8)
    return 0;
  if (!thread.loads_directly)
    return read_by_kernel(thread, (uint8_t *)to, bytes, address);
  if (shared.header->is_timed && address != run->pc) {
    const uint32_t cycles = assay_upcall_timed_load((const void *)address);
    if (cycles == UINT32_MAX)
      return 0;
    unsigned level = 0;
    while (level < ASSAY_UPCALL_LEVELS - 1 && cycles > shared.header->level_limits[level])
      level++;
    thread.level = (int)shared.header->level_sets[level];
  }
  return assay_upcall_load(to, (const void *)address, bytes);
}

} // namespace
} // namespace assay::upcall

using namespace assay::upcall;

static int loaded(assay_interpreter *run, const assay_uop *uop);

#define ASSAY_UOP_INTEGERS // as in the kernel: what is published has no others
#define ASSAY_SAMPLE_READ(run, to, bytes, address) read(run, to, bytes, address)
#define ASSAY_SAMPLE_FIND(run, pc) find_page(run, pc)
#define ASSAY_SAMPLE_PAGE(run, page)                                                               \
  ((page) < shared.header->page_count ? &shared.pages[page] : nullptr)
#define ASSAY_SAMPLE_ENTRY(run, index)                                                             \
  ((index) < shared.header->entry_count ? &shared.entries[index] : nullptr)
#define ASSAY_SAMPLE_VALUE(uop, a, b, c) assay_uop_value(uop, a, b, c)
#define ASSAY_SAMPLE_MISS(run, pc) tell_miss(*mine, pc)
#define ASSAY_SAMPLE_LOADED(run, uop) loaded(run, uop)
#include "abi/sample_run.h"

// The level that answered a load is recorded behind what it read.
static int loaded(assay_interpreter *run, const assay_uop *uop) {
  const int level = mine->level;
  mine->level = -1;
  if (level < 0 || (uop->op != ASSAY_UOP_load && uop->op != ASSAY_UOP_load_if))
    return 0;
  return assay_sample_record(run, ASSAY_VALUE_latency, uop->width, (uint64_t)level);
}

namespace assay::upcall {
namespace {

void take_registers(assay_interpreter &run, const mcontext_t &from) {
  const greg_t *all = from.gregs;
  static constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                     REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                     REG_R12, REG_R13, REG_R14, REG_R15};
  for (unsigned i = 0; i < 16; i++)
    run.registers[i] = (uint64_t)all[kOrder[i]];
  run.registers[ASSAY_REG_FLAGS] = (uint64_t)all[REG_EFL] & kFlags;
  run.registers[ASSAY_REG_CONTROL] = (uint64_t)all[REG_EFL] & ~kFlags;
  for (unsigned i = 0; i <= ASSAY_REG_CONTROL; i++)
    run.known[i] = 1;
  run.registers[ASSAY_REG_FS] = sys::thread_pointer();
  run.known[ASSAY_REG_FS] = 1;
  run.registers[ASSAY_REG_GS] = 0;
  run.known[ASSAY_REG_GS] = 0; // programs do not use it
  run.pc = (uint64_t)all[REG_RIP];
}

uint32_t next_random(Thread &thread) {
  thread.random ^= thread.random << 13;
  thread.random ^= thread.random >> 7;
  thread.random ^= thread.random << 17;
  return (uint32_t)(thread.random >> 16);
}

// A tool that has ended reads no more.
void lose(Thread &thread) {
  constexpr uint64_t kSometimes = 1024;
  const uint64_t lost = __atomic_add_fetch(&shared.news->lost, 1, __ATOMIC_RELAXED);
  if (lost % kSometimes == 0 && sys::call(SYS_kill, shared.header->tool, 0) == -ESRCH)
    stop_sampling(thread);
}

void interpret(Thread &thread, const ucontext_t &context) {
  const assay_upcall_header &settings = *shared.header;
  assay_interpreter &run = thread.run;
  assay_sample_begin(&run);
  take_registers(run, context.uc_mcontext);
  run.out.pid = process;
  run.out.tid = thread.tid;
  run.out.pc = run.pc;
  run.out.in_kernel = 0;
  run.in_kernel = 0;
  assay_draw_sample(&run, settings.most_skipped, settings.instructions, settings.is_random_length,
                    next_random(thread));
  // A blocked signal that a fault sends ends the process.
  const uint64_t faults = uint64_t{1} << (SIGSEGV - 1) | uint64_t{1} << (SIGBUS - 1);
  thread.loads_directly = loads_are_guarded() && !(*(const uint64_t *)&context.uc_sigmask & faults);
  thread.level = -1;
  uint32_t steps = settings.most_steps;
  while (steps && !assay_sample_step(&run))
    steps--;
  if (!steps)
    run.out.end = ASSAY_ENDED_many_steps;
  run.out.skipped = (uint16_t)(run.out.skipped - run.skip);
  if (!put(thread, &run.out, sizeof run.out, run.values,
           run.out.values * sizeof(assay_sampled_value)))
    lose(thread);
}

// No instruction was executed since a system call: rcx is what the call returns to. Or the call will be made again.
bool is_in_system_call(const mcontext_t &context) {
  const greg_t pc = context.gregs[REG_RIP], rcx = context.gregs[REG_RCX];
  return rcx == pc || rcx == pc + 2;
}

void take_sample(Thread &thread, siginfo_t *info, const ucontext_t &context) {
  if (is_timer() && info->si_timerid == thread.cpu_timer)
    go_on(thread);
  if (is_timer() && is_in_system_call(context.uc_mcontext)) {
    __atomic_fetch_add(&shared.news->in_kernel, 1, __ATOMIC_RELAXED);
    wait_for_work(thread);
    return;
  }
  interpret(thread, context);
}

// Linux: siginfo of perf events; older libc headers do not name it.
struct PerfInfo {
  uint64_t data;
  uint32_t type, flags;
};
constexpr int kTrapPerf = 6;
constexpr uint32_t kAsync = 1; // the signal was blocked when the event came

const PerfInfo &perf_info(const siginfo_t &info) {
  return *(const PerfInfo *)((const char *)&info + 24);
}

} // namespace

void find_loader() {
#ifdef DLFO_EH_SEGMENT_TYPE
  find_object = (decltype(find_object))dlsym(RTLD_DEFAULT, "_dl_find_object");
#endif
}

bool is_own_signal(const siginfo_t &info) {
  return (info.si_code == kTrapPerf && perf_info(info).data == ASSAY_UPCALL_SIGNAL) ||
         (info.si_code == SI_TIMER && (uint64_t)info.si_value.sival_ptr == ASSAY_UPCALL_SIGNAL);
}

// Context: a signal handler, with all signals blocked but those of faults.
void on_signal(int number, siginfo_t *info, void *context) {
  if (!is_own_signal(*info)) {
    if (!mine || !hold(*mine, *info))
      pass_on(number, info, context);
    return;
  }
  Thread *thread = mine;
  if (!thread || !thread->slot || is_off || thread->is_working)
    return;
  if (is_over()) {
    stop_sampling(*thread);
    return;
  }
  thread->is_working = true;
  __atomic_fetch_add(&shared.news->interrupts, 1, __ATOMIC_RELAXED);
  if (info->si_code == kTrapPerf && (perf_info(*info).flags & kAsync))
    __atomic_fetch_add(&shared.news->blocked, 1, __ATOMIC_RELAXED);
  else
    take_sample(*thread, info, *(const ucontext_t *)context);
  thread->is_working = false;
}

} // namespace assay::upcall
