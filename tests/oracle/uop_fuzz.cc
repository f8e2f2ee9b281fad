// uop_fuzz [--cases N] [--seed N]
//
// Random instructions on random registers and memory, executed by the processor and by their
// micro-ops: all must agree. Rare kinds are preferred, so that each that is lifted gets its share.
// Prints how many kinds were executed and what did not agree; exit 1 if anything did not.

#include "base/fail.h"
#include "binary/decoder.h"
#include "binary/machine.h"
#include "oracle/single_step.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <sys/mman.h>

namespace {

using namespace binary;

constexpr uint64_t kCode = 0x10000000, kData = 0x20000000, kDataBytes = 0x4000;
constexpr unsigned kMaxReports = 60;

// Whether it needs an empty register of x87.
bool pushes(const Instruction &instruction, const Code &code) {
  auto uops = code.uops_of(instruction);
  return std::any_of(uops.begin(), uops.end(), [](const assay_uop &uop) {
    return uop.op == ASSAY_UOP_x87_turn && uop.i == 7;
  });
}

// Whether what an instruction does with these operands is undefined, or outside what micro-ops model.
bool is_undefined(const Instruction &instruction, const Code &code, const Machine &machine) {
  // The register that a push finds empty.
  constexpr uint16_t kEmpty = ASSAY_REG_X87 + 14;
  if (pushes(instruction, code) && code.uops_of(instruction).front().a == kEmpty)
    return true;
  for (const assay_uop &uop : code.uops_of(instruction)) {
    bool is_double_shift = uop.op == ASSAY_UOP_shld || uop.op == ASSAY_UOP_shrd;
    if (is_double_shift && uop.width == 2) {
      // The count is cl, or a constant that was put in a temporary before.
      uint64_t count = machine.registers[ASSAY_REG_RCX] & 31;
      for (const assay_uop &before : code.uops_of(instruction))
        if (before.dst == uop.c && before.b == ASSAY_UOP_IMMEDIATE)
          count = static_cast<uint64_t>(before.imm) & 31;
      if (count > 16)
        return true;
    }
  }
  return false;
}

class Fuzz {
public:
  explicit Fuzz(uint64_t seed) : random_(seed) {
    map(kCode, 0x2000);
    map(kData, kDataBytes);
    process_.emplace();
    memory_.emplace(*process_);
    process_->read_general(start_);
  }

  void run(uint64_t cases) {
    for (uint64_t tried = 0; agreed_ + wrong_ < cases && tried < cases * 400; tried++)
      one();
  }

  bool report() const {
    std::printf("%llu cases of %zu kinds, %llu disagree; %llu faulted\n",
                static_cast<unsigned long long>(agreed_ + wrong_), kinds_.size(),
                static_cast<unsigned long long>(wrong_), static_cast<unsigned long long>(faults_));
    return wrong_ == 0 && agreed_ > 0;
  }
  void list_kinds() const {
    for (const auto &[name, times] : kinds_)
      std::printf("%8llu %s\n", static_cast<unsigned long long>(times), name.c_str());
  }

private:
  static void map(uint64_t address, size_t size) {
    void *got = mmap(reinterpret_cast<void *>(address), size, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != reinterpret_cast<void *>(address))
      base::fail("memory at {:#x} cannot be mapped", address);
  }

  uint64_t below(uint64_t limit) { return random_() % limit; }

  // Bytes that are likely to be an instruction.
  void make_bytes(std::byte (&bytes)[16]) {
    for (std::byte &byte : bytes)
      byte = static_cast<std::byte>(random_());
    size_t at = 0;
    auto put = [&](unsigned value) { bytes[at++] = static_cast<std::byte>(value); };
    static constexpr unsigned kPrefixes[] = {0x66, 0xf2, 0xf3};
    switch (below(7)) {
    case 5: // x87
      put(0xd8 + static_cast<unsigned>(below(8)));
      break;
    case 0: // one byte of opcode
      if (below(4) == 0)
        put(kPrefixes[below(3)]);
      if (below(2))
        put(0x40 + static_cast<unsigned>(below(16)));
      break;
    case 1:
    case 2: // two and three
      if (below(3))
        put(kPrefixes[below(3)]);
      if (below(3) == 0)
        put(0x40 + static_cast<unsigned>(below(16)));
      put(0x0f);
      if (below(3) == 0)
        put(below(2) ? 0x38 : 0x3a);
      break;
    case 3: // VEX
      if (below(2)) {
        put(0xc5);
      } else {
        put(0xc4);
        put((static_cast<unsigned>(random_()) & 0xe0) | (1 + static_cast<unsigned>(below(3))));
      }
      break;
    default: // EVEX; more often without a mask
      put(0x62);
      put((static_cast<unsigned>(random_()) & 0xf0) | (1 + static_cast<unsigned>(below(3))));
      put(static_cast<unsigned>(random_()) | 4);
      put(static_cast<unsigned>(random_()) & (below(2) ? 0xf8 : 0xff));
    }
  }

