// Sets of tools, as objects, profiles and the runtime have them: bits of abi/tools.def.
#pragma once

#include <stdint.h>

enum {
#define ASSAY_TOOL(name, bit, is_default, question) ASSAY_TOOL_##name = 1 << bit,
#define ASSAY_OUTSIDE_TOOL(name, bit, question) ASSAY_TOOL_##name = 1 << bit,
#include "abi/tools.def"
};

enum { ASSAY_MAX_TOOLS = 31 }; // bits from 0 on

// The tools of a program that asks for none.
enum {
  ASSAY_DEFAULT_TOOLS = 0
#define ASSAY_TOOL(name, bit, is_default, question) | is_default << bit
#include "abi/tools.def"
};

static inline uint64_t assay_tools_or_default(uint64_t tools) {
  return tools ? tools : ASSAY_DEFAULT_TOOLS;
}
