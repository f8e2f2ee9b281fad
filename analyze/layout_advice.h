// A better order for the members of a record: what its layout costs in cache lines, and which order costs less.
#pragma once

#include "profile/fields.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace analyze {

// What moves as a whole: a member with all its leaves, members that overlap, bit-fields that share storage.
struct Member {
  std::string name;
  uint32_t first = 0, last = 0;                 // leaves
  uint64_t offset = 0, size = 0, alignment = 1; // bytes
  // Stays where it is: what is of the compiler, an array at the end whose length it does not say, a common first part.
  bool is_fixed = false;
  bool is_of_compiler =
      false; // not declared in the record: a base, the pointer to virtual functions
  uint64_t accesses = 0;
};

// Members of a record in the order of their offsets. `accesses` has one count for each leaf.
// `common` is how many leaves FirstParts says.
std::vector<Member> members_of(const profile::Record &record, const std::vector<uint64_t> &accesses,
                               size_t common = 0);

// Records whose first leaves, half of them at most, are all of another record's, or whose first member is another
// record: C code takes objects of one for those of the other.
class FirstParts {
public:
  // The records must outlive it.
  explicit FirstParts(const std::vector<profile::Record> &records);
  explicit FirstParts(const std::vector<profile::Record> &&) = delete;
  // How many leaves; 0 if there is no such part.
  size_t of(const profile::Record &record) const;

private:
  size_t flat(const profile::Record &record) const;
  size_t nested(const profile::Record &record) const;
  struct Place {
    std::string_view name, type;
    uint64_t offset_bits, size_bits;
    friend auto operator<=>(const Place &, const Place &) = default;
  };
  static Place place_of(const profile::Leaf &leaf);
  std::map<std::vector<Place>, bool>
      wholes_; // leaves of each record; whether it is none of the C++ library's
};

// Bytes of a record between members, or behind the last one.
struct Hole {
  uint64_t offset = 0, size = 0;
};
std::vector<Hole> holes_of(const profile::Record &record, const std::vector<Member> &members);

// An order of members, and the offsets that it gives them.
struct Layout {
  std::vector<size_t> order;     // indices of members, first to last
  std::vector<uint64_t> offsets; // by index of member
  uint64_t size = 0;
};

// Accesses to leaves of one object at a time, with how often they happened.
using FieldSets = std::vector<profile::FieldSet>;

// Lines that are brought in for each set on average: of objects that begin anywhere a malloc block
// may, or, for the share of sets whose neighbours in memory were accessed too, in a row.
class LineCosts {
public:
  LineCosts(const profile::Record &record, const std::vector<Member> &members,
            const FieldSets &sets);
  double of(const Layout &layout) const;
  // If the leaves of each set lay side by side.
  double least() const;
  uint64_t sets() const { return total_; }
  double adjacent_share() const;
  Layout as_declared() const;
  // Places the members in an order, as a compiler does.
  Layout place(std::vector<size_t> order) const;

private:
  struct Piece {
    size_t member;
    uint64_t offset, size; // in the member, bytes
  };
  struct Set {
    std::vector<Piece> pieces;
    uint64_t bytes = 0;
    double count = 0, adjacent = 0; // adjacent: share
  };
  static double lines_alone(const Set &set, const Layout &layout, uint64_t alignment);
  static double lines_in_row(const Set &set, const Layout &layout);

  const profile::Record &record_;
  const std::vector<Member> &members_;
  std::vector<Set> sets_;
  uint64_t total_ = 0;
  uint64_t alignment_ = 1;
};

struct LayoutAdvice {
  Layout layout;                            // members by index of members_of()
  double lines_before = 0, lines_after = 0; // for each set
  uint64_t size_before = 0, size_after = 0;
  bool is_worth_it = false; // fewer lines, or fewer bytes
  // Most windows accessed neighbours in memory too: lines are brought in whole, and order saves little.
  bool is_sweep = false;
  std::vector<size_t> cold; // members that hardly any set has: worth a record of their own
  double lines_split = 0;   // for each set, if the cold ones were behind a pointer
  uint64_t size_split = 0;
};

// The best order found from the declared one by moving members. No advice (not worth it) where nothing is better.
LayoutAdvice advise_layout(const profile::Record &record, const std::vector<Member> &members,
                           const FieldSets &sets);

} // namespace analyze
