// The snippets that log: what is put before instructions and behind routines to write into a
// thread's buffers (abi/trace_ring.h), and which register holds the position in a buffer meanwhile;
// of routine_mover.cc alone.
#pragma once

#include "binary/liveness.h"
#include "trace/module_code.h"
#include "trace/plan.h"

#include <array>
#include <optional>
#include <vector>

namespace trace {

// What is logged of a group before one instruction.
struct LogAction {
  uint32_t log = 0;
  const Group *group = nullptr;
  uint32_t first_value = 0, values = 0; // of the group
  bool commit = false;                  // the group is complete
  uint32_t number = 0;                  // of the group, among those of its log
};

class LogSnippets {
public:
  using Live = binary::VariableSet; // what the program, or what is logged later, still needs
  // Both must outlive it.
  LogSnippets(ModuleCode &module, const binary::FlowGraph &graph)
      : module_(module), code_(module.code), graph_(graph) {}

  // The register that holds the position in the buffer of groups; nullopt: memory alone does.
  std::optional<Gpr> holder() const { return holder_[0]; }
  // Bytes that were logged behind the position: it goes on when it must, so that what is logged
  // does not wait for it each time.
  using Pending = std::array<uint32_t, kLogs>;
  const Pending &pending() const { return pending_; }
  void begin_block(std::optional<Gpr> holder, const Pending &pending) {
    holder_ = {holder, std::nullopt};
    pending_ = pending;
  }
  // Has the position go on, before the instruction `index`.
  void settle(Live live, const binary::Block &block, uint32_t index);
  // Puts the position where it is wanted, if it is.
  void hold(std::optional<Gpr> wanted);
  // Takes the position from kBetween, where callers and callees leave it, if it is there: to wait
  // for a comparison is less than to wait for memory. Before an instruction where that register and
  // the flags hold nothing; at its address.
  void expect(uint64_t address);
  // An instruction wrote these registers; `all`: other code may have run.
  void drop_holders(binary::RegisterSet written, bool all);

  // Makes room in the buffers, before the instruction `index`. `slot`: of the runtime's function that does it.
  void check(const binary::Block &block, uint32_t index, Live live, uint32_t slot);
  // Behind the system call at `address`: where it returned 0, this may be a new thread or process.
  void begun(Live live, uint64_t address);
  // Before a system call that may have the kernel forbid others.
  void before_call();
  // In place of a system call that sets a handler.
  void act();
  // `settles`: the position goes on, once something is complete.
  void log(const LogAction &action, Live live, const binary::Block &block, uint32_t index,
           bool settles);
  // What a plan logs before an instruction. `first_start`: the number of the plan's first start.
  void log_points(const PlanStretch &stretch, uint32_t first_start, Live live,
                  const binary::Block &block, uint32_t index, bool settles);
  // Where an indirect jump arrives.
  void log_arrival(uint16_t number, Live live, const binary::Block &block);
  // What the counter of a loop of one block is before it.
  void save_counter(Gpr counter);
  // Behind the routine: what is done when a buffer is full. Calls begin(address) at each, of an
  // instruction that unwinds as it does.
  template <class Begin> void slow_paths(Begin begin) {
    for (const SlowPath &slow : slow_) {
      begin(slow.address);
      slow_path(slow);
    }
    for (const BegunPath &path : begun_) {
      begin(path.address);
      begun_path(path);
    }
    for (const Expected &expected : expected_) {
      begin(expected.address);
      expected_path(expected);
    }
  }

private:
  struct Scratch { // a register for a snippet: a dead one, or one that is kept meanwhile
    Gpr reg;
    std::optional<uint32_t> spill; // where it is kept
  };
  // Flags that are kept in rax, and rax where `has_rax`.
  struct KeptFlags {
    bool has_flags, has_rax;
  };
  struct SlowPath {
    uint64_t address; // of an instruction
    uint32_t slot;    // of what makes room
    uint32_t jump;    // its distance stands there
    uint32_t back;    // where the check ends
    uint32_t log;
    Scratch position;
    KeptFlags kept;
  };
  struct BegunPath {
    uint64_t address; // as above
    uint32_t jump, back;
    KeptFlags kept;
  };
  struct Expected {
    uint64_t address; // as above
    uint32_t jump, back;
  };
  void slow_path(const SlowPath &slow);
  void begun_path(const BegunPath &path);
  void expected_path(const Expected &path);
  void save_flags(KeptFlags kept);
  void restore_flags(KeptFlags kept);
  // Goes to what leaves all registers as they are, and comes back (assay_check).
  void call(uint32_t slot);
  Gpr longest_unused(binary::RegisterSet candidates, const binary::Block &block,
                     uint32_t from) const;
  void log_fixup(uint32_t at) { module_.fixups.push_back({at, ASSAY_FIXUP_log}); }
  void load_log(Gpr to, int32_t offset) { log_fixup(code_.load_fs(to, offset)); }
  void store_log(Gpr from, int32_t offset) { log_fixup(code_.store_fs(from, offset)); }
  Scratch take(binary::RegisterSet dead, binary::RegisterSet used, uint32_t spill,
               const binary::Block &block, uint32_t index);
  void give_back(const Scratch &scratch);
  Scratch take_position(uint32_t log, binary::RegisterSet used, Live live,
                        const binary::Block &block, uint32_t index);
  void release_position(uint32_t log, const Scratch &position);
  // So many bytes are complete.
  void advance(uint32_t log, const Scratch &position, uint32_t bytes, bool settles);
  void settle(uint32_t log, const Scratch &position);
  binary::RegisterSet held() const;
  unsigned condition_of(const binary::Instruction &branch) const;

  ModuleCode &module_;
  Assembler &code_;
  const binary::FlowGraph &graph_;
  std::array<std::optional<Gpr>, kLogs> holder_; // registers that hold a position
  Pending pending_ = {};
  std::vector<SlowPath> slow_;
  std::vector<BegunPath> begun_;
  std::vector<Expected> expected_;
};

} // namespace trace
