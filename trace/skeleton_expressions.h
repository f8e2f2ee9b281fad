// The steps of skeletons as expressions of C.
#pragma once

#include "trace/skeleton.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace trace {

// Accesses between two checks for room; trace/c/skeleton.h leaves twice as much.
inline constexpr size_t kAccessesAtOnce = 500;

using Variables = uint64_t; // a set of them, by number

Variables bit(unsigned variable);
// Whether no step writes it: 0, the bias, the base of fs.
bool is_constant(unsigned variable);
std::string name_of(unsigned variable);
std::string constant(int64_t value);

// What a `compute` step yields.
std::string value_text(const assay_uop &uop);
// An `access` step, with `more` added to its address.
std::string access_text(const SkeletonStep &step, const std::string &more = "");

Variables read_by(const SkeletonStep &step);
Variables writes(const SkeletonStep &step);

// What decides where a block that ends in a branch goes on: to its first successor if it holds.
struct Condition {
  std::string text;
  Variables read = 0;
};
// Asked behind the block's steps; empty text if it does not branch.
Condition condition_of(const SkeletonBlock &block);
std::string negated(const std::string &condition);

} // namespace trace
