// Accesses are counted down by instrumented code in a thread-local, so that counting them costs no shared
// line. A single thread gets what is left of the snapshot, and ends it at the first block end behind the
// mark: twice the same. Several get small pieces, and their sum is late by what is left of these.

#include "runtime/workingset/clock.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/clock.h"
#include "runtime/core/system/thread.h"
#include "runtime/workingset/lines.h"

thread_local constinit int64_t __assay_accesses_left = 0;

namespace assay::workingset {
namespace {

// Of this thread: accesses that it has said so far, and the piece that __assay_accesses_left counts down.
struct OwnClock {
  uint64_t accesses, given;
};
thread_local constinit OwnClock own_clock __attribute__((tls_model("initial-exec"))) = {};

constexpr uint64_t kPieces = 64; // of a snapshot, for each thread of several

struct {
  AssayTimeUnit unit;
  ProgramCpuTime cpu;
  uint64_t accesses, marks;
} constinit state = {};

} // namespace

void start_clock() {
  const OptionText wanted = runtime.options.time;
  state.unit = wanted.is("cpu")        ? ASSAY_TIME_CPU
               : wanted.is("accesses") ? ASSAY_TIME_ACCESSES
               : wanted.is("marks")    ? ASSAY_TIME_MARKS
                                       : ASSAY_TIME_WALL;
  if (state.unit == ASSAY_TIME_WALL && !wanted.is("wall"))
    say("the option time is wall, cpu, accesses or marks; wall is taken");
  if (state.unit == ASSAY_TIME_ACCESSES && !(units.mode & ASSAY_LINES_ACCESSES)) {
    say("time=accesses needs a program built with -fassay-workingset=accesses; wall is taken");
    state.unit = ASSAY_TIME_WALL;
  }
}

AssayTimeUnit time_unit() {
  return state.unit;
}

uint64_t first_interval() {
  if (state.unit == ASSAY_TIME_MARKS)
    return 0;
  if (runtime.options.interval)
    return runtime.options.interval;
  return state.unit == ASSAY_TIME_ACCESSES ? 1000000 : 10000;
}

uint64_t time_now(bool on_helper) {
  switch (state.unit) {
  case ASSAY_TIME_CPU: return state.cpu.us(on_helper);
  case ASSAY_TIME_ACCESSES: return __atomic_load_n(&state.accesses, __ATOMIC_RELAXED);
  case ASSAY_TIME_MARKS: return state.marks;
  default: return now_us();
  }
}

uint64_t take_accesses() {
  uint64_t used = (uint64_t)((int64_t)own_clock.given - __assay_accesses_left);
  own_clock.given = 0;
  __assay_accesses_left = 0;
  own_clock.accesses += used;
  return __atomic_add_fetch(&state.accesses, used, __ATOMIC_RELAXED);
}

void give_accesses(uint64_t left) {
  if (!single_threaded()) {
    // What a thread has not said when it ends is lost: at most an eighth of its own.
    uint64_t most = own_clock.accesses / 8 + kFirstPiece;
    left = left / kPieces + 1;
    left = left < most ? left : most;
  }
  own_clock.given = left;
  __assay_accesses_left = (int64_t)left;
}

void put_off(uint64_t accesses) {
  own_clock.given += accesses;
  __assay_accesses_left += (int64_t)accesses;
}

void count_mark() {
  state.marks++;
}

void reset_clock_in_child() {
  state.accesses = state.marks = 0;
  state.cpu.reset_in_child();
  own_clock.given = 0;
  __assay_accesses_left = 0;
}

} // namespace assay::workingset
