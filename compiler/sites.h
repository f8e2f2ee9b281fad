// The SITES section of a module (abi/sites.h), as it is being compiled.
#pragma once

#include "compiler/tags.h"

namespace assay::compiler {

class Sites {
public:
  explicit Sites(llvm::Module &module) : module_(module) {}

  // The id of the type, which from now on is described in the section.
  uint32_t type_id(const TaggedType &type);
  // Names the translation unit; every instrumented one has such an entry.
  // counters is a sum of enum AssayCounters.
  void add_unit(llvm::StringRef name, uint32_t counters);

private:
  void add(uint32_t kind, uint64_t hash, uint64_t size, llvm::StringRef name,
           llvm::StringRef comdat);
  llvm::Module &module_;
};

} // namespace assay::compiler
