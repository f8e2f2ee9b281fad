// A sample ends on the helper thread when its time is up, or on the thread that calls assay_mark,
// with time=marks: that is the clock of tests, because it makes a run the same each time.
//
// A sample looks at the regions that objects lie in, and there at the pages of the shadow that were
// touched. Where that takes more than its share of the time, the following samples are longer:
// hotness is in samples, whatever they last.

#include "runtime/objects/sampler.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/clock.h"
#include "runtime/objects/regions.h"
#include "runtime/objects/words.h"

namespace assay::objects {
namespace {

constexpr uint64_t kMaxShare = 50; // one part in so many of a sample may go into ending it
constexpr uint64_t kInterval = 10000;

struct {
  SpinLock lock; // of all below
  AssayTimeUnit unit;
  ProgramCpuTime cpu;
  uint64_t interval, due, samples;
} constinit sampler = {};

uint64_t now_in_unit() {
  return sampler.unit == ASSAY_TIME_CPU ? sampler.cpu.us(true) : now_us();
}

// Under the lock.
void end_sample() {
  for_each_region(sample_words);
  __atomic_fetch_add(&sampler.samples, 1, __ATOMIC_RELAXED);
}

} // namespace

void start_sampler() {
  const OptionText wanted = runtime.options.time;
  sampler.unit = wanted.is("cpu")     ? ASSAY_TIME_CPU
                 : wanted.is("marks") ? ASSAY_TIME_MARKS
                                      : ASSAY_TIME_WALL;
  sampler.interval = first_sample_interval();
  sampler.due = sampler.interval;
}

AssayTimeUnit sample_unit() {
  return sampler.unit;
}

// The option is in accesses where another tool counts time so.
uint64_t first_sample_interval() {
  if (sampler.unit == ASSAY_TIME_MARKS)
    return 0;
  const bool is_in_accesses = runtime.options.time.is("accesses");
  return runtime.options.interval && !is_in_accesses ? runtime.options.interval : kInterval;
}

uint64_t sample_interval() {
  return sampler.interval;
}

uint64_t samples_taken() {
  return __atomic_load_n(&sampler.samples, __ATOMIC_RELAXED);
}

uint64_t poll_sampler() {
  if (sampler.unit == ASSAY_TIME_MARKS || !is_recording())
    return ~0ULL;
  Locked locked(sampler.lock);
  uint64_t now = now_in_unit();
  if (now >= sampler.due) {
    uint64_t began = now_us();
    end_sample();
    uint64_t took = now_us() - began;
    while (took * kMaxShare > sampler.interval)
      sampler.interval *= 2;
    now = now_in_unit();
    sampler.due = now + sampler.interval;
  }
  uint64_t wait = sampler.due - now;
  return sampler.unit == ASSAY_TIME_CPU ? wait / 2 + 500 : wait; // several threads use it up sooner
}

void sample_at_mark() {
  if (sampler.unit != ASSAY_TIME_MARKS)
    return;
  Locked locked(sampler.lock);
  end_sample();
}

void reset_sampler_in_child() {
  sampler.lock.reset();
  sampler.samples = 0;
  sampler.cpu.reset_in_child();
  sampler.due = sampler.interval;
}

} // namespace assay::objects
