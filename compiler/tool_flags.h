// What the driver knows of a tool, and the pass too: the modes in which it can be compiled into a
// program. Without LLVM.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace assay::compiler {

struct ToolMode {
  const char *word; // of -fassay-NAME=WORD,…
  uint32_t bit;     // of the tool's mode (abi/sites.h)
};

// One for each line of abi/tools.def, in the tool's own file.
struct ToolFlags {
  const char *name; // as in abi/tools.def
  uint64_t tool;    // its bit
  const char *help; // of -fassay-NAME=, for --help-assay
  std::span<const ToolMode> modes;
  // 0, or the bits of modes of which only one may be asked for.
  uint32_t exclusive_bits;
  uint32_t dynamic_bit; // what -fassay-shadow=dynamic sets; 0: the tool has no shadow
  // A flag of an older compiler that asks for the tool, too, or null; with `=DIR` it also says where profiles go.
  const char *alias = nullptr;
  // A plugin of clang's own that the tool needs, a file of the installation, or null. It comes with
  // full debug information.
  const char *clang_plugin = nullptr;
  // Whether it asks where objects are allocated, and of what type: that takes frame pointers and marks of allocations.
  bool follows_allocations = true;
};

// All of them, by bit.
std::span<const ToolFlags *const> tool_flags();

// The tools that this flag, up to a `=`, is an alias of; 0 if none.
uint64_t tools_of_alias(std::string_view flag);

// The mode that -fassay-NAME=LIST asks for. Throws std::runtime_error with a sentence for unknown words, and for two
// that exclude each other.
uint32_t read_tool_mode(const ToolFlags &tool, const std::string &list);

} // namespace assay::compiler
