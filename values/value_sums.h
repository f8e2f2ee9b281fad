// What samples add up to: a hotlist for each place and kind, in bounded memory.
#pragma once

#include "abi/samples.h"
#include "profile/profile.h"
#include "values/code_cache.h"
#include "values/code_flow.h"
#include "values/window_conflicts.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace values {

class ValueSums {
public:
  struct Settings {
    profile::HotlistKind hotlist = profile::HotlistKind::space_saving;
    unsigned capacity = profile::Hotlist::kCapacity;
    uint64_t seed = 1;
    size_t most_places = 100'000; // at which values are kept; others are counted as lost
    bool conflicts = false;       // stores and loads of one sample are compared
    bool even = false;            // samples are weighed, so that executions count, not time
  };
  ValueSums(CodeCache &code, const Settings &settings)
      : code_(code), settings_(settings), targets_(code), window_conflicts_(code) {}

  void add(const assay_sample &sample, std::span<const assay_sampled_value> values);

  uint64_t samples() const { return samples_; }
  uint64_t values() const { return values_count_; }
  uint64_t places() const { return lists_.size(); }
  uint64_t lost_values() const { return lost_values_; } // there were too many places

  // Adds everything to a profile, whose modules begin with the files of the code cache, in their
  // order. Once: values go with it.
  void move_to(profile::Profile &profile);
  // How interpreting ended, of the samples that came in each file of the code cache; those that are
  // missing at the end came in none.
  using Ends = std::array<uint64_t, ASSAY_SAMPLE_ENDS>;
  std::vector<Ends> ends_of_files() const;

  // Begins anew. What is known of code stays.
  void clear();

private:
  struct List {
    uint32_t where;
    uint8_t kind, detail;
    profile::Hotlist values;
    std::unique_ptr<profile::Hotlist> strides; // null: there was none
  };
  struct Counts {
    uint64_t interrupts = 0, executions = 0;
  };
  struct Pair { // a store and a load
    uint32_t store, load, kind;
    friend bool operator==(const Pair &, const Pair &) = default;
  };
  struct PairHash {
    size_t operator()(const Pair &pair) const {
      return (uint64_t{pair.store} << 32 | pair.load) * 0x9e3779b97f4a7c15 >> 7 ^ pair.kind;
    }
  };

  struct ProcessAddress {
    uint32_t pid;
    uint64_t address;
    friend bool operator==(const ProcessAddress &, const ProcessAddress &) = default;
  };
  struct ProcessAddressHash {
    size_t operator()(const ProcessAddress &at) const {
      return (at.address ^ uint64_t{at.pid} << 40) * 0x9e3779b97f4a7c15 >> 7;
    }
  };

  using Clock = std::chrono::steady_clock;
  struct CodeAddress {
    uint64_t value = 0; // that stands for it
    uint32_t where = 0; // 0: not looked up, or its page may come
    Clock::time_point when;
  };

  List *list_at(uint32_t where, unsigned kind, unsigned detail);
  profile::Hotlist new_hotlist(uint64_t seed) const;
  uint64_t translated(const assay_sample &sample, const assay_sampled_value &value);
  CodeAddress &code_address(uint32_t pid, uint64_t address);
  uint32_t where_of_target(uint32_t pid, uint64_t target);
  uint64_t weight_of(const assay_sample &sample) const;
  void add_window(std::span<const assay_sampled_value> of_one_list, const assay_sample &sample,
                  uint64_t weight);
  void count_executions(const assay_sample &sample, std::span<const assay_sampled_value> values,
                        uint64_t weight);

  CodeCache &code_;
  Settings settings_;
  JumpTargets targets_;
  WindowConflicts window_conflicts_;
  uint64_t samples_ = 0, values_count_ = 0, lost_values_ = 0;
  uint64_t interrupts_ = 0, executions_ = 0; // sums of counts_
  std::vector<Ends> ends_ =
      std::vector<Ends>(1); // of samples in no file that is known, then by file
  std::unordered_map<uint64_t, uint32_t> index_; // where, kind, detail: in lists_
  std::vector<List> lists_;
  std::unordered_map<uint32_t, Counts> counts_; // by where
  std::unordered_map<Pair, uint64_t, PairHash> conflicts_;
  std::unordered_map<ProcessAddress, CodeAddress, ProcessAddressHash> code_addresses_;
  Clock::time_point now_; // when the sample came that is added
  // Of the sample that is added; kept so that their memory is.
  std::vector<uint64_t> numbers_;           // values of one list
  std::vector<assay_sampled_value> sorted_; // of the sample that is added
};

// The value that stands for a place in code (profile::code_value_file()).
uint64_t code_value(const CodeFile &file, uint64_t offset);

} // namespace values
