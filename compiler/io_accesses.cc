// A buffer that read() fills and write() empties looks unused to whoever counts loads and stores
// only, and the advice to make it smaller would be wrong. Such calls are known by their names; how
// many bytes they touched is their result.
//
// Refused: to interpose these functions at run time. They are called by libraries, too, whose other accesses are not
// counted, and many are cancellation points.
//
// Scattered buffers (readv, sendmsg and their kin) are those of a vector in memory, which the
// runtime follows after the call.
//
// Not covered: several messages at once (recvmmsg, sendmmsg), asynchronous calls (aio_read, io_uring), mmap, and what
// libraries do.

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

struct VectorIo {
  int vector; // number of the argument; -1: none
  int count;  // of the argument; -1: the vector's argument is a message header, which has both
  bool writes;
};

VectorIo vector_io_of(StringRef name) {
  return StringSwitch<VectorIo>(name)
      .Cases({"readv", "preadv", "preadv64", "preadv2", "preadv64v2", "process_vm_readv"},
             {1, 2, true})
      .Cases({"writev", "pwritev", "pwritev64", "pwritev2", "pwritev64v2", "process_vm_writev",
              "vmsplice"},
             {1, 2, false})
      .Case("recvmsg", {1, -1, true})
      .Case("sendmsg", {1, -1, false})
      .Default({-1, -1, false});
}

// The name of the function of libc that is called, if its result is a number; else nothing.
StringRef name_of(const CallBase &call) {
  const Function *callee = call.getCalledFunction();
  if (!callee || !callee->isDeclaration() || callee->isIntrinsic() ||
      !call.getType()->isIntegerTy())
    return {};
  return callee->getName();
}

bool has(const CallBase &call, int argument, bool pointer) {
  return argument < (int)call.arg_size() &&
         (pointer ? call.getArgOperand((unsigned)argument)->getType()->isPointerTy()
                  : call.getArgOperand((unsigned)argument)->getType()->isIntegerTy());
}

} // namespace

std::optional<VectorAccess> io_vector(CallBase &call) {
  const VectorIo io = vector_io_of(name_of(call));
  if (io.vector < 0 || !has(call, io.vector, true) ||
      (io.count >= 0 && !has(call, io.count, false)))
    return std::nullopt;
  return VectorAccess{call.getArgOperand((unsigned)io.vector),
                      io.count >= 0 ? call.getArgOperand((unsigned)io.count) : nullptr, &call,
                      io.writes};
}

std::optional<RangeAccess> io_range(CallBase &call) {
  const Io io = io_of(name_of(call));
  if (io.buffer < 0 || !has(call, io.buffer, true) || (io.unit >= 0 && !has(call, io.unit, false)))
    return std::nullopt;
  RangeAccess range = {call.getArgOperand((unsigned)io.buffer), &call, io.writes};
  range.is_result = true;
  range.unit = io.unit >= 0 ? call.getArgOperand((unsigned)io.unit) : nullptr;
  return range;
}

} // namespace assay::compiler
