// The cost of a layout is the number of cache lines that an object's accesses bring in. It is
// computed, not guessed: each set of fields that were accessed together is laid over the
// candidate's offsets, for every place in a line where malloc may put an object. What lies side by
// side in memory and is walked through shares lines with its neighbours; there the cost is that of
// a whole row, so that packing fields together cannot look better than it is.
//
// The search moves one member at a time while that saves lines, then bytes. Records have some tens
// of members: the best order of all would differ little, and nobody reviews a diff that moves
// everything. Ties keep the declared order.

#include "analyze/layout_advice.h"

#include "abi/fields.h"
#include "analyze/type_names.h"
#include "base/stable_sort.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace analyze {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kMallocAlignment = 16;
constexpr uint64_t kRow = 64;       // objects of a row
constexpr size_t kMaxSets = 256;    // the most frequent ones decide
constexpr size_t kMaxMembers = 64;  // of a record that is searched
constexpr double kWorthwhile = .05; // of the lines
constexpr double kColdShare = .01;  // of the sets, for a member to be cold
constexpr double kSweepShare = .5;  // of the sets, for a sweep
constexpr double kAsGood = 1.01;    // times the lines of the best order

uint64_t align_up(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

uint64_t begin_of(const profile::Leaf &leaf) {
  return leaf.offset_bits / 8;
}

// Elements of an array of records are the leaf again and again: all of them are its bytes.
uint64_t end_of(const profile::Leaf &leaf) {
  return (leaf.offset_bits + leaf.size_bits + 7) / 8 + (leaf.elements - 1) * leaf.stride;
}

// A leaf's name leads to it: the base classes that it is in, each with `::` behind it, then the member, then what is in
// that, behind a `.` or `[`. Names of types have these as well, within brackets of their own.
struct LeafName {
  size_t bases = 0;                  // where the name of the last of them ends; 0: it is in none
  size_t member = std::string::npos; // where that of the member ends
};

LeafName leaf_name(const profile::Leaf &leaf) {
  LeafName parts;
  int depth = 0;
  for (size_t i = 0; i < leaf.name.size(); i++) {
    const char c = leaf.name[i];
    depth += brackets_opened(c);
    if (depth > 0)
      continue;
    if (c == '.' || c == '[') {
      parts.member = i;
      break;
    }
    if (leaf.flags & ASSAY_LEAF_BASE && leaf.name.compare(i, 2, "::") == 0)
      parts.bases = i;
  }
  return parts;
}

// Of a base class the whole base.
std::string member_name(const profile::Leaf &leaf) {
  const LeafName parts = leaf_name(leaf);
  return leaf.name.substr(0, parts.bases ? parts.bases : parts.member);
}

// A base class, and what the compiler adds to the record itself.
bool is_of_compiler(const profile::Leaf &leaf) {
  const LeafName parts = leaf_name(leaf);
  return parts.bases || (leaf.flags & ASSAY_LEAF_HIDDEN && parts.member == std::string::npos);
}

// An array that ends a record, of no element or one: mostly objects have more of them than it says.
bool may_be_longer(const profile::Leaf &leaf) {
  const bool is_nested = leaf.name.find("[]") != std::string::npos;
  return is_nested
             ? leaf.elements <= 1
             : leaf.flags & ASSAY_LEAF_ARRAY && (leaf.size_bits == 0 || leaf.type.ends_with("[1]"));
}

bool belongs(const Member &member, const profile::Record &record, const profile::Leaf &leaf) {
  const profile::Leaf &last = record.leaves[member.last];
  bool bits = last.flags & leaf.flags & ASSAY_LEAF_BIT_FIELD;
  return begin_of(leaf) < member.offset + member.size || bits ||
         (member_name(leaf) == member.name && leaf.name.size() > member.name.size());
}

// Of a nested record the leaves do not say where it begins and ends: there may be an empty base in front of them, and
// bytes behind that align it. What alignment does not explain between two members belongs to it.
void give_nested_all_bytes(const profile::Record &record, std::vector<Member> &members) {
  uint64_t end = 0; // of the one before
  for (size_t i = 0; i < members.size(); i++) {
    Member &member = members[i];
    if (leaf_name(record.leaves[member.first]).member != std::string::npos) {
      const uint64_t begin = std::min(align_up(end, member.alignment), member.offset);
      const uint64_t limit = i + 1 < members.size() ? members[i + 1].offset : record.size;
      const uint64_t size = align_up(member.offset - begin + member.size, member.alignment);
      member.size = std::max(member.offset - begin + member.size,
                             std::min(size, limit - std::min(limit, begin)));
      member.offset = begin;
    }
    end = std::max(end, member.offset + member.size);
  }
}

// As far as names say: a header may be of either language.
bool is_cpp(const profile::Record &record) {
  const std::string extension =
      record.file.substr(std::min(record.file.rfind('.'), record.file.size()));
  return record.name.find_first_of(":<") != std::string::npos ||
         (!extension.empty() && extension != ".c" && extension != ".h");
}

} // namespace

