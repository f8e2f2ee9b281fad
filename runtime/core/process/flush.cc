// What the file lacks, appended: contexts, modules, origins, losses are written once, when they are
// new; what the tools count is asked of them. One flush at a time.

#include "abi/sites.h"
#include "runtime/core/file/compaction.h"
#include "runtime/core/file/machine.h"
#include "runtime/core/objects/origins.h"
#include "runtime/core/process/annotate.h"
#include "runtime/core/process/units.h"
#include "runtime/core/runtime.h"
#include "runtime/core/stacks/unwind.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

// What has been written to the file so far.
struct {
  uint32_t contexts; // how many, from number 1 on
  uint32_t modules;
  uint64_t recursions;
  SpinLock lock; // one flush at a time
} constinit written = {};

struct CommandLine { // with the executable's path before it
  char text[32 << 10];
  size_t size;
};

// Asked once: a child of a fork has its parent's.
const CommandLine &command_line() {
  static constinit CommandLine line = {};
  if (line.size)
    return line;
  long n = sys::read_link("/proc/self/exe", line.text, 4095);
  line.size = n > 0 ? (size_t)n : 0;
  line.text[line.size++] = 0;
  long fd = sys::open("/proc/self/cmdline", O_RDONLY);
  if (fd >= 0) {
    n = sys::read(fd, line.text + line.size, sizeof line.text - line.size - 1);
    line.size += n > 0 ? (size_t)n : 0;
    if (line.text[line.size - 1]) // the end was cut
      line.text[line.size++] = 0;
    sys::close(fd);
  }
  return line;
}

void write_program(bool forked) {
  const CommandLine &line = command_line();
  AssayProgram program = {sys::process_id(), sys::parent_process_id(), runtime.start_unix_ns,
                          runtime.tools, forked};
  runtime.file.append(ASSAY_RECORD_Program, program, line.text, line.size);
}

void write_options() {
  Text text;
  print_options(runtime.options, text);
  runtime.file.append(ASSAY_RECORD_Options, AssayOptions{0}, text.c_str(), text.size());
}

void write_header(bool forked) {
  write_program(forked);
  write_machine(runtime.file);
  write_options();
}

void write_sites(ModuleId module, const void *sites, uint64_t size) {
  runtime.file.append(ASSAY_RECORD_Sites, AssaySites{(uint32_t)module}, sites, size);
}

void write_modules() {
  for (uint32_t end = runtime.modules.count(); written.modules < end; written.modules++) {
    const ModuleId module{written.modules + 1};
    const Module &m = runtime.modules.get(module);
    AssayModule record = {};
    record.module = (uint32_t)module;
    record.instrumented = m.sites != nullptr;
    record.start = m.start;
    record.end = m.end;
    record.bias = m.bias;
    record.loaded_us = m.loaded_us;
    record.build_id_size = m.build_id_size;
    __builtin_memcpy(&record.build_id0, m.build_id, sizeof m.build_id);
    static_assert(offsetof(AssayModule, build_id0) + sizeof m.build_id == sizeof record);
    runtime.file.append(ASSAY_RECORD_Module, record, m.path, length_of(m.path) + 1);
    if (m.sites && !m.ended && !m.unloaded)
      write_sites(module, m.sites, m.sites_size);
  }
}

// Frames are written as (module, offset), resolved among the modules that are mapped now.
void write_contexts() {
  bool refreshed = false;
  uint64_t frames[kMaxDepth];
  uint32_t end = runtime.depot.end();
  write_origins(); // of contexts before the end
  for (; written.contexts + 1 < end; written.contexts++) {
    const ContextId context{written.contexts + 1};
    const Context *c = runtime.depot.get(context);
    if (!c) // another thread is adding it: next time
      break;
    for (uint32_t i = 0; i < c->depth; i++) {
      ModuleId module = runtime.modules.find(c->pcs[i]);
      if (module == kNoModule && !refreshed) {
        runtime.modules.refresh();
        refreshed = true;
        write_modules();
        module = runtime.modules.find(c->pcs[i]);
      }
      frames[i] = assay_frame((uint32_t)module, module != kNoModule
                                                    ? c->pcs[i] - runtime.modules.get(module).bias
                                                    : c->pcs[i]);
    }
    AssayContext record = {(uint32_t)context, (uint32_t)c->type, c->cut, (uint32_t)c->origin};
    if (c->cut &&
        c->depth >= runtime.options.depth) // shorter ones were joined, which is another loss
      count_loss_quietly(ASSAY_LOSS_stack_cut, 1);
    runtime.file.append(ASSAY_RECORD_Context, record, frames, c->depth * sizeof frames[0]);
  }
}

