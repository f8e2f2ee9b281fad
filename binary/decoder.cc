// Zydis decodes; the lift_*.cc files say what an instruction means; what none of them knows becomes the
// micro-op `opaque`, with Zydis' own lists of what is read and written, so that data flow stays right.
//
// Zydis was taken rather than LLVM's disassembler because it knows every operand's access, hidden ones
// and flags included, and decodes some five million instructions a second.

#include "binary/decoder.h"

#include "binary/by_bytes.h"
#include "binary/lift.h"

#include <algorithm>

namespace binary {
namespace {

VariableSet variable_set(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE)
    return 0;
  switch (reg) {
  case ZYDIS_REGISTER_MXCSR: return bit(kMxcsr);
  case ZYDIS_REGISTER_X87CONTROL:
  case ZYDIS_REGISTER_X87STATUS:
  case ZYDIS_REGISTER_X87TAG: return bit(kX87);
  default: break;
  }
  Reg number = register_of(reg);
  unsigned variable = number == ASSAY_REG_COUNT ? kVariables : variable_of(number);
  return variable < kVariables ? bit(variable) : 0;
}

bool writes_all(const ZydisDecodedOperand &operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && operand.size >= 32 &&
         (operand.actions & ZYDIS_OPERAND_ACTION_WRITE) &&
         !(operand.actions & ZYDIS_OPERAND_ACTION_CONDWRITE);
}

// How much xsave and its kin write depends on the processor and on what is in use.
bool saves_state(const ZydisDecodedInstruction &decoded) {
  switch (decoded.mnemonic) {
  case ZYDIS_MNEMONIC_XSAVE:
  case ZYDIS_MNEMONIC_XSAVE64:
  case ZYDIS_MNEMONIC_XSAVEC:
  case ZYDIS_MNEMONIC_XSAVEC64:
  case ZYDIS_MNEMONIC_XSAVEOPT:
  case ZYDIS_MNEMONIC_XSAVEOPT64:
  case ZYDIS_MNEMONIC_XRSTOR:
  case ZYDIS_MNEMONIC_XRSTOR64: return true;
  default: return false;
  }
}

// The state that they save or restore, whatever the mask in edx:eax says.
constexpr VariableSet kSavedState =
    bit(kX87) | bit(kMxcsr) | ((bit(kX87) - 1) & ~(bit(kMasks) - 1));

// Its number and its arguments, which Zydis' lists leave out.
constexpr VariableSet kSystemCallArguments =
    bit(ASSAY_REG_RAX) | bit(ASSAY_REG_RDI) | bit(ASSAY_REG_RSI) | bit(ASSAY_REG_RDX) |
    bit(ASSAY_REG_R8) | bit(ASSAY_REG_R8 + 1) | bit(ASSAY_REG_R8 + 2);

// Of instructions that are not lifted, those of which Zydis' lists do not say all: where xbegin goes when its
// transaction fails, which frames enter looks at, the line that clzero writes, that repeated string instructions (with
// addresses of 32 bits, or a segment) go on.
bool is_half_known(const ZydisDecodedInstruction &decoded) {
  constexpr ZydisInstructionAttributes kRepeated =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  switch (decoded.mnemonic) {
  case ZYDIS_MNEMONIC_XBEGIN:
  case ZYDIS_MNEMONIC_ENTER:
  case ZYDIS_MNEMONIC_CLZERO: return true;
  default: return decoded.attributes & kRepeated;
  }
}

// Whether an element of it is accessed only if a mask says so.
bool is_masked(const Lift &lift) {
  switch (lift.decoded.mnemonic) {
  case ZYDIS_MNEMONIC_MASKMOVQ:
  case ZYDIS_MNEMONIC_MASKMOVDQU:
  case ZYDIS_MNEMONIC_VMASKMOVDQU: return true;
  default: return lift.mask;
  }
}

// What an instruction that is not lifted reads and writes, and its accesses. Zydis' lists are exact but for those.
Touched make_opaque(Lift &lift) {
  const ZydisDecodedInstruction &decoded = lift.decoded;
  Touched touched;
  for (unsigned i = 0; i < decoded.operand_count; i++) {
    const ZydisDecodedOperand &operand = lift.hidden[i];
    unsigned size = saves_state(decoded) ? 0 : operand.size / 8;
    bool reads = operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    bool writes = operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      VariableSet which = variable_set(operand.reg.value);
      bool is_vector = which >> kVectors && !(which & bit(kMemory));
      // What is written in part keeps the rest, so it is read.
      if (reads || (writes && (!writes_all(operand) || is_vector)))
        touched.reads |= which;
      if (writes)
        touched.writes |= which;
    } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      touched.reads |= variable_set(operand.mem.base) | variable_set(operand.mem.index) |
                       variable_set(operand.mem.segment);
      if (operand.mem.type == ZYDIS_MEMOP_TYPE_VSIB) { // gathers and scatters
        touched.writes |= writes ? bit(kMemory) : 0;
        touched.reads |= bit(kMemory);
        lift.access_many(size, writes);
      }
      if (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM)
        continue;
      Address address = lift.address_of(operand);
      const bool pushes = writes && operand.mem.base == ZYDIS_REGISTER_RSP &&
                          operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
      if (pushes)
        address.offset -= static_cast<int32_t>(size);
      auto access = [&](bool write) {
        if (is_masked(lift))
          lift.access_masked(size, write);
        else
          lift.access(size, write);
      };
      if (reads) {
        touched.reads |= bit(kMemory);
        access(false);
      }
      if (writes) {
        touched.writes |= bit(kMemory);
        access(true);
      }
      lift.lea(lift.temporary(), 8, address);
    }
  }
  if (decoded.cpu_flags) {
    constexpr uint32_t kStatus = 0x8d5;
    uint32_t tested = decoded.cpu_flags->tested;
    uint32_t changed = decoded.cpu_flags->modified | decoded.cpu_flags->set_0 |
                       decoded.cpu_flags->set_1 | decoded.cpu_flags->undefined;
    if ((tested | changed) & kStatus)
      touched.reads |= bit(kFlags);
    if (changed & kStatus)
      touched.writes |= bit(kFlags);
    if (changed & ~kStatus)
      touched.writes |= bit(kControl);
  }
  if (saves_state(decoded)) {
    touched.reads |= kSavedState;
    if (decoded.mnemonic == ZYDIS_MNEMONIC_XRSTOR || decoded.mnemonic == ZYDIS_MNEMONIC_XRSTOR64)
      touched.writes |= kSavedState;
  }
  if (decoded.mnemonic == ZYDIS_MNEMONIC_INT || decoded.mnemonic == ZYDIS_MNEMONIC_SYSENTER) {
    touched.reads |= (bit(16) - 1) | bit(kMemory); // those of 32 bits pass what they like
    touched.writes |= bit(ASSAY_REG_RAX) | bit(kMemory);
  }
  if (decoded.mnemonic == ZYDIS_MNEMONIC_SYSCALL) { // the kernel reads and writes what it likes
    touched.reads |= bit(kMemory) | kSystemCallArguments;
    touched.writes |= bit(kMemory) | bit(ASSAY_REG_RAX) | bit(kFs) | bit(kGs); // arch_prctl
  }
  lift.emit(ASSAY_UOP_opaque, 8, ASSAY_REG_ZERO, {});
  return touched;
}