std::vector<Member> members_of(const profile::Record &record, const std::vector<uint64_t> &accesses,
                               size_t common) {
  std::vector<Member> members;
  for (uint32_t i = 0; i < record.leaves.size(); i++) {
    const profile::Leaf &leaf = record.leaves[i];
    if (members.empty() || !belongs(members.back(), record, leaf)) {
      members.push_back({.name = member_name(leaf), .first = i, .offset = begin_of(leaf)});
    } else if (member_name(leaf) != members.back().name) {
      members.back().name += "|" + member_name(leaf);
    }
    Member &member = members.back();
    member.last = i;
    member.size = std::max(member.size, end_of(leaf) - member.offset);
    member.alignment = std::max(member.alignment, leaf.alignment);
    member.is_of_compiler |= is_of_compiler(leaf);
    member.is_fixed |= member.is_of_compiler ||
                       (leaf.flags & ASSAY_LEAF_ARRAY && leaf.size_bits == 0) || i < common;
    member.accesses += accesses[i];
  }
  give_nested_all_bytes(record, members);
  if (!members.empty())
    members.back().is_fixed |= may_be_longer(record.leaves.back());
  return members;
}

FirstParts::Place FirstParts::place_of(const profile::Leaf &leaf) {
  return {leaf.name, leaf.type, leaf.offset_bits, leaf.size_bits};
}

FirstParts::FirstParts(const std::vector<profile::Record> &records) {
  for (const profile::Record &record : records) {
    std::vector<Place> places;
    std::ranges::transform(record.leaves, std::back_inserter(places), place_of);
    wholes_[std::move(places)] |= !record.name.starts_with("std::");
  }
}

size_t FirstParts::of(const profile::Record &record) const {
  return record.leaves.empty() ? 0 : std::max(flat(record), nested(record));
}

// Its first leaves, by names of its own. One leaf is alike in many that have nothing to do with each other.
size_t FirstParts::flat(const profile::Record &record) const {
  const auto half = static_cast<std::ptrdiff_t>(record.leaves.size() / 2);
  std::vector<Place> places;
  std::transform(record.leaves.begin(), record.leaves.begin() + half, std::back_inserter(places),
                 place_of);
  for (; places.size() > 1; places.pop_back())
    if (wholes_.contains(places))
      return places.size();
  return 0;
}

// Its first member, which is of another record.
size_t FirstParts::nested(const profile::Record &record) const {
  if (is_cpp(record))
    return 0;
  const profile::Leaf &leaf = record.leaves.front();
  const size_t dot = leaf_name(leaf).member;
  if (dot == std::string::npos || leaf.name[dot] != '.' || leaf.offset_bits != 0)
    return 0;
  const std::string begins = leaf.name.substr(0, dot + 1);
  std::vector<Place> places;
  for (const profile::Leaf &each : record.leaves)
    if (each.name.starts_with(begins)) {
      places.push_back(place_of(each));
      places.back().name.remove_prefix(begins.size());
    }
  const auto whole = wholes_.find(places);
  return whole != wholes_.end() && whole->second ? places.size() : 0;
}