  uint64_t interesting() {
    static constexpr uint64_t kValues[] = {0,
                                           1,
                                           0x7f,
                                           0x80,
                                           0xff,
                                           0x7fff,
                                           0x8000,
                                           0xffff,
                                           0x7fffffff,
                                           0x80000000,
                                           0xffffffff,
                                           0x7fffffffffffffff,
                                           1ULL << 63,
                                           ~0ULL,
                                           0x3ff0000000000000,
                                           0x7ff0000000000000,
                                           0x7ff8000000000001,
                                           0xfff0000000000000,
                                           0x7ff0000000000001,
                                           0x3f8000003f800000,
                                           0x7fc000007f800001,
                                           0x0000000100000001};
    switch (below(5)) {
    case 0: return kValues[below(std::size(kValues))];
    case 1: return below(256);
    case 2: // a float of moderate size
      return 0x3f00000000000000 + (random_() & 0x80ffffffffffffff);
    case 3:
      return (0x3f000000 + (random_() & 0x80ffffff)) | (0x3f000000 + (random_() & 0x80ffffff))
                                                           << 32;
    default: return random_();
    }
  }

  void one() {
    std::byte bytes[16];
    make_bytes(bytes);
    code_.clear();
    if (!decoder_.decode(bytes, kCode, code_))
      return;
    const Instruction instruction = code_.instructions.front();
    // Under single step, pushfq and popfq meet the trap flag.
    if (instruction.opaque || instruction.mnemonic == ZYDIS_MNEMONIC_PUSHFQ ||
        instruction.mnemonic == ZYDIS_MNEMONIC_POPFQ)
      return;
    for (const assay_uop &uop : code_.uops_of(instruction))
      if (uop.width != 1 && uop.width != 2 && uop.width != 4 && uop.width != 8)
        base::fail("{}: a micro-op has width {}", decoder_.text(bytes, kCode), uop.width);
    uint64_t &times = kinds_[mnemonic_name(instruction.mnemonic)];
    if (times > 50 && below(times) > 25 && below(40))
      return;
    Machine machine = start_;
    for (unsigned i = 0; i < 16; i++)
      machine.registers[i] = interesting();
    for (unsigned reg = ASSAY_REG_LANES; reg < ASSAY_REG_X87; reg++)
      machine.registers[reg] = interesting();
    set_floating_point(machine);
    for (unsigned k = 0; k < 8; k++)
      machine.registers[ASSAY_REG_MASKS + k] = interesting();
    machine.registers[ASSAY_REG_FLAGS] = random_() & 0x8d5;
    point_into_data(bytes, machine);
    machine.pc = kCode;
    if (is_undefined(instruction, code_, machine))
      return;
    check(bytes, instruction, machine);
    if (!failed_)
      times++;
  }

  // Registers of x87, and now and then another rounding, flushed denormals or a shorter significand.
  void set_floating_point(Machine &machine) {
    for (unsigned i = 0; i < 8; i++) {
      uint64_t &low = machine.registers[ASSAY_REG_X87 + 2 * i], &high = (&low)[1];
      high = below(4) ? 0x3ff0 + below(32) + (below(2) << 15) : random_() & 0xffff;
      // A significand without its top bit is a denormal, or no number at all.
      low = (high & 0x7fff ? 1ULL << 63 : 0) | (below(3) ? random_() : random_() << 40) >> 1;
      if (below(16) == 0)
        low = high = 0;
    }
    machine.registers[ASSAY_REG_X87_TOP] = below(8);
    if (below(3) == 0)
      machine.registers[ASSAY_REG_MXCSR] |= below(4) << 13 | below(2) << 15 | below(2) << 6;
    if (below(3) == 0)
      machine.registers[ASSAY_REG_X87_CONTROL] =
          0x7f | below(4) << 10 | (below(3) ? 0x300 : below(2) * 0x200);
  }

