// The SITES section of a module (abi/sites.h), as it is being compiled.
#pragma once

#include "compiler/tags.h"

namespace assay::compiler {

// How a translation unit is instrumented.
struct UnitFacts {
  uint32_t tools;    // bits of abi/tools.def
  uint32_t counters; // a sum of enum AssayCounters
  uint32_t lines;    // a sum of enum AssayLines
};

class Sites {
public:
  explicit Sites(llvm::Module &module) : module_(module) {}

  // The id of the type, which from now on is described in the section.
  uint32_t type_id(const TaggedType &type);
  // Names the translation unit; every instrumented one has such an entry.
  void add_unit(llvm::StringRef name, const UnitFacts &facts);

private:
  void add(uint32_t kind, uint64_t hash, uint64_t size, llvm::StringRef name,
           llvm::StringRef comdat);
  llvm::Module &module_;
};

} // namespace assay::compiler
