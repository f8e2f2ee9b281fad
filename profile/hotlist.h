// A hotlist: the most frequent values of a stream, in constant space, with what is known of their shares.
//
// Three algorithms, one interface:
//
//   space_saving   Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005.
//                  Keeps `capacity` values; a new value takes the place of the least frequent one, and its count begins
//                  where that one's ended, so that a count is too high by at most `error`. Exact while there are no more
//                  values than places.
//   counting       Counting samples: Gibbons, Matias, "New Sampling-Based Summary Statistics for Improving Approximate Query
//                  Answers", SIGMOD 1998, section 4. A value enters with probability 1 / threshold; from then on all of its
//                  occurrences are counted.
//   concise        Concise samples: the same, section 3. A uniform sample of the stream, in which a value that was drawn
//                  several times takes the space of one with a count.
//
// Values come in windows: one interrupt yields several values, which depend on each other. So
// intervals are computed over windows, not over values (docs/hotlists.md).
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

namespace profile {

enum class HotlistKind : uint8_t { space_saving, counting, concise };

// As users write it: "space-saving". Throws Failure for another word.
HotlistKind hotlist_kind(std::string_view word);
std::string_view hotlist_word(HotlistKind kind);

// What is said where lists of two kinds are to be added. Throws Failure.
[[noreturn]] void fail_of_kinds();

// A value that a hotlist holds.
struct HotEntry {
  uint64_t value = 0;
  uint64_t count = 0;
  uint64_t error =
      0; // space_saving: the count is too high by at most this. counting: parts that were merged, less 1
  uint64_t squares = 0; // sum over windows of count in the window, squared
  uint64_t cross = 0;   // sum over windows of count in the window * values in the window
  friend auto operator<=>(const HotEntry &, const HotEntry &) = default;
};

// What is known of one value's share of the stream.
struct HotValue {
  uint64_t value = 0;
  double share = 0;         // 0 to 1
  double low = 0, high = 0; // its interval of 95 % confidence
};

class Hotlist {
public:
  static constexpr unsigned kCapacity = 12;

  Hotlist() = default;
  Hotlist(HotlistKind kind, unsigned capacity, uint64_t seed)
      : kind_(kind), capacity_(capacity), random_(seed) {}
  // As it was written. Throws Failure if it makes no sense.
  Hotlist(HotlistKind kind, unsigned capacity, uint64_t seed, uint64_t values, uint64_t windows,
          uint64_t squares, uint32_t raises, std::vector<HotEntry> entries);

  // A window of `window_values` values begins, `window_values` > 0; add() then says which they are.
  void begin_window(uint64_t window_values);
  // `times` occurrences of a value in the window; each value once a window.
  void add(uint64_t value, uint64_t times, uint64_t window_values);

  // Continues this stream by another one of the same kind; the larger capacity counts. Of space_saving and concise the
  // result is what one stream would have given, in its bounds and in distribution; of counting, up to values that are
  // rarer than the threshold (docs/hotlists.md).
  void merge(const Hotlist &other);

  // The values that are frequent beyond doubt, most frequent first: those that occurred in at least
  // two windows and whose share is above 1 %.
  std::vector<HotValue> hot() const;
  // What is known of the share of a value that the list holds; nothing is reported of others.
  HotValue share_of(const HotEntry &entry) const;

  HotlistKind kind() const { return kind_; }
  unsigned capacity() const { return capacity_; }
  uint64_t values() const { return values_; }   // in the stream
  uint64_t windows() const { return windows_; } // that they came in
  uint64_t squares() const {
    return squares_;
  } // sum over windows of their number of values, squared
  uint64_t seed() const { return random_; } // with which the stream goes on
  // Of counting and concise: an occurrence is drawn with the probability 1 / threshold(), which is
  // kRaise to the power of raises().
  double threshold() const;
  uint32_t raises() const { return raises_; }
  const std::vector<HotEntry> &entries() const { return entries_; } // sorted by value
  friend bool operator==(const Hotlist &, const Hotlist &) = default;

private:
  HotEntry *find(uint64_t value);
  HotEntry &insert(uint64_t value);
  void replace_least(uint64_t value, uint64_t times, uint64_t window_values);
  void add_points(uint64_t value, uint64_t times, uint64_t window_values);
  void raise_threshold(uint32_t raises);
  void make_room();
  uint64_t footprint() const;
  bool flip(double probability_of_heads);

  HotlistKind kind_ = HotlistKind::space_saving;
  unsigned capacity_ = kCapacity;
  uint64_t values_ = 0, windows_ = 0, squares_ = 0;
  uint32_t raises_ = 0;
  uint64_t random_ = 0;
  std::vector<HotEntry> entries_;
};

// The interval of 95 % confidence of a share that was `share` in a sample of `size` independent
// draws (Wilson, "Probable inference, the law of succession, and statistical inference", 1927).
std::pair<double, double> wilson_interval(double share, double size);

} // namespace profile