void write_recursions() {
  uint64_t recursions = runtime.depot.recursions();
  if (recursions == written.recursions)
    return;
  written.recursions = recursions;
  for (uint32_t i = 1; i <= written.contexts; i++)
    if (const Recursion &r = runtime.depot.get(ContextId{i})->recursion; r.count)
      runtime.file.append(ASSAY_RECORD_Recursion,
                          AssayRecursion{i, r.frame, r.count, r.levels, r.min, r.max});
}

// Of modules that were found to be gone.
void note_unloads() {
  bool any = false;
  for (uint32_t i = 1; i <= written.modules; i++)
    if (const ModuleId module{i}; runtime.modules.take_unloaded(module)) {
      any = true;
      publish_unload(module);
      runtime.file.append(ASSAY_RECORD_ModuleUnload, AssayModuleUnload{i, now_us()});
    }
  if (!any)
    return;
  runtime.depot.start_generation();
  invalidate_leave_rules();
}

// The section is read now: the module may be gone at the next flush.
void add_sites(const void *sites, uint64_t size) {
  Locked locked(written.lock);
  ModuleId module = runtime.modules.add_sites(sites, size);
  note_unloads(); // of one that lay here, and whose dlclose was not seen
  if (module != kNoModule && (uint32_t)module <= written.modules)
    write_sites(module, sites, size);
  write_modules();
  invalidate_leave_rules(); // of an instrumented module that was not known as one
}

void write_losses() {
#define ASSAY_LOSS(name, number, unit, what, remedy)                                               \
  if (uint64_t count = take_loss(ASSAY_LOSS_##name))                                               \
    runtime.file.append(ASSAY_RECORD_Loss, AssayLoss{number, count});
#include "abi/losses.def"
}

} // namespace

void begin_file(bool forked) {
  written.contexts = written.modules = 0;
  written.recursions = 0;
  write_header(forked);
  publish_begin();
  if (!forked) // else they are known, but for those that code without a module asks for
    runtime.modules.refresh();
  write_modules();
}

void add_instrumented_module(const void *sites, uint64_t size) {
  add_sites(sites, size);
  publish_module({runtime.modules.find((uint64_t)sites), sites, size});
}

void flush(FlushKind kind) {
  Locked locked(written.lock);
  if (runtime.modules.awaits_unload()) { // by a dlclose that was not seen
    runtime.modules.refresh();
    note_unloads();
  }
  publish_flush(kind);
  write_events();
  write_contexts();
  write_recursions();
  write_modules();
  write_losses();
  runtime.file.flush();
  compact_if_large();
}

void write_new_contexts() {
  if (written.contexts + 1 >= runtime.depot.end()) // a flush may be writing the last ones
    return;
  Locked locked(written.lock);
  write_contexts();
}

FlushesWait::FlushesWait() {
  written.lock.lock();
}

FlushesWait::~FlushesWait() {
  written.lock.unlock();
}

void reset() {
  Locked locked(written.lock);
  publish_reset();
  runtime.depot.reset_recursions();
  drop_events();
  runtime.file.append(ASSAY_RECORD_Reset, AssayReset{now_us()});
}

void before_unload() {
  if (!is_recording())
    return;
  ReentrancyGuard busy;
  Locked locked(written.lock);
  write_contexts();
  write_modules(); // a module that nobody has written is not missed afterwards
}

void after_unload() {
  if (!is_recording())
    return;
  ReentrancyGuard busy;
  Locked locked(written.lock);
  runtime.modules.refresh();
  note_unloads();
}

void end_module(const void *sites, uint64_t size) {
  ModuleId module = kNoModule;
  if (is_recording()) {
    Locked locked(written.lock);
    write_contexts();
    write_modules();
    module = runtime.modules.end(sites);
  }
  publish_module_end({module, sites, size});
}

static void reset_flush_in_child() {
  written.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_flush_in_child);

} // namespace assay
