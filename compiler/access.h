// Is this access interesting? The one place that decides which instructions touch memory that Assay
// counts, as pure functions.
#pragma once

#include <optional>

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/Instruction.h"
#include "llvm/Support/Alignment.h"

namespace assay::compiler {

// Whether nothing may stand behind the instruction in its block.
bool ends_block(const llvm::Instruction &instruction);

// A load, store or atomic of a fixed number of bytes at one address.
struct Access {
  llvm::Value *pointer;
  uint64_t bytes;    // 0 for a scalable vector
  llvm::Align align; // of pointer, as the instruction promises
  bool reads;
  bool writes; // an atomic read-modify-write does both
};

// A run of bytes whose length is a value: memcpy, memset and their like.
struct RangeAccess {
  llvm::Value *pointer;
  llvm::Value *length;         // bytes
  bool writes;                 // else it reads
  bool before = false;         // counted before the instruction: behind it is too late, or no place
  bool is_result = false;      // length is a call's result: nothing if it is negative
  llvm::Value *unit = nullptr; // of a result: the bytes that it counts; null for one
};

// A call that fills or empties the buffers of a vector (struct iovec), one after the other.
struct VectorAccess {
  llvm::Value *vector;  // of a message: its header
  llvm::Value *count;   // buffers; null for a message
  llvm::CallBase *call; // whose result is the bytes of all
  bool writes;
  bool before = false; // counted before the instruction at which it stands
};

// A call of a string function of libc: what it touches depends on the bytes that it finds.
struct StringAccess {
  llvm::Value *string;
  llvm::Value *other; // compared with string; null for one string
  llvm::Value *limit; // bytes; null for none
  bool writes;
  bool stops_at_zero;
  llvm::Value *length = nullptr; // of the string without its zero byte, where the call returns it
};

// Lanes of a vector, switched by a mask.
struct MaskedAccess {
  llvm::Value *pointer; // of lane 0; or, for gather and scatter, a vector of pointers
  llvm::Value
      *mask; // a vector of i1; or of lanes, whose signs count; or an integer, of which the bits do
  uint64_t element_bytes;
  bool writes;
  bool dense;                   // the active lanes lie one after the other in memory
  unsigned lanes = 0;           // those of the mask may be more
  llvm::Value *index = nullptr; // of each lane, in `scale` bytes from pointer; or null
  uint64_t scale = 0;
};

// What is asked for beside memory that is reached through pointers of unknown origin.
struct Interest {
  bool globals = false;
  bool stack = false;
};

// The access that the instruction makes, or nothing with the reason in the source.
std::optional<Access> interesting(llvm::Instruction &instruction, Interest interest);
llvm::SmallVector<RangeAccess, 2> interesting_ranges(llvm::Instruction &instruction,
                                                     const llvm::TargetLibraryInfo &library,
                                                     Interest interest);
std::optional<RangeAccess> interesting_io(llvm::CallBase &call, Interest interest);
std::optional<VectorAccess> interesting_vector(llvm::CallBase &call);
llvm::SmallVector<StringAccess, 2> interesting_strings(llvm::Instruction &instruction,
                                                       const llvm::TargetLibraryInfo &library,
                                                       Interest interest);
std::optional<MaskedAccess> interesting_masked(llvm::Instruction &instruction, Interest interest);

// May something observe or change counters inside this instruction: free, exit, throw, another
// thread's release? Counts of what came before must be in memory by then.
bool is_barrier(const llvm::Instruction &instruction);

// May the accesses of this function be counted at all?
bool interesting(const llvm::Function &function);

} // namespace assay::compiler