  // Makes what the operands use as addresses point into the data.
  void point_into_data(const std::byte (&bytes)[16], Machine &machine) {
    ZydisDecoder decoder;
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderDecodeFull(&decoder, bytes, sizeof bytes, &decoded, operands);
    for (unsigned i = 0; i < decoded.operand_count; i++) {
      const ZydisDecodedOperand &operand = operands[i];
      if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN)
        continue;
      uint64_t middle = kData + kDataBytes / 2 + below(256) * (below(2) ? 64 : 1);
      auto id = [](ZydisRegister reg) { return static_cast<unsigned>(ZydisRegisterGetId(reg)); };
      if (operand.mem.index != ZYDIS_REGISTER_NONE && operand.mem.type == ZYDIS_MEMOP_TYPE_MEM)
        machine.registers[id(operand.mem.index)] = below(64);
      if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB)
        for (unsigned lane = 0; lane < 8; lane++)
          machine.registers[ASSAY_REG_LANES + 8 * id(operand.mem.index) + lane] =
              index_element(decoded, below(64), below(64));
      if (id(operand.mem.base) < 16) {
        uint64_t displacement =
            operand.mem.disp.has_displacement ? static_cast<uint64_t>(operand.mem.disp.value) : 0;
        machine.registers[id(operand.mem.base)] = middle - displacement;
      }
    }
  }

  // Two small indexes of 4 bytes, or one of 8, some of them negative.
  uint64_t index_element(const ZydisDecodedInstruction &decoded, uint64_t low, uint64_t high) {
    std::string_view name = ZydisMnemonicGetString(decoded.mnemonic);
    bool is_long = name.find("erq") != std::string_view::npos;
    return is_long ? low - 32 : ((high - 32) << 32) | ((low - 32) & 0xffffffff);
  }

  void check(const std::byte (&bytes)[16], const Instruction &instruction, Machine machine) {
    failed_ = false;
    oracle::SingleStep::clear_missing(machine);
    std::vector<uint64_t> data(kDataBytes / 8);
    for (uint64_t &word : data)
      word = interesting();
    process_->write(kData, std::as_bytes(std::span(data)));
    process_->write(kCode, bytes);
    process_->drop_signal();
    process_->write_general(machine);
    process_->write_vectors(machine, pushes(instruction, code_));
    process_->read_general(machine); // some flags cannot be set so
    Machine native = machine;
    memory_->forget();
    Step outcome = execute(code_, instruction, machine, *memory_);
    if (!process_->step()) {
      if (!process_->running())
        base::fail("the process that executes instructions has ended");
      faults_++;
      failed_ = true;
      return;
    }
    process_->read_general(native);
    process_->read_vectors(native);
    std::string differences =
        outcome == Step::fault
            ? "\n    memory refused"
            : oracle::differences(instruction, machine, *memory_, native, *process_);
    if (differences.empty()) {
      agreed_++;
      return;
    }
    if (outcome == Step::fault) { // a masked or empty access that the processor did not make
      faults_++;
      failed_ = true;
      return;
    }
    wrong_++;
    std::string name = mnemonic_name(instruction.mnemonic);
    if (reported_[name]++ < 2 && reported_.size() <= kMaxReports)
      std::printf("%s%s\n", decoder_.text(bytes, kCode).c_str(), differences.c_str());
  }

  std::mt19937_64 random_;
  std::optional<oracle::SingleStep> process_;
  std::optional<oracle::KeptBack> memory_;
  Decoder decoder_;
  Code code_;
  Machine start_;
  std::map<std::string, uint64_t> kinds_, reported_;
  uint64_t agreed_ = 0, wrong_ = 0, faults_ = 0;
  bool failed_ = false;
};

} // namespace

int main(int argc, char **argv) {
  uint64_t cases = 20000, seed = 1;
  bool list = false;
  for (int i = 1; i < argc; i++) {
    std::string_view word = argv[i];
    if (word == "--list")
      list = true;
    else if (i + 1 < argc)
      (word == "--seed" ? seed : cases) = std::strtoull(argv[++i], nullptr, 0);
  }
  try {
    Fuzz fuzz(seed);
    fuzz.run(cases);
    if (list)
      fuzz.list_kinds();
    return fuzz.report() ? 0 : 1;
  } catch (const base::Failure &failure) {
    std::fprintf(stderr, "uop_fuzz: %s\n", failure.what());
    return 2;
  }
}