// An instruction as if it were the first one of its code, if it is as small as nine in ten are.
struct Decoded {
  static constexpr size_t kMaxUops = 4, kMaxAccesses = 1;
  Instruction instruction;
  assay_uop uops[kMaxUops];
  Access accesses[kMaxAccesses];
};

Decoded last_of(const Code &code) {
  Decoded last{code.instructions.back(), {}, {}};
  const uint32_t first = last.instruction.uop;
  std::ranges::copy(code.uops_of(last.instruction), last.uops);
  std::ranges::copy(code.accesses_of(last.instruction), last.accesses);
  for (Access &access : std::span(last.accesses, last.instruction.accesses))
    if (access.has_address())
      access.uop -= first;
  return last;
}

void append(const Decoded &decoded, uint64_t address, Code &code) {
  Instruction instruction = decoded.instruction;
  instruction.address = address;
  instruction.uop = static_cast<uint32_t>(code.uops.size());
  instruction.access = static_cast<uint32_t>(code.accesses.size());
  code.uops.insert(code.uops.end(), decoded.uops, decoded.uops + instruction.uops);
  for (Access access : std::span(decoded.accesses, instruction.accesses)) {
    if (access.has_address())
      access.uop += instruction.uop;
    code.accesses.push_back(access);
  }
  code.instructions.push_back(instruction);
}

