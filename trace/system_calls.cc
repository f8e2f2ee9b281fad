#include "trace/system_calls.h"

#include "binary/effects.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <sys/syscall.h>

namespace trace {
namespace {

using binary::Block;
using binary::FlowGraph;
using binary::Program;

constexpr std::array kSystemCall = {std::byte{0x0f}, std::byte{0x05}};
constexpr std::byte kMoveToEax{0xb8}; // mov eax, number

std::span<const std::byte> bytes_of(const Program &program, const FlowGraph &graph,
                                    uint32_t index) {
  const binary::Instruction &instruction = graph.code.instructions[index];
  return program.executable().bytes(instruction.address, instruction.length);
}

} // namespace

bool is_system_call(const Program &program, const FlowGraph &graph, uint32_t index) {
  const std::span<const std::byte> bytes = bytes_of(program, graph, index);
  return bytes.size() >= kSystemCall.size() &&
         std::ranges::equal(bytes.last(kSystemCall.size()), kSystemCall);
}

std::optional<uint32_t> system_call_number(const Program &program, const FlowGraph &graph,
                                           const Block &block, uint32_t index) {
  for (uint32_t i = index; i-- > block.first;) {
    if (!(binary::effects_of(graph.code, graph.code.instructions[i]).writes &
          binary::bit(ASSAY_REG_RAX)))
      continue;
    const std::span<const std::byte> bytes = bytes_of(program, graph, i);
    uint32_t number;
    if (bytes.size() != 1 + sizeof number || bytes.front() != kMoveToEax)
      return std::nullopt;
    std::memcpy(&number, bytes.data() + 1, sizeof number);
    return number;
  }
  return std::nullopt;
}

bool may_return_twice(const Program &program, const FlowGraph &graph, const Block &block,
                      uint32_t index) {
  if (!is_system_call(program, graph, index))
    return true;
  const auto number = system_call_number(program, graph, block, index);
  return !number || *number == SYS_clone || *number == SYS_clone3 || *number == SYS_fork ||
         *number == SYS_vfork;
}

bool may_forbid_calls(const Program &program, const FlowGraph &graph, const Block &block,
                      uint32_t index) {
  if (!is_system_call(program, graph, index))
    return false;
  const auto number = system_call_number(program, graph, block, index);
  return !number || *number == SYS_prctl || *number == SYS_seccomp;
}

bool sets_handler(const Program &program, const FlowGraph &graph, const Block &block,
                  uint32_t index) {
  return is_system_call(program, graph, index) &&
         system_call_number(program, graph, block, index) == SYS_rt_sigaction;
}

bool may_call_system(const Program &program, const binary::Routine &routine) {
  return std::ranges::any_of(routine.ranges, [&](const image::CodeRange &range) {
    return !std::ranges::search(program.executable().bytes(range.begin, range.end - range.begin),
                                kSystemCall)
                .empty();
  });
}

} // namespace trace
