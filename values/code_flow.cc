#include "values/code_flow.h"

#include "binary/effects.h"

#include <string_view>

namespace values {
namespace {

std::vector<FlowStep> flow_steps(const binary::Code &code, const binary::Instruction &instruction) {
  std::vector<FlowStep> steps;
  for (const assay_uop &uop : code.uops_of(instruction)) {
    FlowStep step;
    step.is_load = binary::reads_memory(uop);
    step.is_store = binary::writes_memory(uop);
    const bool is_access = step.is_load || step.is_store;
    const bool is_indexed = uop.op == ASSAY_UOP_load || uop.op == ASSAY_UOP_store;
    const auto none = static_cast<uint16_t>(ASSAY_REG_ZERO);
    step.from = {uop.a, uop.b, uop.c};
    if (is_access && !is_indexed) // its operands are no parts of the address
      step.from = {uop.a, none, none};
    else if (binary::has_immediate(uop))
      step.from = {uop.a, none, none};
    if (binary::has_result(uop))
      step.to = uop.dst;
    steps.push_back(step);
  }
  return steps;
}

// Whether all stores before it have left the processor's buffer when it ends: mfence, what is
// locked, and xchg with memory, which always is.
bool drains_stores(std::span<const std::byte> code) {
  auto byte = [&](size_t at) { return at < code.size() ? std::to_integer<unsigned>(code[at]) : 0; };
  constexpr unsigned kLock = 0xf0;
  size_t at = 0;
  for (constexpr std::string_view kPrefixes = "\x66\x67\xf2\xf3\x2e\x3e\x26\x36\x64\x65\xf0";
       kPrefixes.find(static_cast<char>(byte(at))) != kPrefixes.npos; at++)
    if (byte(at) == kLock)
      return true;
  if ((byte(at) & 0xf0) == 0x40) // REX
    at++;
  const bool is_fence = byte(at) == 0x0f && byte(at + 1) == 0xae && (byte(at + 2) & 0xf8) == 0xf0;
  const bool is_exchange = (byte(at) & 0xfe) == 0x86 && byte(at + 1) < 0xc0;
  return is_fence || is_exchange;
}

// The instruction there, as linked. False if nothing is known of it.
bool decode_at(const CodeCache &cache, binary::Decoder &decoder, uint32_t where,
               binary::Code &code) {
  const uint64_t address = cache.linked(where);
  return address && decoder.decode(cache.bytes(where).span(), address, code);
}

} // namespace

const InstructionFlow &CodeFlow::at(uint32_t where) {
  auto [known, is_new] = known_.try_emplace(where);
  InstructionFlow &flow = known->second;
  binary::Code code;
  if (is_new && decode_at(code_, decoder_, where, code)) {
    const binary::Instruction &instruction = code.instructions.front();
    flow.steps = flow_steps(code, instruction);
    flow.drains_stores = drains_stores(code_.bytes(where).span());
    flow.branches = instruction.flow == binary::Flow::branch;
    flow.jumps = instruction.flow != binary::Flow::next && !flow.branches;
    flow.target_address = instruction.target();
    if (!instruction.repeats)
      flow.bytes_to_next = instruction.length;
  }
  look_up_places(where, flow);
  return flow;
}

uint32_t JumpTargets::of(uint32_t where) {
  const auto known = addresses_.find(where);
  const uint64_t target = known == addresses_.end() ? address_of(where) : known->second;
  if (known == addresses_.end() && code_.is_stable(where))
    addresses_.emplace(where, target);
  return target ? code_.beside(where, target) : 0;
}

uint64_t JumpTargets::address_of(uint32_t where) {
  binary::Code code;
  return decode_at(code_, decoder_, where, code) ? code.instructions.front().target() : 0;
}

// Their pages may have come since.
void CodeFlow::look_up_places(uint32_t where, InstructionFlow &flow) const {
  if (flow.target == 0 && flow.target_address)
    flow.target = code_.beside(where, flow.target_address);
  if (flow.next == 0 && flow.bytes_to_next)
    flow.next = code_.behind(where, flow.bytes_to_next);
}

} // namespace values
