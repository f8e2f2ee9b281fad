// Places the fewest shadow checks that cover everything a function touches: every cache line, or every word.
#pragma once

#include "compiler/access.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/BasicBlock.h"

namespace assay::compiler {

// A byte that the program touched.
struct TouchedByte {
  llvm::Value *pointer;
  int64_t offset; // from pointer, bytes
  uint32_t mask =
      1; // of units: bit i: the i-th one from that of the byte on was touched, too; of lines only the first
};

// One look: at the lines of some bytes together.
struct Check {
  llvm::Instruction *after;
  llvm::SmallVector<TouchedByte, 2> bytes;
};

struct CheckOptions {
  uint64_t line_bytes;
  bool naive;         // looks at every access by itself
  bool across_blocks; // does a look spare those that can only follow it within the same moment?
  // Lines are so small that a check reads several at once, and accesses are longer than one: each
  // is checked by itself, and none follows from its neighbours. Else accesses are no longer than a
  // line.
  bool reads_several = false;
};

// Lines that a check reads at once.
constexpr unsigned kMaxTogether = 8;

// May a sample be taken inside this instruction, so that what was checked before must be checked
// again behind it? Not where another tool's hook is called.
bool takes_time(const llvm::Instruction &instruction);

// Is given the blocks of a function in reverse post-order, and the accesses of each in their order.
class CheckPlacement {
public:
  CheckPlacement(llvm::ScalarEvolution &evolution, const CheckOptions &options)
      : evolution_(evolution), options_(options) {}

  void begin(llvm::BasicBlock &block);
  void add(llvm::Instruction &instruction, const Access &access);
  void pause(); // time may pass here: what was looked at before is looked at again
  void end();

  llvm::ArrayRef<Check> all() const { return checks_; }

private:
  // From one address, by constant offsets.
  struct Touch {
    size_t number; // of the access, in the order of add()
    llvm::Instruction *instruction;
    llvm::Value *pointer;
    int64_t first, last; // bytes from the address
  };
  struct Base {
    uint64_t align = 1;  // the lines' own at most
    int64_t aligned = 0; // an offset from the address that is a multiple of it
    llvm::SmallVector<Touch, 4> touches;
  };
  // Every line of these bytes was looked at.
  struct Seen {
    const llvm::SCEV *address;
    int64_t first, last; // offsets from it
  };
  struct Wanted {
    size_t number, order; // of the last access that it is for; among the looks for that one
    Check look;
  };
  using SeenBytes = llvm::SmallVector<Seen, 8>;
  struct Span; // consecutive pieces that were touched

  std::pair<const llvm::SCEV *, int64_t> split(const llvm::SCEV *expression);
  void look_at_open();
  void join_wanted();
  void look(const llvm::SCEV *address, const Base &base);
  void look_at_each(const llvm::SCEV *address, const Base &base);
  void look_at_aligned(llvm::SmallVector<Span, 4> spans);
  void look_at_unaligned(const Span &span, uint64_t align);
  void want(const Touch &newest, llvm::ArrayRef<TouchedByte> bytes);
  SeenBytes seen_on_all_paths(llvm::BasicBlock &block) const;
  static bool is_seen(const SeenBytes &seen, const Seen &bytes);

  llvm::ScalarEvolution &evolution_;
  const CheckOptions options_;
  llvm::BasicBlock *block_ = nullptr;
  llvm::MapVector<const llvm::SCEV *, Base> open_; // since the last pause
  llvm::SmallVector<Wanted, 16> wanted_;           // of these
  size_t added_ = 0;
  SeenBytes seen_before_; // the block, or nothing after a pause
  SeenBytes seen_;        // in it since then
  llvm::DenseMap<llvm::BasicBlock *, SeenBytes> seen_at_end_;
  llvm::SmallVector<Check, 32> checks_;
};

} // namespace assay::compiler