// Whether it means another thing elsewhere: it names a place by the distance, or its own address is part of it.
bool depends_on_its_place(const ZydisDecodedInstruction &decoded, const Instruction &instruction) {
  return decoded.attributes & ZYDIS_ATTRIB_IS_RELATIVE || instruction.flow != Flow::next ||
         instruction.repeats || instruction.opaque;
}

bool lift_any(Lift &lift) {
  // movsd and cmpsd are names of two instructions each.
  if (lift.decoded.meta.category == ZYDIS_CATEGORY_STRINGOP)
    return lift_control(lift);
  // In the order of how often they occur.
  if (is_x87(lift.decoded))
    return lift_x87(lift);
  if (touches_mmx(lift))
    return lift_mmx(lift);
  return lift_integer(lift) || lift_control(lift) || lift_bits(lift) || lift_moves(lift) ||
         lift_float(lift) || lift_vector(lift) || lift_masks(lift) || lift_permutations(lift) ||
         lift_gathers(lift) || lift_aes(lift);
}

} // namespace

struct Decoder::State {
  ZydisDecoder decoder;
  ZydisFormatter formatter;
  ByBytes<Decoded> decoded;
};

Decoder::Decoder() : state_(std::make_unique<State>()) {
  ZydisDecoderInit(&state_->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatterInit(&state_->formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  for (auto property : {ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                        ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_FORMATTER_PROP_IMM_PADDING})
    ZydisFormatterSetProperty(&state_->formatter, property, ZYDIS_PADDING_DISABLED);
  ZydisFormatterSetProperty(&state_->formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder &&) noexcept = default;

bool Decoder::decode(std::span<const std::byte> bytes, uint64_t address, Code &code) {
  if (auto found = state_->decoded.find(bytes); found.value) {
    append(*found.value, address, code);
    return true;
  }
  ZydisDecodedInstruction decoded;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeFull(&state_->decoder, bytes.data(), bytes.size(), &decoded, operands)))
    return false;
  Instruction instruction;
  instruction.address = address;
  instruction.length = decoded.length;
  instruction.mnemonic = static_cast<uint16_t>(decoded.mnemonic);
  instruction.uop = static_cast<uint32_t>(code.uops.size());
  instruction.access = static_cast<uint32_t>(code.accesses.size());
  if (decoded.cpu_flags)
    instruction.undefined_flags = static_cast<uint16_t>(decoded.cpu_flags->undefined);
  Lift lift(decoded, operands, instruction, code);
  if (!lift_any(lift)) {
    code.uops.resize(instruction.uop);
    code.accesses.resize(instruction.access);
    instruction.opaque = true;
    instruction.half_known |= is_half_known(decoded);
    instruction.operand = static_cast<uint32_t>(code.touched.size());
    code.touched.push_back(make_opaque(lift));
  }
  instruction.uops = static_cast<uint16_t>(code.uops.size() - instruction.uop);
  instruction.accesses = static_cast<uint8_t>(code.accesses.size() - instruction.access);
  code.instructions.push_back(instruction);
  if (!depends_on_its_place(decoded, instruction) && instruction.uops <= Decoded::kMaxUops &&
      instruction.accesses <= Decoded::kMaxAccesses)
    state_->decoded.put(bytes, instruction.length, last_of(code));
  return true;
}

std::string Decoder::text(std::span<const std::byte> bytes, uint64_t address) const {
  ZydisDecodedInstruction decoded;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  char text[256];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&state_->decoder, bytes.data(), bytes.size(), &decoded,
                                           operands)) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&state_->formatter, &decoded, operands,
                                                    decoded.operand_count_visible, text,
                                                    sizeof text, address, nullptr)))
    return "(bad)";
  return text;
}

const char *mnemonic_name(uint16_t mnemonic) {
  return ZydisMnemonicGetString(static_cast<ZydisMnemonic>(mnemonic));
}

} // namespace binary
