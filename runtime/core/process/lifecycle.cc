// From the first instruction of the process to the last: the table of contents of the runtime.
//
//   entry     of a static executable: shadows are mapped as they are touched (start_static.cc)
//   preinit   start(): before every constructor, also those of shared libraries
//   ctor      __assay_module_init of each instrumented module: its SITES; the first starts the helper
//   dtor      __assay_module_end of each: its memory may be unmapped from now on
//   helper    flush() every flush_ms, sooner at first, and on request
//   end       finish(): last destructor, _exit, quick_exit, a fatal signal; prepare_for_exec()

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>

#include "abi/stripes.h"
#include "abi/tools.h"
#include "runtime/core/file/compaction.h"
#include "runtime/core/file/machine.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/objects/origins.h"
#include "runtime/core/objects/pools.h"
#include "runtime/core/process/annotate.h"
#include "runtime/core/process/fatal_signals.h"
#include "runtime/core/process/fault_stack.h"
#include "runtime/core/process/mapped.h"
#include "runtime/core/process/units.h"
#include "runtime/core/runtime.h"
#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/stacks/taken_chain.h"
#include "runtime/core/stacks/unwind.h"
#include "runtime/core/system/clock.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/helper_thread.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/own_files.h"
#include "runtime/core/system/own_stack.h"
#include "runtime/core/system/proc_maps.h"
#include "runtime/core/system/real_functions.h"
#include "runtime/core/system/replaced_operators.h"
#include "runtime/core/system/thread.h"

