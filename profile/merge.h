// Adding profiles.
//
// Contexts are the same when their call stacks (build id and offset of every frame), types (64-bit
// hash) and origins are. Events are when their stacks and names are, blocks outside the heap when
// their owner (module; number of the thread) and offset are. Counts add, minima and maxima combine,
// peaks take the larger. Neighbours in time of different processes are not compared
// (lifetime_overlaps, same_alloc_cpu, same_free_cpu keep only what each process saw). No binary and
// no symbol is needed.
//
// Associative and commutative, but for the first_* and last_* fields of heap info blocks, which
// keep the order of merging.
#pragma once

#include "profile/profile.h"
#include "profile/tool.h"

#include <map>
#include <memory>
#include <unordered_map>

namespace profile {

// Puts things into a profile and gives equal things equal ids. The profile is canonical only after
// finish().
class Assembler {
public:
  Assembler();
  ModuleId module(const std::string &path, const std::vector<uint8_t> &build_id, bool instrumented);
  TypeId type(const Type &type);
  StackId stack(const Stack &stack);
  void declare(ModuleId module, TypeId type);
  void declare(ModuleId module, const Unit &unit);
  void add(const Event &event);

  // Adds a whole profile.
  void add(const Profile &other);
  // The same, where nobody needs it any more: what is large is moved.
  void add(Profile &&other);

  Profile &profile() { return profile_; }
  // What the tool with that bit of a set (abi/tools.h) adds up.
  ToolSums &sums(uint64_t tool);
  Profile finish();

private:
  NewIds add_shared(const Profile &other);
  void translate(Process &process, const NewIds &ids);
  struct StackHash {
    size_t operator()(const Stack &stack) const;
  };
  Profile profile_;
  std::map<std::pair<std::vector<uint8_t>, std::string>, ModuleId> modules_;
  std::map<Type, TypeId> types_;
  std::unordered_map<Stack, StackId, StackHash> stacks_;
  std::map<std::pair<StackId, std::string>, size_t> events_;
  std::vector<std::unique_ptr<ToolSums>> sums_; // by bit
};

// into += other.
void merge(Profile &into, const Profile &other);

} // namespace profile
