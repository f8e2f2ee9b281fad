// Instructions that call the kernel.
#pragma once

#include "binary/flow_graph.h"
#include "binary/program.h"

#include <cstdint>
#include <optional>

namespace trace {

// Whether the instruction of this index is `syscall`.
bool is_system_call(const binary::Program &program, const binary::FlowGraph &graph, uint32_t index);
// Its number, where the block says it; else nothing.
std::optional<uint32_t> system_call_number(const binary::Program &program,
                                           const binary::FlowGraph &graph,
                                           const binary::Block &block, uint32_t index);
// Of an instruction behind which another thread may go on: whether it may be a system call that
// returns 0 in a new thread or process as well, one that forbids others, or one that sets a
// handler. Where the number is not known, the first two may be; also where it is another
// instruction, the first.
bool may_return_twice(const binary::Program &program, const binary::FlowGraph &graph,
                      const binary::Block &block, uint32_t index);
bool may_forbid_calls(const binary::Program &program, const binary::FlowGraph &graph,
                      const binary::Block &block, uint32_t index);
// Nothing that stands in front of libc sees it.
bool sets_handler(const binary::Program &program, const binary::FlowGraph &graph,
                  const binary::Block &block, uint32_t index);
// Whether bytes of the routine may be one: a look without its graph.
bool may_call_system(const binary::Program &program, const binary::Routine &routine);

} // namespace trace