namespace assay {

constinit Runtime runtime = {};
constinit RecordingPage recording_page = {};
thread_local constinit Thread this_thread = {};

uint32_t number_thread() {
  static constinit uint32_t numbered = 0;
  return this_thread.number = __atomic_add_fetch(&numbered, 1, __ATOMIC_RELAXED);
}

void set_recording(bool on) {
  runtime.wants_recording = recording_page.on = on;
}

void adopt_unseen_child() {
  if (!__atomic_exchange_n(&recording_page.is_adopted, true, __ATOMIC_RELAXED))
    continue_in_child();
}

bool owns_memory() {
  if (is_unseen_child())
    adopt_unseen_child();
  return sys::process_id() == runtime.pid;
}

namespace {

// The kernel has done so since 4.14; before, children by the system call itself go on as their parents.
constinit bool empties_page_at_fork = false;

void empty_page_at_fork() {
  empties_page_at_fork =
      !sys::failed(sys::advise(&recording_page, sizeof recording_page, MADV_WIPEONFORK));
}

// The first byte of the DIR of -fheapprof=DIR, where the program was built with it; else absent.
extern "C" __attribute__((weak, visibility("default"))) const char __assay_default_dir;

const char *find_variable(char **envp, const char *name) {
  size_t n = length_of(name);
  for (; envp && *envp; envp++)
    if (equal(*envp, name, n) && (*envp)[n] == '=')
      return *envp + n + 1;
  return nullptr;
}

// AT_SECURE of the auxiliary vector, which lies behind the environment.
bool is_privileged(char **envp) {
  while (*envp)
    envp++;
  for (auto *entry = (Elf64_auxv_t *)(envp + 1); entry->a_type != AT_NULL; entry++)
    if (entry->a_type == AT_SECURE)
      return entry->a_un.a_val != 0;
  return false;
}

constinit uint64_t next_flush_us = 0; // the helper's own

// Many children of forks live for less than it takes to make a control page or to set up the helper: theirs begins
// with a sleep.
constexpr uint64_t kFirstWaitOfChildUs = 10'000;
constinit bool lacks_control = false;

// In a process's first second sooner, at each doubling of its time: what is short has a curve as
// well, and loses less where it is killed.
uint64_t flush_interval_us() {
  constexpr uint64_t kFirstUs = 50'000, kSecondUs = 1'000'000;
  const uint64_t interval = (runtime.options.flush_ms ? runtime.options.flush_ms : 100) * 1000;
  uint64_t next = now_us() - runtime.forked_us;
  if (next < kFirstUs)
    next = kFirstUs;
  return next < interval && interval <= kSecondUs ? next : interval;
}

// On the helper thread. Returns the microseconds until the next time.
uint64_t run_due_work() {
  keep_time();
  if (lacks_control)
    runtime.control.create(runtime.file.live_path());
  lacks_control = false;
  uint64_t request = runtime.control.pending();
  bool full = take_dump_request() || request != ASSAY_REQUEST_NONE;
  bool due = now_us() >= next_flush_us;
  if (full || (due && runtime.options.flush_ms))
    flush(full ? FlushKind::kFull : FlushKind::kFlush);
  if (request != ASSAY_REQUEST_NONE)
    runtime.control.answer(runtime.file.has_failed() ? ASSAY_ANSWER_FAILED : ASSAY_ANSWER_DONE);
  if (full || due)
    next_flush_us = now_us() + flush_interval_us();
  uint64_t wait = publish_poll(), now = now_us();
  uint64_t flush_wait = next_flush_us > now ? next_flush_us - now : 0;
  return wait < flush_wait ? wait : flush_wait;
}

constinit bool helped = false; // the helper was started

void end_for_program();

// Once: where the runtime is a library, before the program's modules come, else with the first of them.
void start_helper(uint64_t first_wait_us = 0) {
  if (helped)
    return;
  helped = true;
  next_flush_us = now_us() + flush_interval_us();
  if (runtime.options.sideline)
    start_helper_thread(run_due_work, end_for_program, first_wait_us);
}

// Asked once: a child of a fork is the same program.
const char *executable() {
  static constinit char path[1024] = {};
  if (!path[0])
    sys::read_link("/proc/self/exe", path, sizeof path - 1);
  return path;
}

bool begins_with(const char *text, const char *begin) {
  while (*begin && *text == *begin) {
    text++;
    begin++;
  }
  return !*begin;
}

// Configure scripts run many small programs: autoconf's conftest, CMake's cmTC_1a2b3, what meson
// makes in a folder of its own. Profiles of them are of no use, and files that they leave in a
// source tree fail `make distcheck`.
bool is_configure_check() {
  const char *path = executable(), *name = path;
  for (const char *c = path; *c; c++) {
    if (begins_with(c, "/meson-private/"))
      return true;
    name = *c == '/' ? c + 1 : name;
  }
  return equal(name, "conftest", sizeof "conftest") || begins_with(name, "cmTC_");
}

uint64_t start_tools_with_shadows(uint64_t tools) {
  const uint64_t running = start_tools(tools);
  map_shadow_in_handler(); // of those that could not have theirs
  return running;
}

bool open_profile(bool forked) {
  const Options &o = runtime.options;
  if (!(forked ? runtime.file.open_in_same_run(executable())
               : runtime.file.open(o.dir, o.run, executable())))
    return false;
  begin_file(forked);
  if (!forked)
    runtime.control.create(runtime.file.live_path());
  return true;
}

// From 1 on.
void keep_in_range(uint64_t &value, const char *option, uint64_t max) {
  if (value >= 1 && value <= max)
    return;
  value = value ? max : 1;
  Text text;
  text.add("the option ").add(option).add(" goes from 1 to ").add_number(max);
  text.add("; ").add_number(value).add(" is taken");
  say(text.c_str());
}

void start_recording(char **envp, const char *sites, uint64_t sites_size) {
  if (is_privileged(envp)) { // set-uid: the user may not say where files are made
    start_tools_with_shadows(~0ULL);
    return;
  }
  const char *options = find_variable(envp, "ASSAY_OPTIONS");
  if (!options && is_configure_check()) {
    start_tools_with_shadows(~0ULL);
    return;
  }
  if (&__assay_default_dir)
    runtime.options.dir = &__assay_default_dir;
  parse_options(runtime.options, options);
  if (runtime.options.help) {
    print_option_help();
    sys::exit_process(0);
  }
  keep_in_range(runtime.options.depth, "depth", kMaxDepth);
  keep_in_range(runtime.options.stripes, "stripes", ASSAY_STRIPES);
  if (has_own_malloc())
    runtime.options.headers = false;
  start_clock();
  runtime.start_unix_ns = sys::clock_ns(CLOCK_REALTIME);
  if (sites)
    read_units(sites, sites_size);
  runtime.tools = start_tools_with_shadows(assay_tools_or_default(runtime.tools_wanted));
  if (!runtime.tools)
    return;
  if (!create_call_chains() || !runtime.depot.create() || !runtime.modules.create() ||
      !runtime.chunks.create() || (!runtime.options.headers && !runtime.side.create())) {
    count_loss(ASSAY_LOSS_no_memory, 1);
    return;
  }
  if (!is_interposed()) {
    count_loss(ASSAY_LOSS_not_interposed, 1);
    return;
  }
  if (!open_profile(false))
    return;
  runtime.file.flush();
  empty_page_at_fork();
  set_recording(true);
  if (runtime.options.signals) {
    use_fault_stack();
    catch_fatal_signals();
  }
  if (!runtime.instrumented) // no module has an initializer of ours
    start_helper();
}

} // namespace

void start(char **envp, bool instrumented, const char *sites, uint64_t sites_size) {
  if (runtime.pid)
    return;
  runtime.instrumented = instrumented;
  runtime.pid = sys::process_id();
  ReentrancyGuard busy;
  share_losses();
  thread_number();
  note_standard_error();
  find_real_functions();
  open_proc_files();
  create_own_stack();
  start_recording(envp, sites, sites_size);
  look_for_replaced_operators();
}

namespace {

// Locks are free, and this thread is inside a ReentrancyGuard section.
void write_end(AssayEndReason reason, int status) {
  stop_helper_thread();
  runtime.file.expect_end(reason != ASSAY_END_EXEC); // which may fail: then the file goes on
  publish_end();
  flush(FlushKind::kFull);
  runtime.file.append(ASSAY_RECORD_End, AssayEnd{reason, (uint64_t)status, now_us()});
  runtime.file.flush();
  runtime.control.remove(runtime.file.live_path());
}

struct {
  AssayEndReason reason;
  int status;
} constinit asked_end = {};

// Where this thread may no longer do what it could when the process began, the helper may. A child
// of a fork opens no files until its helper does, or its end; another process only removes one.
bool has_lost_rights() {
  return runtime.forked_us ? has_lost_rights_since_fork()
                           : !runtime.control.may_remove(runtime.file.live_path());
}

void write_end_with_rights(AssayEndReason reason, int status) {
  asked_end = {reason, status};
  if (!has_lost_rights() ||
      !end_on_helper_thread([] { write_end(asked_end.reason, asked_end.status); }))
    write_end(reason, status);
}

// On the helper thread, the only one that is left.
void end_for_program() {
  if (__atomic_exchange_n(&runtime.finished, true, __ATOMIC_ACQ_REL))
    return;
  write_end(ASSAY_END_EXIT, 0);
  set_recording(false);
}

} // namespace

// A handler interrupted the runtime and ends the program: locks may be held. Then the helper writes what it can.
static bool leaves_end_to_helper() {
  constexpr uint64_t kLongestDumpMs = 500; // where it waits for those locks
  if (this_thread.busy)
    dump_by_helper(kLongestDumpMs);
  return this_thread.busy;
}

void finish(AssayEndReason reason, int status) {
  if (!owns_memory() || !is_recording())
    return;
  if (this_thread.busy)
    runtime.file.expect_end(true);
  if (leaves_end_to_helper())
    return;
  if (__atomic_exchange_n(&runtime.finished, true, __ATOMIC_ACQ_REL))
    return;
  ReentrancyGuard busy;
  if (has_given_kept_time() || (reason == ASSAY_END_SIGNAL && !may_read_counter()))
    use_kernel_clock();
  on_own_stack([&] { write_end_with_rights(reason, status); });
  set_recording(false);
  if (runtime.options.verbose) {
    Text text;
    text.add("profile in ").add(runtime.file.path());
    say(text.c_str());
  }
}

// The helper is stopped: exec would end it anywhere, also in the middle of the last dump.
void prepare_for_exec() {
  if (!is_recording() || sys::process_id() != runtime.pid || leaves_end_to_helper())
    return;
  ReentrancyGuard busy;
  on_own_stack([] { write_end_with_rights(ASSAY_END_EXEC, 0); });
}

void continue_after_exec() {
  if (!may_record() || sys::process_id() != runtime.pid)
    return;
  ReentrancyGuard busy;
  runtime.control.create(runtime.file.live_path());
  helped = false;
  start_helper();
}

namespace {

extern "C" __attribute__((visibility("hidden"))) const ForkReset __start_assay_fork_resets[],
    __stop_assay_fork_resets[];

void begin_in_child(bool nested) {
  runtime.pid = sys::process_id();
  runtime.forked_us = now_us() + 1;
  runtime.file.reset_in_child();
  runtime.control.reset_in_child();
  runtime.modules.reset_lock();
  runtime.chunks.reset_in_child();
  runtime.side.reset_in_child();
  for (const ForkReset *reset = __start_assay_fork_resets; reset < __stop_assay_fork_resets;
       reset++)
    (*reset)();
  reset_proc_files_in_child();
  publish_fork();
  runtime.depot.reset_in_child(nested);
  set_recording(open_profile(true));
  if (!is_recording()) {
    count_loss_of_child(ASSAY_LOSS_unrecorded_child, 1);
    return;
  }
  runtime.file.flush(); // a child that is killed at once leaves a readable file
  lacks_control = true;
  helped = false;
  start_helper(kFirstWaitOfChildUs);
}

} // namespace

void continue_in_child() {
  if (empties_page_at_fork && is_recording()) // by a handler of pthread_atfork, which has allocated
    return;
  if (!runtime.wants_recording) {
    if (runtime.pid) // signals and limits of the child are its own all the same
      runtime.pid = sys::process_id();
    return;
  }
  ReentrancyGuard busy;
  reset_own_stack_in_child();
  on_own_stack([&] { begin_in_child(busy.nested()); });
}

} // namespace assay

