// uop_agreement [--most N] [--from N] -- PROGRAM ARGUMENTS…
//
// Runs a program under single step and, beside it, its micro-ops; after every instruction all
// registers, all defined flags and all bytes that were stored must agree. Vector registers are compared
// whenever an instruction has to do with them, and now and then all of them. Prints what was executed,
// what is opaque by frequency, and what did not agree; exit 1 if anything did not.

#include "base/fail.h"
#include "binary/decoder.h"
#include "binary/machine.h"
#include "oracle/single_step.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using namespace binary;

constexpr uint64_t kNever = UINT64_MAX, kCompareAllEvery = 1024;
constexpr unsigned kMaxReports = 40;

class Agreement {
public:
  explicit Agreement(const std::vector<std::string> &command)
      : process_(command), memory_(process_) {}

  void run(uint64_t from, uint64_t most) {
    refresh();
    for (uint64_t skipped = 0; skipped < from && process_.running(); skipped++)
      process_.step();
    refresh();
    while (process_.running() && executed_ < most)
      one();
  }

  bool report() const {
    std::fprintf(
        stderr,
        "%llu instructions, %llu opaque (%.4f %%), %llu of unreadable memory, %llu disagree, %zu "
        "places\n",
        static_cast<unsigned long long>(executed_), static_cast<unsigned long long>(opaque_),
        executed_ ? 100.0 * static_cast<double>(opaque_) / static_cast<double>(executed_) : 0,
        static_cast<unsigned long long>(unreadable_), static_cast<unsigned long long>(wrong_),
        places_.size());
    std::vector<std::pair<uint64_t, std::string>> frequent;
    for (const auto &[name, times] : opaque_names_)
      frequent.emplace_back(times, name);
    std::sort(frequent.rbegin(), frequent.rend());
    for (const auto &[times, name] : frequent)
      std::fprintf(stderr, "opaque %12llu %s\n", static_cast<unsigned long long>(times),
                   name.c_str());
    return wrong_ == 0 && executed_ > 0;
  }

private:
  struct Place {
    uint32_t index = UINT32_MAX;
    bool vectors = false;
  };

  void refresh() {
    if (!process_.running())
      return;
    process_.read_general(machine_);
    process_.read_vectors(machine_);
  }

  bool touches_vectors(const Instruction &instruction) const {
    auto is_vector = [](unsigned reg) {
      return reg < ASSAY_REG_COUNT &&
             (reg >= ASSAY_REG_LANES || reg == ASSAY_REG_MXCSR || reg == ASSAY_REG_X87_CONTROL ||
              (reg >= ASSAY_REG_MASKS && reg < ASSAY_REG_TEMPORARIES));
    };
    for (const assay_uop &uop : code_.uops_of(instruction))
      if (is_vector(uop.dst))
        return true;
    return instruction.opaque;
  }

  const Place &place() {
    Place &found = places_[machine_.pc];
    if (found.index == UINT32_MAX) {
      std::byte bytes[16];
      size_t size = process_.read(machine_.pc, bytes);
      if (size < sizeof bytes) { // the end of a mapping
        size = 0;
        while (size < sizeof bytes && process_.read(machine_.pc + size, {bytes + size, 1}) == 1)
          size++;
      }
      auto index = static_cast<uint32_t>(code_.instructions.size());
      if (!decoder_.decode({bytes, size}, machine_.pc, code_))
        base::fail("the bytes at {:#x} are executed, but cannot be decoded", machine_.pc);
      found.index = index;
      found.vectors = touches_vectors(code_.instructions[index]);
    }
    return found;
  }

  void one() {
    const Place &at = place();
    const Instruction instruction = code_.instructions[at.index];
    memory_.forget();
    Step outcome = execute(code_, instruction, machine_, memory_);
    bool stepped = process_.step();
    if (!process_.running())
      return;
    executed_++;
    if (!stepped) { // a signal: what it does is not the instruction's
      refresh();
      return;
    }
    if (outcome == Step::fault) { // the kernel's clock page cannot be read from outside
      unreadable_++;
      refresh();
      return;
    }
    if (outcome == Step::opaque) {
      opaque_++;
      opaque_names_[mnemonic_name(instruction.mnemonic)]++;
      refresh();
      return;
    }
    native_.registers = machine_.registers;
    process_.read_general(native_);
    bool vectors = at.vectors || executed_ % kCompareAllEvery == 0;
    if (vectors)
      process_.read_vectors(native_);
    compare(instruction);
    machine_ = native_;
  }

  void compare(const Instruction &instruction) {
    std::string differences =
        oracle::differences(instruction, machine_, memory_, native_, process_);
    if (differences.empty())
      return;
    wrong_++;
    if (reported_[instruction.address]++ == 0 && reported_.size() <= kMaxReports) {
      std::byte bytes[16] = {};
      process_.read(instruction.address, bytes);
      std::fprintf(stderr, "%#llx %s%s\n", static_cast<unsigned long long>(instruction.address),
                   decoder_.text({bytes, instruction.length}, instruction.address).c_str(),
                   differences.c_str());
    }
  }

  oracle::SingleStep process_;
  oracle::KeptBack memory_;
  Decoder decoder_;
  Code code_;
  Machine machine_, native_;
  std::unordered_map<uint64_t, Place> places_;
  std::map<std::string, uint64_t> opaque_names_;
  std::unordered_map<uint64_t, uint64_t> reported_;
  uint64_t executed_ = 0, opaque_ = 0, unreadable_ = 0, wrong_ = 0;
};

} // namespace

int main(int argc, char **argv) {
  uint64_t most = kNever, from = 0;
  int i = 1;
  for (; i + 1 < argc && std::strcmp(argv[i], "--") != 0; i += 2) {
    uint64_t number = std::strtoull(argv[i + 1], nullptr, 0);
    (std::string_view(argv[i]) == "--from" ? from : most) = number;
  }
  if (i + 1 >= argc) {
    std::fprintf(stderr, "usage: uop_agreement [--most N] [--from N] -- PROGRAM ARGUMENTS...\n");
    return 2;
  }
  try {
    Agreement agreement({argv + i + 1, argv + argc});
    agreement.run(from, most);
    return agreement.report() ? 0 : 1;
  } catch (const base::Failure &failure) {
    std::fprintf(stderr, "uop_agreement: %s\n", failure.what());
    return 2;
  }
}
