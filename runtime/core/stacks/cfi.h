// Call frame information: how to get from a frame to its caller in code that keeps no frame
// pointers, as compilers describe it in .eh_frame for exceptions.
//
// Source: DWARF 5, section 6.4; "Linux Standard Base Core", section 10.6 (.eh_frame,
// .eh_frame_hdr).
#pragma once

#include <stdint.h>

namespace assay {

// At one pc: the canonical frame address (the stack pointer before the call) is a register plus an
// offset; the return address lies 8 bytes below it, and rbp, if it was saved, at an offset from it.
struct FrameRule {
  bool known = false;    // false: the chain ends here
  bool from_rbp = false; // else from rsp
  bool rbp_saved = false;
  int32_t cfa_offset = 0; // bytes
  int16_t rbp_offset = 0; // bytes from the canonical frame address
  uint64_t function = 0;  // where the code that the entry describes begins; 0 if there is no entry
};

// The rule in force at pc (of a call: one byte before a return address), from the .eh_frame_hdr at
// header. Reads the module's own memory: it must be mapped. Any context.
FrameRule find_frame_rule(uint64_t header, uint64_t pc);

} // namespace assay
