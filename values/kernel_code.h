// The running kernel's code: which function lies where, and which of its memory may be read without an effect.
#pragma once

#include "values/sampling.h"

#include <cstdint>
#include <string>
#include <vector>

namespace values {

class KernelCode {
public:
  // Reads what the kernel tells of itself.
  KernelCode();

  // A phrase that says what is missing; empty: its code can be interpreted.
  const std::string &why_not() const { return why_not_; }
  // What the interpreter needs.
  const assay_kernel_memory &memory() const { return memory_; }
  // Where the kernel keeps the begin of its direct map; 0: at the place that x86-64 has without randomisation.
  uint64_t direct_map_variable() const { return direct_map_variable_; }
  void set_direct_map(uint64_t begin);
  bool is_ram(uint64_t address) const; // of the direct map

  struct Function {
    std::string name; // "[kernel] do_syscall_64"
    uint64_t begin = 0;
  };
  // The function at an address; null if there is none.
  const Function *function_at(uint64_t address) const;

private:
  bool read_symbols();
  bool read_memory();

  std::string why_not_;
  assay_kernel_memory memory_ = {};
  uint64_t text_ = 0, direct_map_variable_ = 0;
  std::vector<Function> functions_; // by begin
};

} // namespace values
