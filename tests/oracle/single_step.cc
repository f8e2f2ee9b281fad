// ptrace. Tracer and program share one processor, so that a step is a switch and not a wake-up of
// another core.

#include "oracle/single_step.h"

#include "base/fail.h"

#include <cerrno>
#include <cpuid.h>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

namespace oracle {
namespace {

constexpr uint64_t kStatus = 0x8d5, kTrap = 0x100, kResume = 0x10000;

void share_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
}

// Where XSAVE puts the parts of the vector registers (manual, volume 1, 13.4).
struct SaveLayout {
  unsigned size = 0, high_ymm = 0, masks = 0, high_zmm = 0, more_zmm = 0; // 0: not there
};

SaveLayout save_layout() {
  SaveLayout layout;
  unsigned a, b, c, d;
  __cpuid_count(0xd, 0, a, b, c, d);
  layout.size = b;
  unsigned supported = a;
  auto offset = [&](unsigned component) {
    if (!(supported >> component & 1))
      return 0u;
    __cpuid_count(0xd, component, a, b, c, d);
    return b;
  };
  layout.high_ymm = offset(2);
  layout.masks = offset(5);
  layout.high_zmm = offset(6);
  layout.more_zmm = offset(7);
  return layout;
}

const SaveLayout &layout() {
  static const SaveLayout found = save_layout();
  return found;
}

// Visits each word of the vector and mask registers with its place in a save area; 0 for one that this processor lacks.
template <class Visit> void for_each_lane(Visit visit) {
  const SaveLayout &save = layout();
  for (unsigned v = 0; v < 32; v++)
    for (unsigned lane = 0; lane < 8; lane++) {
      unsigned at = 0;
      if (v >= 16)
        at = save.more_zmm ? save.more_zmm + 64 * (v - 16) + 8 * lane : 0;
      else if (lane < 2)
        at = 160 + 16 * v + 8 * lane;
      else if (lane < 4)
        at = save.high_ymm ? save.high_ymm + 16 * v + 8 * (lane - 2) : 0;
      else
        at = save.high_zmm ? save.high_zmm + 32 * v + 8 * (lane - 4) : 0;
      visit(ASSAY_REG_LANES + 8 * v + lane, at);
    }
}

// Those that it has, and the registers of x87.
template <class Visit> void for_each_word(Visit visit) {
  const SaveLayout &save = layout();
  for_each_lane([&](unsigned reg, unsigned at) {
    if (at)
      visit(reg, at);
  });
  for (unsigned i = 0; i < 16; i++) // st(0) first; an exponent takes 2 of 8 bytes
    visit(ASSAY_REG_X87 + i, 32 + 8 * i);
  for (unsigned k = 0; save.masks && k < 8; k++)
    visit(ASSAY_REG_MASKS + k, save.masks + 8 * k);
}

} // namespace

SingleStep::SingleStep(const std::vector<std::string> &command) {
  share_processor();
  pid_ = fork();
  if (pid_ < 0)
    base::fail("{}: cannot fork: {}", command[0], std::strerror(errno));
  if (pid_ == 0) {
    personality(ADDR_NO_RANDOMIZE);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    std::vector<char *> words;
    for (const std::string &word : command)
      words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  start_tracing();
}

SingleStep::SingleStep() {
  share_processor();
  pid_ = fork();
  if (pid_ == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    _exit(0);
  }
  start_tracing();
  signal_ = 0;
}

void SingleStep::start_tracing() {
  if (waitpid(pid_, &status_, 0) != pid_ || !WIFSTOPPED(status_))
    base::fail("the program could not be started, or ptrace is not allowed here");
  ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL);
  running_ = true;
}

