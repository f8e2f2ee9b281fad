// What the kernel and stdio read and write for the program: calls whose result says how much.
#pragma once

#include "compiler/access.h"
#include "llvm/IR/InstrTypes.h"

namespace assay::compiler {

// Of a call of read, write, recv, send, fread, fwrite and the like, the buffer with the bytes that the call says it
// has filled or taken; nothing for other calls.
std::optional<RangeAccess> io_range(llvm::CallBase &call);

// Likewise of readv, writev, recvmsg, sendmsg and their kin, whose buffers are several.
std::optional<VectorAccess> io_vector(llvm::CallBase &call);

} // namespace assay::compiler
