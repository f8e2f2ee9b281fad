// A buffer that read() fills and write() empties looks unused to whoever counts loads and stores only, and the advice to make
// it smaller would be wrong. Such calls are known by their names; how many bytes they touched is their result.
//
// Refused: to interpose these functions at run time. They are called by libraries, too, whose other accesses are not
// counted, and many are cancellation points.
//
// Not covered: scattered buffers (readv, writev, recvmsg, sendmsg, io_uring), mmap, and what libraries do.

#include "compiler/io_accesses.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/Function.h"

using namespace llvm;

namespace assay::compiler {
namespace {

struct Io {
  int buffer; // number of the argument
  int unit;   // of the argument that says how many bytes the result counts; -1: one
  bool writes;
};

constexpr Io kNone = {-1, -1, false};

Io io_of(StringRef name) {
  constexpr Io kFills = {1, -1, true}, kTakes = {1, -1, false};
  return StringSwitch<Io>(name)
      .Cases({"read", "pread", "pread64", "recv", "recvfrom", "readlink"}, kFills)
      .Cases({"__read_chk", "__pread_chk", "__pread64_chk", "__recv_chk", "__recvfrom_chk",
              "__readlink_chk"},
             kFills)
      .Cases({"write", "pwrite", "pwrite64", "send", "sendto"}, kTakes)
      .Case("readlinkat", {2, -1, true})
      .Case("getrandom", {0, -1, true})
      .Cases({"fread", "fread_unlocked"}, {0, 1, true})
      .Cases({"__fread_chk", "__fread_unlocked_chk"}, {0, 2, true})
      .Cases({"fwrite", "fwrite_unlocked"}, {0, 1, false})
      .Default(kNone);
}

} // namespace

std::optional<RangeAccess> io_range(CallBase &call) {
  const Function *callee = call.getCalledFunction();
  if (!callee || !callee->isDeclaration() || callee->isIntrinsic() ||
      !call.getType()->isIntegerTy())
    return std::nullopt;
  const Io io = io_of(callee->getName());
  auto has = [&](int argument, bool pointer) {
    return argument < (int)call.arg_size() &&
           (pointer ? call.getArgOperand((unsigned)argument)->getType()->isPointerTy()
                    : call.getArgOperand((unsigned)argument)->getType()->isIntegerTy());
  };
  if (io.buffer < 0 || !has(io.buffer, true) || (io.unit >= 0 && !has(io.unit, false)))
    return std::nullopt;
  RangeAccess range = {call.getArgOperand((unsigned)io.buffer), &call, io.writes};
  range.is_result = true;
  range.unit = io.unit >= 0 ? call.getArgOperand((unsigned)io.unit) : nullptr;
  return range;
}

} // namespace assay::compiler