SingleStep::~SingleStep() {
  if (running_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

bool SingleStep::wait() {
  if (waitpid(pid_, &status_, 0) != pid_ || !WIFSTOPPED(status_)) {
    running_ = false;
    return false;
  }
  signal_ = WSTOPSIG(status_) == SIGTRAP ? 0 : WSTOPSIG(status_);
  return signal_ == 0;
}

bool SingleStep::is_at_cpuid(uint64_t &behind) const {
  constexpr uint64_t kCpuid = 0xa20f;
  const auto pc = static_cast<uint64_t>(
      ptrace(PTRACE_PEEKUSER, pid_, offsetof(user_regs_struct, rip), nullptr));
  behind = pc + 2;
  return (static_cast<uint64_t>(ptrace(PTRACE_PEEKTEXT, pid_, pc, nullptr)) & 0xffff) == kCpuid;
}

// By a breakpoint there.
bool SingleStep::run_to(uint64_t address) {
  const long kept = ptrace(PTRACE_PEEKTEXT, pid_, address, nullptr);
  ptrace(PTRACE_POKETEXT, pid_, address, (kept & ~0xffL) | 0xcc);
  const bool goes_on = ptrace(PTRACE_CONT, pid_, nullptr, signal_) == 0 && wait();
  if (!running_)
    return false;
  ptrace(PTRACE_POKETEXT, pid_, address, kept);
  if (goes_on)
    ptrace(PTRACE_POKEUSER, pid_, offsetof(user_regs_struct, rip), address);
  return goes_on;
}

// Hypervisors execute cpuid in the processor's place, and some let the trap of a single step come one instruction later
// then.
bool SingleStep::step() {
  if (uint64_t behind; is_at_cpuid(behind))
    return run_to(behind);
  if (ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal_) != 0) {
    running_ = false;
    return false;
  }
  return wait();
}

void SingleStep::read_general(binary::Machine &machine) const {
  user_regs_struct from;
  ptrace(PTRACE_GETREGS, pid_, nullptr, &from);
  auto &to = machine.registers;
  const unsigned long long all[] = {from.rax, from.rcx, from.rdx, from.rbx, from.rsp, from.rbp,
                                    from.rsi, from.rdi, from.r8,  from.r9,  from.r10, from.r11,
                                    from.r12, from.r13, from.r14, from.r15};
  for (unsigned i = 0; i < 16; i++)
    to[i] = all[i];
  to[ASSAY_REG_FLAGS] = from.eflags & kStatus;
  to[ASSAY_REG_CONTROL] = from.eflags & ~(kStatus | kTrap | kResume);
  to[ASSAY_REG_FS] = from.fs_base;
  to[ASSAY_REG_GS] = from.gs_base;
  to[ASSAY_REG_ZERO] = to[ASSAY_REG_BIAS] = 0;
  machine.pc = from.rip;
}

void SingleStep::write_general(const binary::Machine &machine) {
  user_regs_struct to;
  ptrace(PTRACE_GETREGS, pid_, nullptr, &to);
  unsigned long long *all[] = {&to.rax, &to.rcx, &to.rdx, &to.rbx, &to.rsp, &to.rbp,
                               &to.rsi, &to.rdi, &to.r8,  &to.r9,  &to.r10, &to.r11,
                               &to.r12, &to.r13, &to.r14, &to.r15};
  for (unsigned i = 0; i < 16; i++)
    *all[i] = machine.registers[i];
  to.eflags = machine.registers[ASSAY_REG_FLAGS] | machine.registers[ASSAY_REG_CONTROL];
  to.orig_rax = ~0ULL; // no system call is to be restarted
  to.rip = machine.pc;
  ptrace(PTRACE_SETREGS, pid_, nullptr, &to);
}

namespace {

// What of a save area is not a whole word.
struct Modes {
  uint16_t control, status;
  uint8_t full; // which registers of x87, by number
  uint32_t mxcsr;

  explicit Modes(const std::byte *area) {
    std::memcpy(&control, area, 2);
    std::memcpy(&status, area + 2, 2);
    std::memcpy(&full, area + 4, 1);
    std::memcpy(&mxcsr, area + 24, 4);
  }
  void put(std::byte *area) const {
    std::memcpy(area, &control, 2);
    std::memcpy(area + 2, &status, 2);
    std::memcpy(area + 4, &full, 1);
    std::memcpy(area + 24, &mxcsr, 4);
  }
};

} // namespace

void SingleStep::read_vectors(binary::Machine &machine) const {
  alignas(64) std::byte area[16384] = {};
  iovec vector{area, sizeof area};
  ptrace(PTRACE_GETREGSET, pid_, NT_X86_XSTATE, &vector);
  for_each_word(
      [&](unsigned reg, unsigned at) { std::memcpy(&machine.registers[reg], area + at, 8); });
  for (unsigned i = 1; i < 16; i += 2)
    machine.registers[ASSAY_REG_X87 + i] &= 0xffff;
  Modes modes(area);
  machine.registers[ASSAY_REG_MXCSR] = modes.mxcsr & ASSAY_MXCSR_CONTROL;
  machine.registers[ASSAY_REG_X87_CONTROL] = modes.control;
  machine.registers[ASSAY_REG_X87_TOP] = modes.status >> 11 & 7;
}

void SingleStep::clear_missing(binary::Machine &machine) {
  for_each_lane([&](unsigned reg, unsigned at) {
    if (!at)
      machine.registers[reg] = 0;
  });
}

void SingleStep::write_vectors(const binary::Machine &machine, bool room) {
  alignas(64) std::byte area[16384] = {};
  iovec vector{area, sizeof area};
  ptrace(PTRACE_GETREGSET, pid_, NT_X86_XSTATE, &vector);
  for_each_word(
      [&](unsigned reg, unsigned at) { std::memcpy(area + at, &machine.registers[reg], 8); });
  Modes modes(area);
  modes.mxcsr = static_cast<uint32_t>(machine.registers[ASSAY_REG_MXCSR]);
  modes.control = static_cast<uint16_t>(machine.registers[ASSAY_REG_X87_CONTROL]);
  auto top = static_cast<unsigned>(machine.registers[ASSAY_REG_X87_TOP]);
  modes.status = static_cast<uint16_t>(top << 11);
  modes.full = static_cast<uint8_t>(room ? ~(1u << ((top + 7) & 7)) : 0xff);
  modes.put(area);
  uint64_t present,
      known; // components that are not in their initial state; those of this processor
  std::memcpy(&present, area + 512, 8);
  std::memcpy(&known, area + 464, 8);
  present |= 0xe7 & known;
  std::memcpy(area + 512, &present, 8);
  ptrace(PTRACE_SETREGSET, pid_, NT_X86_XSTATE, &vector);
}

size_t SingleStep::read(uint64_t address, std::span<std::byte> bytes) const {
  iovec local{bytes.data(), bytes.size()};
  iovec remote{reinterpret_cast<void *>(address), bytes.size()};
  ssize_t got = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return got < 0 ? 0 : static_cast<size_t>(got);
}

bool SingleStep::write(uint64_t address, std::span<const std::byte> bytes) {
  iovec local{const_cast<std::byte *>(bytes.data()), bytes.size()};
  iovec remote{reinterpret_cast<void *>(address), bytes.size()};
  return process_vm_writev(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes.size());
}

bool KeptBack::load(uint64_t address, unsigned width, uint64_t &value) {
  uint64_t read = 0;
  if (process_.read(address, {reinterpret_cast<std::byte *>(&read), width}) != width)
    return false;
  value = read;
  return true;
}

bool KeptBack::store(uint64_t address, unsigned width, uint64_t value) {
  stores_.push_back({address, value, width});
  return true;
}

namespace {

// Between two turns of a repeated instruction, AMD's processors have set the flags and Intel's have not.
uint64_t flags_to_compare(const binary::Instruction &instruction, uint64_t next_pc) {
  bool between_turns = instruction.repeats && next_pc == instruction.address;
  return between_turns ? 0 : ~uint64_t{instruction.undefined_flags};
}

} // namespace

std::string differences(const binary::Instruction &instruction, const binary::Machine &ours,
                        const KeptBack &memory, const binary::Machine &native,
                        const SingleStep &process) {
  std::string all;
  auto differ = [&](const std::string &what, uint64_t here, uint64_t there) {
    all += fmt::format("\n    {}: {:#x}, but the processor has {:#x}", what, here, there);
  };
  if (ours.pc != native.pc)
    differ("pc", ours.pc, native.pc);
  for (unsigned reg = 0; reg < ASSAY_REG_COUNT; reg++) {
    if (reg >= ASSAY_REG_TEMPORARIES && reg < ASSAY_REG_LANES)
      continue;
    uint64_t mask = reg == ASSAY_REG_FLAGS ? flags_to_compare(instruction, native.pc) : ~0ULL;
    if ((ours.registers[reg] ^ native.registers[reg]) & mask)
      differ(fmt::format("register {}", reg), ours.registers[reg], native.registers[reg]);
  }
  for (const KeptBack::Store &store : memory.stores()) {
    uint64_t value = 0, mask = store.width == 8 ? ~0ULL : (1ULL << 8 * store.width) - 1;
    process.read(store.address, {reinterpret_cast<std::byte *>(&value), store.width});
    if ((value ^ store.value) & mask)
      differ(fmt::format("memory {:#x}, {} bytes", store.address, store.width), store.value & mask,
             value);
  }
  return all;
}

} // namespace oracle
