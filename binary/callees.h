// What calls leave as it was; of Program alone.
#pragma once

#include "binary/code.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace binary {

class Decoder;
class Program;
struct Routine;

// Inspects routines when somebody asks for them, and into those that they call, and remembers.
class Callees {
public:
  explicit Callees(const Program &program);
  ~Callees();

  // The general registers that are what they were when a call of this address has come back.
  RegisterSet kept_by(uint64_t callee);
  // The same of a call through a pointer: what the System V ABI says, less what routines whose address
  // is taken are seen to change.
  RegisterSet kept_by_pointers();
  // Inspects all routines, on so many threads. From then on several threads may ask.
  void look_into_all(unsigned threads);

private:
  struct Local {                                      // what is seen of one routine
    bool known = false, found = false, final = false; // inspected; to be settled; settled
    RegisterSet back =
        kAllRegisters;    // at its returns, if it is understood, and calls keep what the ABI says
    RegisterSet kept = 0; // at all exits, if …
    RegisterSet trust[16] = {};  // … calls keep these
    std::vector<uint32_t> calls; // routines, or kUnknown, kImport, kPointer
    std::vector<uint32_t> tails; // the same, jumped to for good
  };
  static constexpr uint32_t kUnknown = UINT32_MAX, kImport = kUnknown - 1, kPointer = kUnknown - 2;

  static constexpr RegisterSet kAllRegisters = static_cast<RegisterSet>(~RegisterSet{0});

  uint32_t callee_at(uint64_t address) const;
  void look_at(uint32_t routine, Decoder &decoder);
  const Local &known(uint32_t routine);
  void look_into(uint32_t routine);
  void settle(const std::vector<uint32_t> &routines);
  RegisterSet kept_by_callee(uint32_t callee);

  const Program &program_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<Local> locals_; // by routine
  std::optional<RegisterSet> by_pointers_;
};

} // namespace binary
