// Every flush appends what changed, so a server that runs for days would fill a disk with records that
// belong together. They are joined as a reader would: losses, events and recursions added up here, what a tool
// wrote by the tool. Every other record is copied. The sums live only while this works.
//
// The file is read and not remembered: keeping the sums in memory all the time would cost a kilobyte a
// context for the few runs that ever come here.

#include "runtime/core/file/compaction.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/key_table.h"
#include "runtime/core/tool_callbacks.h"

namespace assay {
namespace {

struct Named {
  uint64_t key; // 0: free
  AssayEvent sums;
  const uint8_t *name;
  uint32_t name_size;
};

class Compaction {
public:
  static bool rewrite(const uint8_t *from, size_t size, ProfileFile &to) {
    Compaction c(to);
    bool good = c.begin() &&
                each_record(from, size, [&](const FileRecord &r) { return c.look(r); }) &&
                each_record(from, size, [&](const FileRecord &r) { return c.take(r); });
    if (good)
      c.write_sums();
    c.end();
    return good;
  }

private:
  explicit Compaction(ProfileFile &to) : to_(to) {}

  template <typename F> static void each_compactor(F f) {
    for (size_t i = 0; const Subscriber *tool = running_tool(i); i++)
      if (tool->compactor)
        f(*tool->compactor);
  }

  bool begin() {
    recursions_ = (AssayRecursion *)reserve(kRecursionBytes);
    events_ = (Named *)reserve(kEvents * sizeof(Named));
    bool good = recursions_ && events_;
    each_compactor([&](const Compactor &tool) { good &= tool.begin(); });
    return good;
  }
  void end() {
    if (recursions_)
      sys::unmap(recursions_, kRecursionBytes);
    if (events_)
      sys::unmap(events_, kEvents * sizeof(Named));
    each_compactor([](const Compactor &tool) { tool.end(); });
  }

  // First: what is there, and what a reset has made void.
  bool look(const FileRecord &r) {
    records_++;
    if (r.header.kind == ASSAY_RECORD_Reset)
      after_ = records_;
    each_compactor([&](const Compactor &tool) { tool.look(r); });
    return true;
  }

  bool take(const FileRecord &r) {
    bool is_void = ++taken_ < after_;
    switch (r.header.kind) {
    case ASSAY_RECORD_Recursion: return is_void || add(r.as<AssayRecursion>());
    case ASSAY_RECORD_Event: return is_void || add(r.as<AssayEvent>(), r);
    case ASSAY_RECORD_Loss: return add(r.as<AssayLoss>());
    default: break;
    }
    Compacted result = Compacted::kNotMine;
    each_compactor([&](const Compactor &tool) {
      if (result == Compacted::kNotMine)
        result = tool.take(r, is_void, to_);
    });
    if (result == Compacted::kNotMine)
      result = copy_record(r, true, to_);
    return result == Compacted::kDone;
  }

  bool add(const AssayRecursion &r) {
    if (r.context >= StackDepot::kMaxContexts)
      return false;
    if (r.context > last_context_)
      last_context_ = r.context;
    recursions_[r.context] = r;
    return true;
  }
  bool add(const AssayEvent &r, const FileRecord &record) {
    uint64_t name = assay_checksum(record.tail, record.tail_size, 0);
    Named *n = find(events_, kEvents, r.context << 32 | name, kEvents);
    if (n) {
      n->sums = {r.context, n->sums.count + r.count, n->sums.weight + r.weight};
      n->name = record.tail;
      n->name_size = (uint32_t)record.tail_size;
      return true;
    }
    return false;
  }
  bool add(const AssayLoss &r) {
    if (r.kind >= ASSAY_LOSS_KINDS)
      return false;
    losses_[r.kind] += r.count;
    return true;
  }

  void write_sums() {
    each_compactor([&](const Compactor &tool) { tool.write_sums(to_); });
    for (uint64_t i = 1; i <= last_context_; i++)
      if (recursions_[i].context)
        to_.append(ASSAY_RECORD_Recursion, recursions_[i]);
    for (uint64_t i = 0; i < kEvents; i++)
      if (events_[i].key)
        to_.append(ASSAY_RECORD_Event, events_[i].sums, events_[i].name, events_[i].name_size);
    for (uint64_t i = 0; i < ASSAY_LOSS_KINDS; i++)
      if (losses_[i])
        to_.append(ASSAY_RECORD_Loss, AssayLoss{i, losses_[i]});
  }

  static constexpr uint64_t kEvents = 1 << 16;
  static constexpr uint64_t kRecursionBytes = StackDepot::kMaxContexts * sizeof(AssayRecursion);
  ProfileFile &to_;
  AssayRecursion *recursions_ = nullptr;
  Named *events_ = nullptr;
  uint64_t losses_[ASSAY_LOSS_KINDS] = {};
  uint64_t last_context_ = 0;
  uint64_t records_ = 0, taken_ = 0, after_ = 0; // the record of the last reset, from 1
};

struct {
  uint64_t next_bytes;
} constinit state = {};

} // namespace

Compacted copy_record(const FileRecord &r, bool wanted, ProfileFile &to) {
  if (wanted)
    to.copy(r);
  return Compacted::kDone;
}

void compact_if_large() {
  uint64_t limit = runtime.options.compact_bytes, bytes = runtime.file.bytes();
  if (!limit || bytes <= (state.next_bytes > limit ? state.next_bytes : limit))
    return;
  uint64_t left = runtime.file.replace(Compaction::rewrite);
  state.next_bytes = 2 * (left ? left : bytes); // if it cannot be done, it may be later
}

static void reset_compaction_in_child() {
  state.next_bytes = 0;
}
ASSAY_RESET_IN_CHILD(reset_compaction_in_child);

} // namespace assay
