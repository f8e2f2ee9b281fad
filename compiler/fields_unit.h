// The counters of a translation unit's field accesses, as they are being placed, and what the
// runtime and the profile are told of them (abi/fields.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/member_tags.h"
#include "compiler/sites.h"
#include "compiler/source_places.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/IR/Module.h"

namespace assay::compiler {

// What one execution of a stretch of code does to some leaves.
struct FieldItem {
  const RecordLayout *record = nullptr; // null: lost
  LeafRange leaves;
  uint64_t reads = 0, writes = 0, copied = 0;
  uint32_t base = 0; // index into the pointers of the stretch; ASSAY_MAX_BASES: none of them
  int64_t start = 0; // of the record, bytes from that pointer
  llvm::Value *written = nullptr; // an element of an array
  uint32_t element = 0;           // which pointer of the stretch that is, from 1; 0: none of them
};

class UnitFields {
public:
  UnitFields(llvm::Module &module, bool has_windows);
  bool has_windows() const { return has_windows_; }

  // How often something is executed: a counter, or what follows from counters (abi/fields.h).
  struct Quantity {
    uint64_t number = 0;
    bool is_derived = false;
  };
  struct Term {
    Quantity quantity;
    bool is_negative;
  };
  // No counter where there are too many.
  std::optional<Quantity> add_counter();
  Quantity add_derived(llvm::ArrayRef<Term> terms);
  // The number of a new stretch.
  uint64_t add_stretch(const SourcePlace &place, Quantity executions,
                       llvm::ArrayRef<FieldItem> items);

  // Its AssayFieldsUnit, and the places of members.
  llvm::GlobalVariable *variable() { return variable_; }
  enum : unsigned { kCounters, kDistances, kAsks, kNumber };
  // AssayFieldsUnit::asks.
  llvm::GlobalVariable *asks() { return asks_; }
  // Behind the last stretch: the entries of the SITES section.
  void finish();

private:
  void add_record(Sites &sites, const RecordLayout &record);

  llvm::Module &module_;
  const bool has_windows_;
  llvm::GlobalVariable *counters_, *variable_, *asks_ = nullptr; // null without windows
  uint64_t counters_count_ = 0, derived_count_ = 0, stretch_count_ = 0;
  llvm::MapVector<uint64_t, const RecordLayout *> records_; // by hash
  llvm::MapVector<llvm::StringRef, uint64_t> functions_;
  std::string derived_, stretches_; // as they are written
};

} // namespace assay::compiler
