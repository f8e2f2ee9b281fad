// The SITES section of a module (abi/sites.h), as it is being compiled.
#pragma once

#include "compiler/tags.h"

#include <vector>

namespace assay::compiler {

class Sites {
public:
  explicit Sites(llvm::Module &module) : module_(module) {}
  ~Sites(); // from here on the entries are kept, though nobody refers to them
  Sites(const Sites &) = delete;
  Sites &operator=(const Sites &) = delete;

  // The id of the type, which from now on is described in the section.
  uint32_t type_id(const TaggedType &type);
  // Names the translation unit and says how it is instrumented; every instrumented one has such an entry.
  // `modes` has one for each bit of a set of tools.
  void add_unit(llvm::StringRef source, uint64_t tools, llvm::ArrayRef<uint32_t> modes);
  // The layout of a record (abi/fields.h): once a program for each hash.
  void add_record(uint64_t hash, llvm::StringRef body);
  // The counters of a unit. `body` begins with two numbers of 64 bits, the distances from there to
  // the counters and to their base: they are filled in.
  void add_counters(uint32_t kind, llvm::StringRef body, llvm::GlobalVariable &counters,
                    llvm::GlobalVariable &base);

private:
  llvm::GlobalVariable *add(uint32_t kind, llvm::StringRef body, llvm::StringRef comdat);
  llvm::Module &module_;
  std::vector<llvm::GlobalValue *> kept_; // together, because each list of them is a new one
};

} // namespace assay::compiler
