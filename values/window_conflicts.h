// Loads and stores of one sample that stand in each other's way.
#pragma once

#include "abi/samples.h"
#include "values/code_flow.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace values {

class WindowConflicts {
public:
  explicit WindowConflicts(const CodeCache &code) : flow_(code) {}

  // Calls found(store, load, kind of enum AssayConflictKind) for each pair; both are `where` as in
  // struct assay_sampled_value. Of each load:
  //   FORWARDING  the youngest store before it that overlaps it does not cover it, so the load waits until the store has left
  //   ALIAS       a younger one only seems to, by the low 12 bits that are compared first
  //   ORDER       the youngest store that overlaps it had its address from a younger load than the load itself has: a processor that
  //               does not wait for the store's address reads what was there before, and has to throw away all that follows
  using Found = std::function<void(uint32_t store, uint32_t load, uint32_t kind)>;
  void find(const assay_sample &sample, std::span<const assay_sampled_value> values,
            const Found &found);

private:
  struct Store {
    uint64_t address;
    unsigned bytes;
    uint32_t where;
    unsigned
        known; // step of the youngest load that its address comes from, from 1; 0: none in the sample
  };
  void load(const assay_sampled_value &value, unsigned known, const Found &found) const;
  void instruction(const InstructionFlow &flow, unsigned step,
                   std::span<const assay_sampled_value> values, const Found &found);

  CodeFlow flow_;
  std::vector<Store> stores_;                            // kept so that its memory is
  std::array<unsigned, ASSAY_PUBLISHED_REGISTERS> from_; // of each register: as Store::known
};

} // namespace values