std::vector<Hole> holes_of(const profile::Record &record, const std::vector<Member> &members) {
  std::vector<Hole> holes;
  uint64_t at = 0;
  for (const Member &member : members) {
    if (member.offset > at)
      holes.push_back({at, member.offset - at});
    at = std::max(at, member.offset + member.size);
  }
  if (record.size > at)
    holes.push_back({at, record.size - at});
  return holes;
}

namespace {

// A record ends less than its alignment behind its last member. Where there is more, it was declared with an alignment
// of its own (alignas, to keep objects in lines of their own), and no order makes it smaller than that.
uint64_t alignment_of(const profile::Record &record, const std::vector<Member> &members) {
  uint64_t alignment = 1, end = 0;
  for (const Member &member : members) {
    alignment = std::max(alignment, member.alignment);
    end = std::max(end, member.offset + member.size);
  }
  if (record.size < end + alignment)
    return alignment;
  return std::max(alignment, record.size & -record.size);
}

} // namespace

LineCosts::LineCosts(const profile::Record &record, const std::vector<Member> &members,
                     const FieldSets &sets)
    : record_(record), members_(members), alignment_(alignment_of(record, members)) {
  std::vector<size_t> member_of(record.leaves.size());
  for (size_t i = 0; i < members.size(); i++) {
    for (uint32_t leaf = members[i].first; leaf <= members[i].last; leaf++)
      member_of[leaf] = i;
  }
  std::vector<const profile::FieldSet *> ranked;
  for (const profile::FieldSet &set : sets)
    ranked.push_back(&set);
  base::stable_sort(ranked, [](auto *a, auto *b) { return a->count > b->count; });
  if (ranked.size() > kMaxSets)
    ranked.resize(kMaxSets);
  for (const profile::FieldSet *set : ranked) {
    Set pieces;
    pieces.count = double(set->count);
    pieces.adjacent = set->count ? double(set->adjacent) / double(set->count) : 0;
    for (uint32_t leaf : set->leaves) {
      const profile::Leaf &each = record.leaves[leaf];
      size_t member = member_of[leaf];
      // of an array one element is accessed at a time, in the middle of those there are
      uint64_t size = std::max<uint64_t>((each.size_bits + 7) / 8, 1);
      uint64_t offset = begin_of(each) + each.elements / 2 * each.stride;
      if (each.flags & ASSAY_LEAF_ARRAY)
        size = std::min<uint64_t>(size, 8);
      pieces.pieces.push_back({member, offset - members[member].offset, size});
      pieces.bytes += size;
    }
    total_ += set->count;
    sets_.push_back(std::move(pieces));
  }
}

double LineCosts::lines_alone(const Set &set, const Layout &layout, uint64_t alignment) {
  uint64_t step = std::max(alignment, kMallocAlignment), places = 0, lines = 0;
  for (uint64_t at = 0; at < kLine; at += step, places++) {
    uint64_t touched = 0; // of the first 64 lines; more are of arrays
    for (const Piece &piece : set.pieces) {
      uint64_t begin = at + layout.offsets[piece.member] + piece.offset;
      for (uint64_t line = begin / kLine; line <= (begin + piece.size - 1) / kLine; line++)
        touched |= 1ULL << line % 64;
    }
    lines += static_cast<uint64_t>(std::popcount(touched));
  }
  return double(lines) / double(places);
}

double LineCosts::lines_in_row(const Set &set, const Layout &layout) {
  std::set<uint64_t> lines;
  for (uint64_t i = 0; i < kRow; i++)
    for (const Piece &piece : set.pieces) {
      uint64_t begin = i * layout.size + layout.offsets[piece.member] + piece.offset;
      for (uint64_t line = begin / kLine; line <= (begin + piece.size - 1) / kLine; line++)
        lines.insert(line);
    }
  return double(lines.size()) / double(kRow);
}

double LineCosts::of(const Layout &layout) const {
  double lines = 0, count = 0;
  for (const Set &set : sets_) {
    double alone = set.adjacent < 1 ? lines_alone(set, layout, alignment_) : 0;
    double row = set.adjacent > 0 ? lines_in_row(set, layout) : 0;
    lines += set.count * (alone * (1 - set.adjacent) + row * set.adjacent);
    count += set.count;
  }
  return count > 0 ? lines / count : 0;
}

