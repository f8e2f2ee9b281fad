// Which frame of a call stack owns an allocation: the line that a person would change.
#pragma once

#include "analyze/regular_expression.h"
#include "image/frame.h"
#include "image/symbols.h"
#include "profile/profile.h"

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace analyze {

// Wrappers around allocation functions that the rule of names does not know.
class Wrappers {
public:
  // Functions whose names match any of these regular expressions, anywhere in the name. Throws
  // Failure for what is none.
  explicit Wrappers(const std::vector<std::string> &patterns);
  Wrappers() = default;
  // By linkage name, or by name where there is none.
  void add(const std::string &name) { names_.insert(name); }
  bool has(const image::Frame &frame) const;
  size_t names() const { return names_.size(); }
  // Patterns that match none of the functions which this, and its copies, were asked about.
  std::vector<std::string> unmatched() const;

private:
  struct Pattern {
    std::string text;
    RegularExpression expression;
    std::shared_ptr<bool> is_matched; // of all copies
  };
  bool matches(const std::string &function) const;

  std::vector<Pattern> patterns_;
  mutable std::unordered_map<std::string, bool> matched_; // what the patterns said of a name
  std::set<std::string> names_;
};

// What is known of the calls that reach an allocator through one function, to tell a wrapper from a
// function that makes something.
class WrapperSearch {
public:
  // One context: its frames, whose names are known wrappers, the name of the struct that is made, if
  // any, and the sizes of its objects.
  void add(const image::CallStack &frames, const Wrappers &known, const std::string &made,
           uint64_t least_bytes, uint64_t most_bytes);
  // Adds those that several functions call for objects of several sizes, and of more than one type,
  // or of none that is known.
  void find(Wrappers &wrappers) const;

private:
  struct Candidate {
    std::set<std::string> callers, types;
    uint64_t least_bytes = UINT64_MAX, most_bytes = 0;
  };
  std::unordered_map<std::string, Candidate> candidates_; // by linkage name
};

// The index of the innermost frame that is not machinery of allocation:
//   - allocation functions (malloc family, operator new and delete), and frames of this profiler
//     and of assay/annotate.h
//   - the C and C++ standard libraries: code in their shared objects, and functions of std:: and
//     __gnu_cxx:: (containers, allocators, smart pointers), inlined or not
//   - thin wrappers by the names that the field gives them (xmalloc, mallocWithAlarm,
//     pcache1Alloc), and members of allocator classes; the rule is at the head of ownership.cc
//   - functions that are in `wrappers`
// Where all frames are machinery, or only main's callers remain, the outermost frame that has a
// name and is no allocation function; 0 for lack of any. `frames` innermost first, not empty.
size_t owner(const image::CallStack &frames, const Wrappers &wrappers = Wrappers());

// Whether the program's own wrapper makes the innermost call: then a scalar type that the compiler
// saw there is the wrapper's, not the object's.
bool through_wrapper(const image::CallStack &frames, const Wrappers &wrappers = Wrappers());

// Whether a function is machinery of allocation, by its names and module.
bool is_allocation_machinery(const image::Frame &frame);

// Whether a function or a variable is the runtime's, which is linked into the program: nobody of
// the program's can change it. Takes linkage names and names for people.
bool is_profilers_own(const std::string &name);

// Adds to `wrappers` the functions that are wrappers by what a profile says of their callers.
void find_wrappers(const profile::Profile &profile, image::Symbols &symbols, Wrappers &wrappers);

} // namespace analyze
