// The counters of a translation unit's field accesses, as they are being placed, and what the runtime and the profile are told
// of them (abi/fields.h).
#pragma once

#include <string>
#include <vector>

#include "compiler/member_tags.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Module.h"

namespace assay::compiler {

// What one execution of a counter's stretch of code does to some leaves.
struct FieldItem {
  const RecordLayout *record = nullptr; // null: lost
  LeafRange leaves;
  uint64_t reads = 0, writes = 0, copied = 0;
  uint32_t base = 0; // index into the pointers of the counter; ASSAY_MAX_BASES: none of them
  int64_t start = 0; // of the record, bytes from that pointer
};

class UnitFields {
public:
  UnitFields(llvm::Module &module, bool has_windows);
  bool has_windows() const { return has_windows_; }

  // The number of a new counter.
  uint64_t add(const llvm::Function &function, uint32_t line, llvm::ArrayRef<FieldItem> items);
  // The first counter; the variable that holds its address.
  llvm::GlobalVariable *counters() { return counters_; }
  llvm::GlobalVariable *base() { return base_; }
  // Behind the last counter: the entries of the SITES section.
  void finish();

private:
  void add_record(const RecordLayout &record);

  llvm::Module &module_;
  const bool has_windows_;
  llvm::GlobalVariable *counters_, *base_;
  uint64_t count_ = 0;
  llvm::MapVector<uint64_t, const RecordLayout *> records_; // by hash
  llvm::MapVector<const llvm::Function *, uint64_t> functions_;
  std::string stream_; // of the counters
};

} // namespace assay::compiler
