// Blocks and not symbols: whose they are is found afterwards, with the symbol table. The compiler
// gives each global blocks of its own, so that no counter belongs to two.

#include "runtime/heap/non_heap.h"

#include "abi/sites.h"
#include "runtime/core/runtime.h"
#include "runtime/core/stacks/unwind.h"
#include "runtime/heap/counters.h"
#include "runtime/heap/wrap.h"

namespace assay::heap {
namespace {

// Calls f(kind, owner, begin, end) for each range whose accesses were asked for; owner as in the
// record: a module or a thread.
template <typename F> void each_range(F f) {
  if (units.mode & ASSAY_COUNTERS_GLOBALS)
    for (uint32_t i = 1, end = runtime.modules.count(); i <= end; i++) {
      const Module &m = runtime.modules.get(ModuleId{i});
      if (m.sites && !m.unloaded)
        f(ASSAY_NON_HEAP_GLOBALS, i, m.start, m.end);
    }
  if (units.mode & ASSAY_COUNTERS_STACK)
    for (uint32_t i = 0; i < known_stacks(); i++) {
      StackBounds stack = known_stack(i);
      f(ASSAY_NON_HEAP_STACK, stack.thread, stack.low, stack.high);
    }
}

// The records of one range, filled block by block.
class Writer {
public:
  // Walk 0: for good.
  Writer(uint64_t walk, uint32_t kind, uint32_t owner, uint64_t origin)
      : record_{walk, kind, owner}, origin_(origin) {}
  ~Writer() { write(); }
  Writer(const Writer &) = delete;
  Writer &operator=(const Writer &) = delete;

  void add(const BlockCount &block) {
    Counts counts = {};
    counts.reads = block.reads;
    counts.writes = block.writes;
    if (block.is_first) // wraps are those of all stripes
      add_wrapped((void *)block.address, 1, counts, record_.walk == 0);
    bool down = record_.kind == ASSAY_NON_HEAP_STACK;
    blocks_[used_++] = {down ? origin_ - block.address : block.address - origin_, counts.reads,
                        counts.writes};
    if (used_ == kBlocks)
      write();
  }

private:
  void write() {
    if (used_)
      runtime.file.append(ASSAY_RECORD_NonHeap, record_, blocks_, used_ * sizeof blocks_[0]);
    used_ = 0;
  }
  static constexpr size_t kBlocks = 1024;
  AssayNonHeap record_;
  uint64_t origin_;
  size_t used_ = 0;
  AssayBlockCounts blocks_[kBlocks];
};

void write_range(uint64_t walk, uint32_t kind, uint32_t owner, uint64_t begin, uint64_t end) {
  uint64_t origin = kind == ASSAY_NON_HEAP_STACK ? end : runtime.modules.get(ModuleId{owner}).bias;
  Writer writer(walk, kind, owner, origin);
  for_each_counted(
      begin, end, [](void *w, const BlockCount &block) { ((Writer *)w)->add(block); }, &writer);
}

} // namespace

void watch_non_heap() {
  each_range([](uint32_t, uint32_t, uint64_t begin, uint64_t end) {
    watch_counters((void *)begin, end - begin);
  });
}

void write_non_heap(uint64_t walk) {
  each_range([walk](uint32_t kind, uint32_t owner, uint64_t begin, uint64_t end) {
    write_range(walk, kind, owner, begin, end);
  });
}

void end_globals(ModuleId module) {
  const Module &m = runtime.modules.get(module);
  if (!m.sites)
    return;
  watch_counters((void *)m.start, m.end - m.start);
  write_range(0, ASSAY_NON_HEAP_GLOBALS, (uint32_t)module, m.start, m.end);
  zero_counters((void *)m.start, m.end - m.start);
}

void zero_non_heap() {
  each_range([](uint32_t, uint32_t, uint64_t begin, uint64_t end) {
    zero_counters((void *)begin, end - begin);
  });
}

} // namespace assay::heap
