// Working sets for tests, snapshot by snapshot.
#pragma once

#include "tests/unit/profile/profile_builder.h"

#include <map>

namespace profile_builder {

class WorkingSetBuilder {
public:
  explicit WorkingSetBuilder(uint32_t unit = ASSAY_TIME_ACCESSES) { set_.unit = unit; }

  // From the next snapshot on the lines belong to an allocation of this type.
  void owned(uint64_t first, uint64_t count, const std::string &type) {
    auto [known, is_new] = owners_.try_emplace(type, static_cast<uint32_t>(owners_.size()));
    if (is_new)
      set_.owners.push_back({stack(owners_.size()),
                             assembler_.type({owners_.size() * 0x100000001ULL, type, 64}),
                             {}});
    set_.owned.push_back({snapshots(), first, count, known->second});
  }
  // A snapshot that touches these lines: numbers at a distance of `step`.
  void touch(uint64_t first, uint64_t count, uint64_t step = 1) {
    std::map<uint64_t, uint64_t> groups;
    for (uint64_t line = first; count; line += step, count--)
      groups[line / ASSAY_GROUP_LINES] |= 1ULL << line % ASSAY_GROUP_LINES;
    std::vector<std::pair<uint64_t, std::vector<uint64_t>>> planes;
    for (auto [group, lines] : groups)
      planes.push_back({group, {lines}});
    set_.lines.push_back({snapshots(), 1, encoded_groups(planes)});
    set_.stacks.push_back({snapshots(), 1, stack(100)});
    uint64_t begin = snapshots() * kLength;
    set_.snapshots.push_back({begin, begin + kLength, begin, begin + kLength, ""});
  }
  profile::Profile finish() {
    profile::Process process;
    process.pid = 42;
    process.executable = "/bin/app";
    process.machine = profile::Machine{2, 4096, 64, 32768, 1 << 20, 8 << 20, "cpu", "6.1", "host"};
    process.workingset = set_;
    assembler_.profile().processes.push_back(process);
    return assembler_.finish();
  }

  static constexpr uint64_t kLength = 1000000; // of a snapshot

private:
  uint32_t snapshots() const { return static_cast<uint32_t>(set_.snapshots.size()); }
  profile::StackId stack(uint64_t number) {
    return assembler_.stack({{{assembler_.module("/bin/app", {1}, true), number * 16}}, false});
  }

  profile::Assembler assembler_;
  profile::WorkingSet set_;
  std::map<std::string, uint32_t> owners_;
};

} // namespace profile_builder
