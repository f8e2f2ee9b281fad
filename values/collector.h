// Who takes samples: one interface over the ways in which it can be done.
#pragma once

#include "abi/published_code.h"
#include "abi/samples.h"
#include "base/fail.h"
#include "values/kernel_code.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace values {

// How samples are taken.
struct SamplingSettings {
  uint64_t hertz = 1000;        // of each cpu
  uint32_t instructions = 16;   // of a sample, on average
  uint32_t most_skipped = 0;    // instructions before the first one recorded: fewer than this
  bool is_random_length = true; // from 1 to twice the average, less 1
  size_t code_pages = 5 << 10;  // of decoded code at most
  size_t code_entries = 7 << 18;
  bool times_loads = false; // where the collector can
  bool kernel_code = false; // likewise: interpret what the kernel does, too
};

// Takes what a collector sends. Neither may keep the references.
class MessageTaker {
public:
  virtual ~MessageTaker() = default;
  virtual void sample(const assay_sample &sample, std::span<const assay_sampled_value> values) = 0;
  virtual void miss(const assay_miss &miss) = 0;
};

struct CollectorCounts {
  uint64_t interrupts = 0;
  uint64_t in_kernel = 0; // of these, that came in the kernel and were not interpreted
  uint64_t lost = 0;      // for which there was no room
  // Of collectors that work in programs.
  uint64_t blocked = 0;           // interrupts that came late, because the program blocks them
  uint64_t unsampled_threads = 0; // that could not be sampled, or were not from some point on
  uint64_t no_place = 0;          // pages of code for which there was no room
  uint64_t programs = 0;          // that have begun to sample themselves
  uint64_t hidden_programs = 0;   // of which it may not be known what code they have
};

class Collector {
public:
  virtual ~Collector() = default;

  // Published code, zero at first; what is written there is what samples are interpreted by.
  virtual std::span<assay_code_page> pages() = 0;
  virtual std::span<assay_uop> entries() = 0;
  // From here on, that page is found by this key.
  virtual void announce(const assay_code_key &key, uint32_t page) = 0;

  // What is sampled from here on: a process that waits to execute a program, one that runs, with
  // all its threads; their children too; or everything. Throw Failure.
  virtual void watch_command(pid_t pid) = 0;
  virtual void watch_process(pid_t pid) = 0;
  virtual void watch_all() = 0;

  // The running kernel's code, if its samples are interpreted; else null, and why_no_kernel_code()
  // is a phrase if they were asked for.
  virtual const KernelCode *kernel_code() const { return nullptr; }
  virtual std::string why_no_kernel_code() const { return {}; }
  // Its bytes, as many as can be read.
  virtual std::vector<std::byte> kernel_bytes(uint64_t, size_t) { return {}; }

  // A variable of the environment, name and value, that a command's program needs; empty if none.
  virtual std::pair<std::string, std::string> environment() const { return {}; }

  // Gives what has come to `taker`. Waits for at most `milliseconds` if nothing has.
  virtual void poll(int milliseconds, MessageTaker &taker) = 0;
  // No more samples are taken; poll() yields what is left.
  virtual void stop() = 0;
  // When that is done: published code is zero again, and what was watched is sampled again. Throws
  // Failure where it cannot.
  virtual void begin_anew() { base::fail("this collector cannot begin anew"); }
  virtual bool can_begin_anew() const { return false; }

  virtual CollectorCounts counts() const = 0;
  virtual uint32_t kind() const = 0;            // enum AssayCollector
  virtual const std::string &clock() const = 0; // what makes interrupts: "cpu-clock"
};

} // namespace values
