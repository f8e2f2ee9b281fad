// A recording's profile in parts: of each executable, or of each stretch of time.
#pragma once

#include "profile/profile.h"
#include "values/value_sums.h"

#include <span>
#include <string>
#include <vector>

namespace values {

inline constexpr const char *kSystemFile = "system.assay"; // of what belongs to no executable

// One file's share of a recording.
struct ProfilePart {
  std::string file; // "redis-server-2f3a90b1c4d5.assay"
  profile::Profile profile;
};

// Everything that was measured, by executable. Samples, values and how interpreting ended add up to
// those of `whole`. `ends` is indexed by the modules of `whole`, which need not be in canonical
// order.
std::vector<ProfilePart> split_by_executable(profile::Profile whole,
                                             std::span<const ValueSums::Ends> ends);

// Leaves the `lists` hotlists that came in most samples, so many instructions, and as many conflicts as
// lists, by their counts; the values of those that go are counted as a loss.
void cut_to(profile::Profile &profile, size_t lists, size_t instructions);

// Adds a part to what was measured before it, as one recording, and cuts that.
void add_up(profile::Profile &sum, profile::Profile part, size_t lists, size_t instructions);

} // namespace values