double LineCosts::least() const {
  double lines = 0, count = 0;
  for (const Set &set : sets_) {
    double bytes = double(set.bytes);
    // a run of bytes that begins at a multiple of 16 anywhere in a line
    double alone = 0;
    for (uint64_t at = 0; at < kLine; at += kMallocAlignment)
      alone += std::ceil((double(at) + bytes) / double(kLine)) / 4;
    lines += set.count *
             (alone * (1 - set.adjacent) + std::min(bytes / double(kLine), alone) * set.adjacent);
    count += set.count;
  }
  return count > 0 ? lines / count : 0;
}

double LineCosts::adjacent_share() const {
  double adjacent = 0, count = 0;
  for (const Set &set : sets_)
    adjacent += set.adjacent * set.count, count += set.count;
  return count > 0 ? adjacent / count : 0;
}

Layout LineCosts::as_declared() const {
  Layout layout;
  layout.size = record_.size;
  for (size_t i = 0; i < members_.size(); i++) {
    layout.order.push_back(i);
    layout.offsets.push_back(members_[i].offset);
  }
  return layout;
}

Layout LineCosts::place(std::vector<size_t> order) const {
  Layout layout;
  layout.offsets.resize(members_.size());
  uint64_t at = 0;
  for (size_t i : order) {
    at = align_up(at, members_[i].alignment);
    layout.offsets[i] = at;
    at += members_[i].size;
  }
  layout.size = align_up(at, alignment_);
  layout.order = std::move(order);
  return layout;
}

namespace {

struct Cost {
  double lines;
  uint64_t size;
  // A little fewer lines do not pay for a larger record.
  bool operator<(const Cost &other) const {
    if (std::abs(lines - other.lines) > 1e-9)
      return lines < other.lines;
    return size < other.size;
  }
};

Cost cost_of(const LineCosts &costs, const Layout &layout) {
  return {costs.of(layout), layout.size};
}

std::vector<size_t> moved(const std::vector<size_t> &order, size_t from, size_t to) {
  std::vector<size_t> result = order;
  size_t member = result[from];
  result.erase(result.begin() + static_cast<ptrdiff_t>(from));
  result.insert(result.begin() + static_cast<ptrdiff_t>(to), member);
  return result;
}

// The best order from this one, by moves of one member at a time.
Layout improve(const LineCosts &costs, const std::vector<Member> &members, Layout best) {
  Cost least = cost_of(costs, best);
  for (bool better = true; better;) {
    better = false;
    const std::vector<size_t> from = best.order;
    for (size_t i = 0; i < from.size(); i++)
      for (size_t j = 0; j < from.size(); j++) {
        size_t low = std::min(i, j), high = std::max(i, j);
        bool crosses_fixed = std::any_of(from.begin() + static_cast<ptrdiff_t>(low),
                                         from.begin() + static_cast<ptrdiff_t>(high) + 1,
                                         [&](size_t each) { return members[each].is_fixed; });
        if (i == j || crosses_fixed)
          continue;
        Layout candidate = costs.place(moved(from, i, j));
        if (Cost cost = cost_of(costs, candidate); cost < least) {
          least = cost;
          best = std::move(candidate);
          better = true;
        }
      }
  }
  return best;
}

// Sorts what lies between members that stay where they are.
template <class Before>
std::vector<size_t> sorted(std::vector<size_t> order, const std::vector<Member> &members,
                           Before before) {
  for (auto begin = order.begin(); begin != order.end();) {
    const auto end =
        std::find_if(begin, order.end(), [&](size_t each) { return members[each].is_fixed; });
    std::sort(begin, end, before);
    begin = end == order.end() ? end : end + 1;
  }
  return order;
}

// Members by how often they are accessed: where the search also starts, as single moves do not find it from everywhere.
std::vector<size_t> by_accesses(const std::vector<Member> &members) {
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), 0);
  return sorted(order, members, [&](size_t a, size_t b) {
    return std::pair(members[b].accesses, a) < std::pair(members[a].accesses, b);
  });
}

