// A module's span holds code and constants, too: constants are globals as well, and code is not accessed.
//
// Units that lie together and are equally hot are written as one run, so that an array that was
// used evenly is one entry. A module may have 2^18 runs; what is beyond is counted as a loss.
//
// When a module is unloaded, its words are written as of walk 0, which no later walk replaces. Then
// they are cleared, because another module may be loaded there.

#include "runtime/objects/globals.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/system/losses.h"
#include "runtime/objects/regions.h"
#include "runtime/objects/words.h"

namespace assay::objects {
namespace {

constexpr uint64_t kMaxRuns = 1 << 18; // of one module

template <typename F> void each_module(F f) {
  if (units.mode & ASSAY_WORDS_NO_GLOBALS)
    return;
  for (uint32_t i = 1, end = runtime.modules.count(); i <= end; i++) {
    const Module &m = runtime.modules.get(ModuleId{i});
    if (m.sites && !m.unloaded && have_words(m.start, m.end))
      f(ModuleId{i}, m);
  }
}

// Units of one module, in ascending order; those that are alike and lie together are one run.
class Writer {
public:
  Writer(uint64_t walk, ModuleId module, uint64_t bias)
      : record_{walk, (uint32_t)module, units.mode & ASSAY_WORDS_ENCODING}, bias_(bias) {}
  ~Writer() {
    end_run();
    write();
    if (left_out_)
      count_loss(ASSAY_LOSS_scattered_words, left_out_);
  }
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  void add(uint64_t address, uint64_t hotness) {
    if (run_.units && address - bias_ == run_.offset + run_.units * unit_bytes() &&
        hotness == run_.hotness) {
      run_.units++;
      return;
    }
    end_run();
    run_ = {address - bias_, 1, hotness};
  }

private:
  void end_run() {
    if (!run_.units)
      return;
    if (written_ == kMaxRuns) {
      left_out_++;
      return;
    }
    runs_[used_++] = run_;
    written_++;
    if (used_ == kRuns)
      write();
  }
  void write() {
    if (used_)
      runtime.file.append(ASSAY_RECORD_ObjectGlobals, record_, runs_, used_ * sizeof runs_[0]);
    used_ = 0;
  }
  static constexpr size_t kRuns = 512;
  AssayObjectGlobals record_;
  uint64_t bias_, written_ = 0, left_out_ = 0;
  AssayWordRun run_ = {};
  size_t used_ = 0;
  AssayWordRun runs_[kRuns];
};

void write_module(uint64_t walk, ModuleId module, const Module &m) {
  Writer writer(walk, module, m.bias);
  for_each_used_line((void *)m.start, m.end - m.start, [&](const LineUnits &line) {
    for (uint64_t left = line.used; left; left &= left - 1) {
      auto i = (uint32_t)__builtin_ctzll(left);
      writer.add(line.address + (line.place + i) * unit_bytes(), line.hotness[i]);
    }
  });
}

} // namespace

void note_globals() {
  each_module([](ModuleId, const Module &m) { note_region(m.start, m.end); });
}

void write_globals(uint64_t walk) {
  each_module([walk](ModuleId module, const Module &m) { write_module(walk, module, m); });
}

void end_globals(ModuleId module) {
  const Module &m = runtime.modules.get(module);
  if (!m.sites || units.mode & ASSAY_WORDS_NO_GLOBALS || !have_words(m.start, m.end))
    return;
  write_module(0, module, m);
  clear_words((void *)m.start, m.end - m.start);
}

void clear_globals() {
  each_module([](ModuleId, const Module &m) { clear_words((void *)m.start, m.end - m.start); });
}

} // namespace assay::objects