using namespace assay;

extern "C" {

thread_local constinit uint32_t __assay_next_type = 0;

// Every instrumented module refers to this name: the version is in it.
__attribute__((visibility("default"))) extern const uint32_t ASSAY_ABI_SYMBOL;
const uint32_t ASSAY_ABI_SYMBOL = ASSAY_ABI_VERSION;

void __assay_program_start(char **envp, const char *sites, uint64_t sites_size) {
  start(envp, true, sites, sites_size);
}

void __assay_program_end(void) {
  finish(ASSAY_END_EXIT, 0);
}

// Where tools start late, in a program that was not rebuilt or whose runtime is a library, the
// helper and threads of the program may run already: no flush sees a tool between its start and its
// first record, and what has no shadow yet is not looked at.
void __assay_module_init(const void *sites, uint64_t sites_size) {
  ReentrancyGuard busy;
  {
    FlushesWait flushes;
    if (!read_units(sites, sites_size))
      count_loss(ASSAY_LOSS_mixed_counters, 1);
    if (!runtime.instrumented) { // an instrumented library in a program that was not rebuilt
      publish_instrumented();    // recorded or not, it counts in the shadow
      __atomic_store_n(&runtime.instrumented, true, __ATOMIC_RELEASE);
    }
    if (!runtime.finished && runtime.pid)
      runtime.tools = start_tools_with_shadows(runtime.tools_wanted);
  }
  if (!is_recording()) // its code marks in the shadows of its tools all the same
    return;
  add_instrumented_module(sites, sites_size);
  start_helper();
}

void __assay_module_end(const void *sites, uint64_t sites_size) {
  ReentrancyGuard busy;
  if (!busy.nested()) // else a handler that interrupted the runtime ends the program
    end_module(sites, sites_size);
}

__attribute__((visibility("hidden"), alias("__assay_module_init"))) void
assay_own_module_init(const void *, uint64_t);
}