// By member: how many sets have it.
std::vector<double> uses_of(const std::vector<Member> &members, const FieldSets &sets) {
  std::vector<double> uses(members.size());
  for (const profile::FieldSet &set : sets)
    for (size_t i = 0; i < members.size(); i++)
      if (std::ranges::any_of(set.leaves, [&](uint32_t leaf) {
            return leaf >= members[i].first && leaf <= members[i].last;
          }))
        uses[i] += double(set.count);
  return uses;
}

// The order that a person reads best among those that cost as much as the best: hot members first,
// by their accesses, or else as they were found; then cold ones as they are declared, or else those
// of the largest alignment first, which leaves no holes.
Layout readable(const LineCosts &costs, const std::vector<Member> &members,
                const std::vector<bool> &is_cold, Layout best) {
  const Cost least = cost_of(costs, best);
  std::vector<size_t> found(members.size());
  for (size_t i = 0; i < best.order.size(); i++)
    found[best.order[i]] = i;
  for (const bool closes_holes : {false, true})
    for (const bool by_accesses : {true, false}) {
      // Least first.
      const auto rank = [&](size_t i) {
        const uint64_t colder = by_accesses ? ~members[i].accesses : found[i];
        const uint64_t narrower = closes_holes ? ~members[i].alignment : 0;
        return std::tuple(bool(is_cold[i]), is_cold[i] ? narrower : colder, i);
      };
      Layout candidate = costs.place(
          sorted(best.order, members, [&](size_t a, size_t b) { return rank(a) < rank(b); }));
      const Cost cost = cost_of(costs, candidate);
      if (cost.lines <= least.lines * kAsGood && cost.size <= least.size)
        return candidate;
    }
  return best;
}

void advise_split(const LineCosts &costs, const std::vector<Member> &members,
                  const std::vector<bool> &is_cold, LayoutAdvice &advice) {
  uint64_t cold_bytes = 0;
  std::vector<size_t> hot, cold;
  for (size_t i : advice.layout.order) {
    (is_cold[i] ? cold : hot).push_back(i);
    cold_bytes += is_cold[i] ? members[i].size : 0;
  }
  if (hot.empty() || cold_bytes < kLine / 2 || cold_bytes * 2 < advice.size_after)
    return;
  Layout split = costs.place(hot);
  uint64_t behind = align_up(split.size, 8); // the pointer to the cold ones, and they
  split.size = align_up(behind + 8, 8);
  for (size_t i : cold)
    split.offsets[i] = (1 << 20) + members[i].offset;
  advice.cold = cold;
  advice.lines_split = costs.of(split);
  advice.size_split = split.size;
}

} // namespace

LayoutAdvice advise_layout(const profile::Record &record, const std::vector<Member> &members,
                           const FieldSets &sets) {
  LineCosts costs(record, members, sets);
  LayoutAdvice advice;
  const Layout declared = costs.as_declared();
  advice.layout = declared;
  advice.size_before = advice.size_after = record.size;
  advice.lines_before = advice.lines_after = costs.of(declared);
  advice.is_sweep = costs.adjacent_share() > kSweepShare;
  if (members.size() < 2 || members.size() > kMaxMembers || !costs.sets())
    return advice;
  std::vector<Layout> found;
  for (Layout start : {declared, costs.place(by_accesses(members))})
    found.push_back(improve(costs, members, std::move(start)));
  Layout best = cost_of(costs, found[1]) < cost_of(costs, found[0]) ? found[1] : found[0];
  const std::vector<double> uses = uses_of(members, sets);
  std::vector<bool> is_cold(members.size());
  for (size_t i = 0; i < members.size(); i++)
    is_cold[i] = !members[i].is_fixed && uses[i] < kColdShare * double(costs.sets());
  best = readable(costs, members, is_cold, std::move(best));
  const Cost after = cost_of(costs, best);
  const bool fewer_lines = after.lines < advice.lines_before * (1 - kWorthwhile);
  const bool smaller = after.size < record.size && after.lines <= advice.lines_before + 1e-9;
  if (fewer_lines || smaller) {
    advice.is_worth_it = true;
    advice.layout = best;
    advice.lines_after = after.lines;
    advice.size_after = after.size;
  }
  advise_split(costs, members, is_cold, advice);
  return advice;
}

} // namespace analyze
