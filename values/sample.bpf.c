// The collector in the kernel: on each event it interprets the next instructions of what was
// interrupted (abi/sample_run.h) and sends what they computed. It changes nothing: not the process,
// not its memory, not its timing but by the time it takes.
//
// Code is looked up in three steps. `places` says by process and address which published page lies
// there, and forgets the oldest. Where it has nothing, the kernel's own list of mappings gives the
// file and the offset in it, by which `files` finds the page that another process may have brought
// in. Where that has nothing either, the tool is told, once in a while, and decodes. The kernel
// answers for one mapping in an interrupt; so `mappings` keeps what it has said.
//
// What lies at an address may change (exec, dlclose), also to code that has the same bytes there. So
// what `places` and `mappings` say of a process is asked again where the kernel's counter of changes
// to its mappings has gone on (mm_lock_seq; a kernel before 6.4 has none, and is asked in each
// sample). It is asked for where the sample begins, as the kernel answers once; if something else
// lies there by now, all that is known of the process is forgotten. So what follows in the first
// sample after a change may still be taken for what was there before. Refused: tracepoints of munmap
// and mmap, with which each system call of the machine takes longer. Of code without a file the
// bytes of each instruction are compared beside that, of files those of the first one in a page.

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "abi/sample_state.h"
#include "values/sampling.h"

char LICENSE[] SEC("license") = "GPL";

// Of the kernel's own structs, what is read; the loader finds the offsets (CO-RE).
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct super_block {
  __u32 s_dev;
};
struct inode {
  unsigned long i_ino;
  struct super_block *i_sb;
  __u32 i_generation;
};
struct file {
  struct inode *f_inode;
};
struct vm_area_struct {
  unsigned long vm_start;
  unsigned long vm_end;
  unsigned long vm_pgoff;
  struct file *vm_file;
};
struct thread_struct {
  unsigned long fsbase;
  unsigned long gsbase;
};
struct task_struct {
  void *stack;
  int pid;
  int tgid;
  struct mm_struct *mm;
  struct thread_struct thread;
};
// From 6.13 on; before, from 6.4 on. Both count changes of what is mapped.
struct sequence {
  unsigned sequence;
};
struct mm_struct {
  struct sequence mm_lock_seq;
};
struct mm_struct___int {
  int mm_lock_seq;
};
#pragma clang attribute pop

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct assay_interpreter);
} interpreters SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1); // the loader sets how many
  __type(key, __u32);
  __type(value, struct assay_code_page);
} pages SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct assay_uop);
} entries SEC(".maps");

struct place_key {
  __u64 page;
  __u32 process;
  __u32 memory; // differs after exec, and after something else was found mapped
};
struct place {
  __u32 number;
  __u32 changes; // of what the process has mapped, when the kernel was asked
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 32768);
  __type(key, struct place_key);
  __type(value, struct place);
} places SEC(".maps");

// How often something else was found where a process had code.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 1024);
  __type(key, __u64); // process, memory
  __type(value, __u32);
} remapped SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __type(key, struct assay_code_key);
  __type(value, __u32);
} files SEC(".maps");

// The mapping of which a process's code was asked for last, in each 2 MiB.
struct mapping {
  __u64 begin, end;
  __u64 shift; // added to an address: where that is in the file; of code without a file 0
  __u64 file;  // as in struct assay_code_key
  __u32 device, version;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 8192);
  __type(key, struct place_key);
  __type(value, struct mapping);
} mappings SEC(".maps");

// What was missed lately, so that the tool hears of a place once.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct assay_code_key);
  __type(value, __u64);
} misses SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} messages SEC(".maps");

struct assay_sampling_settings settings SEC(".data.settings");
struct assay_sampling_counts counts SEC(".data.counts");
struct assay_kernel_memory kernel_memory SEC(".data.kernel");
struct assay_kernel_bytes kernel_bytes SEC(".data.asked");

#define count(what) __sync_fetch_and_add(&counts.what, 1)

#define KERNEL_STACK 16384
#define KERNEL_PROCESS 0xffffffff // stands for the kernel where a process's number does

// Whether a load of the kernel's may be repeated: not from devices, whose registers change when they are read.
static __noinline int may_read(struct assay_interpreter *run, __u64 address) {
  for (unsigned i = 0; i < ASSAY_KERNEL_RANGES; i++)
    if (i < kernel_memory.ranges && address >= kernel_memory.range[i].begin &&
        address + 8 <= kernel_memory.range[i].end)
      return 1;
  if (address - run->stack < KERNEL_STACK || (address & ~0xfffULL) == run->stack_page)
    return 1;
  run->in_kernel = 2;
  return 0;
}

static __always_inline int read_memory(struct assay_interpreter *run, void *to, unsigned bytes,
                                       __u64 address) {
  if (bytes == 0 || bytes > 8)
    return 0;
  if (address >> 63 == 0) // the kernel, too, reads what is the process's
    return bpf_probe_read_user(to, bytes, (const void *)address) == 0;
  return run->in_kernel && may_read(run, address) &&
         bpf_probe_read_kernel(to, bytes, (const void *)address) == 0;
}

static long take_mapping(struct task_struct *task, struct vm_area_struct *mapping, void *context) {
  struct mapping *found = context;
  struct file *file = mapping->vm_file;
  found->begin = mapping->vm_start;
  found->end = mapping->vm_end;
  if (!file)
    return 0;
  struct inode *inode = file->f_inode;
  found->shift = (mapping->vm_pgoff << 12) - mapping->vm_start;
  found->file = inode->i_ino;
  found->device = inode->i_sb->s_dev;
  found->version = inode->i_generation;
  return 0;
}

static __always_inline int tell_miss(struct assay_interpreter *run, __u64 address,
                                     struct assay_code_key *key) {
  struct assay_code_key place = *key;
  place.page |= assay_offset_in_page(address);
  __u64 now = bpf_ktime_get_ns(), *last = bpf_map_lookup_elem(&misses, &place);
  if (last && now - *last < settings.miss_interval_ns)
    return 0;
  bpf_map_update_elem(&misses, &place, &now, BPF_ANY);
  struct assay_miss miss = {ASSAY_MESSAGE_MISS, run->out.pid, run->out.tid, address >> 63, address,
                            key->page,          key->file,    key->device,  key->version};
  if (bpf_ringbuf_output(&messages, &miss, sizeof miss, BPF_RB_FORCE_WAKEUP))
    count(lost_misses);
  return 0;
}

static __always_inline struct place_key region_of(const struct assay_interpreter *run,
                                                  __u64 address) {
  struct place_key region = {address >> 21, run->out.pid, run->memory};
  return region;
}

static __always_inline int is_same_file(const struct mapping *a, const struct mapping *b) {
  return a->shift == b->shift && a->file == b->file && a->device == b->device &&
         a->version == b->version;
}

// From here on nothing that was known of the process's code counts.
static __noinline int forget_process(struct assay_interpreter *run) {
  __u64 process = (__u64)run->out.pid << 32 | (__u32)(run->memory - run->remapped);
  __u32 times = run->remapped + 1;
  bpf_map_update_elem(&remapped, &process, &times, BPF_ANY);
  run->memory++;
  run->remapped = times;
  return 0;
}

// What is mapped at an address: into run->key. The kernel answers once in an interrupt: its lock is
// released by work that waits for the interrupt's end, and meanwhile it refuses. `anew`: not what
// it said in an earlier one.
static __noinline int key_of(struct assay_interpreter *run, __u64 address, int anew) {
  __u64 page = assay_code_page_begin(address);
  if (run->key_page == page && !(anew && run->key_is_kept))
    return 1;
  if (address >> 63) {
    if (!run->in_kernel)
      return 0;
    run->key.page = page;
    run->key.file = 0;
    run->key.device = KERNEL_PROCESS;
    run->key.version = 0;
    run->key_page = page;
    run->key_is_kept = 0;
    return 1;
  }
  struct place_key region = region_of(run, address);
  struct mapping *known = bpf_map_lookup_elem(&mappings, &region), kept = {}, found = {};
  if (known)
    kept = *known;
  run->key_is_kept = !anew && address >= kept.begin && address < kept.end;
  if (run->key_is_kept) {
    found = kept;
  } else {
    found.device = run->out.pid;
    if (bpf_find_vma(bpf_get_current_task_btf(), address, take_mapping, &found, 0) != 0) {
      count(no_mapping);
      return 0;
    }
    if (found.begin < kept.end && kept.begin < found.end && !is_same_file(&found, &kept)) {
      forget_process(run);
      region = region_of(run, address);
    }
    if (found.begin != kept.begin || found.end != kept.end || !is_same_file(&found, &kept) ||
        region.memory != run->memory)
      bpf_map_update_elem(&mappings, &region, &found, BPF_ANY);
  }
  run->key.page = page + found.shift;
  run->key.file = found.file;
  run->key.device = found.device;
  run->key.version = found.version;
  run->key_page = page;
  return 1;
}

static __always_inline struct place_key place_of(const struct assay_interpreter *run, __u64 pc) {
  struct place_key place = {assay_code_page_begin(pc), pc >> 63 ? KERNEL_PROCESS : run->out.pid,
                            pc >> 63 ? 0 : run->memory};
  return place;
}

static __noinline int find_page(struct assay_interpreter *run, __u64 pc) {
  if (pc >> 63 && !run->in_kernel)
    return 0;
  struct place_key key_of_place = place_of(run, pc);
  struct place *known = bpf_map_lookup_elem(&places, &key_of_place);
  // Where a sample begins, the kernel can be asked.
  int is_first = run->page == 1 && pc >> 63 == 0, asks = 0;
  __u32 before = known ? known->number : 0;
  if (known && (!is_first || (known->changes == run->changes && run->counts_changes))) {
    run->page_number = before;
    return 1;
  }
  if (is_first)
    asks = key_of(run, pc, 1);
  if (!asks && before) { // the process is changing what it has mapped
    run->page_number = before;
    return 1;
  }
  if (!asks && !key_of(run, pc, 0))
    return 0;
  struct assay_code_key key = run->key;
  __u32 *number = bpf_map_lookup_elem(&files, &key);
  if (!number && run->key_is_kept) { // before the tool is told of what may lie elsewhere by now
    if (!key_of(run, pc, 1))
      return 0;
    key = run->key;
    number = bpf_map_lookup_elem(&files, &key);
  }
  struct place place = {number ? *number : 0, run->changes};
  if (before && before != place.number)
    forget_process(run);
  if (!place.number) {
    tell_miss(run, pc, &key);
    return 0;
  }
  key_of_place = place_of(run, pc);
  bpf_map_update_elem(&places, &key_of_place, &place, BPF_ANY);
  run->page_number = place.number;
  return 1;
}

// The instruction at pc is not in its page, or not what it was: then something else may be mapped there by now.
static __noinline int miss_at(struct assay_interpreter *run, __u64 pc) {
  if (!key_of(run, pc, 1))
    return 0; // in the next sample
  struct place_key place = place_of(run, pc);
  bpf_map_delete_elem(&places, &place);
  struct assay_code_key key = run->key;
  tell_miss(run, pc, &key);
  return 0;
}

__noinline __u64 uop_value(const struct assay_uop *uop, __u64 a, __u64 b, __u64 c);

#define ASSAY_SAMPLE_READ(run, to, bytes, address) read_memory(run, to, bytes, address)
#define ASSAY_SAMPLE_FIND(run, pc) find_page(run, pc)
#define ASSAY_SAMPLE_PAGE(run, number)                                                             \
  ({                                                                                               \
    __u32 number_ = (number);                                                                      \
    (const struct assay_code_page *)bpf_map_lookup_elem(&pages, &number_);                         \
  })
#define ASSAY_SAMPLE_ENTRY(run, index)                                                             \
  ({                                                                                               \
    __u32 index_ = (index);                                                                        \
    (const struct assay_uop *)bpf_map_lookup_elem(&entries, &index_);                              \
  })
#define ASSAY_SAMPLE_VALUE(uop, a, b, c) uop_value(uop, a, b, c)
#define ASSAY_SAMPLE_MISS(run, pc) miss_at(run, pc)
#include "abi/sample_run.h"

__noinline __u64 uop_value(const struct assay_uop *uop, __u64 a, __u64 b, __u64 c) {
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c));
  if (!uop)
    return 0;
#ifdef ONLY
  if (uop->op != ONLY)
    return 0;
#endif
  return assay_uop_value(uop, a, b, c);
}

struct loop {
  struct assay_interpreter *run;
};

static long step(__u32 index, void *context) {
  struct loop *loop = context;
  struct assay_interpreter *run = loop->run;
  return assay_sample_step(run);
}

static __always_inline void take_registers(struct assay_interpreter *run,
                                           const struct pt_regs *regs) {
  run->registers[ASSAY_REG_RAX] = regs->rax;
  run->registers[ASSAY_REG_RCX] = regs->rcx;
  run->registers[ASSAY_REG_RDX] = regs->rdx;
  run->registers[ASSAY_REG_RBX] = regs->rbx;
  run->registers[ASSAY_REG_RSP] = regs->rsp;
  run->registers[ASSAY_REG_RBP] = regs->rbp;
  run->registers[ASSAY_REG_RSI] = regs->rsi;
  run->registers[ASSAY_REG_RDI] = regs->rdi;
  run->registers[8] = regs->r8;
  run->registers[9] = regs->r9;
  run->registers[10] = regs->r10;
  run->registers[11] = regs->r11;
  run->registers[12] = regs->r12;
  run->registers[13] = regs->r13;
  run->registers[14] = regs->r14;
  run->registers[15] = regs->r15;
  run->registers[ASSAY_REG_FLAGS] = regs->eflags & ASSAY_FLAGS;
  run->registers[ASSAY_REG_CONTROL] = regs->eflags & ~(__u64)ASSAY_FLAGS;
  for (unsigned i = 0; i <= ASSAY_REG_CONTROL; i++)
    run->known[i] = 1;
}

// Executes the sample that `run` is at, and sends it.
static __always_inline void interpret(struct assay_interpreter *run) {
  struct loop loop = {run};
  __u32 steps = settings.most_steps;
  if (bpf_loop(steps, step, &loop, 0) >= steps)
    run->out.end = ASSAY_ENDED_many_steps;
  run->out.skipped -= run->skip;
  if (run->in_kernel == 2 && run->out.end == ASSAY_ENDED_no_memory)
    run->out.end = ASSAY_ENDED_device_memory;
  __u32 values = run->out.values;
  if (values > ASSAY_SAMPLE_VALUES)
    values = ASSAY_SAMPLE_VALUES;
  if (bpf_ringbuf_output(&messages, &run->out,
                         sizeof(struct assay_sample) + values * sizeof(struct assay_sampled_value),
                         BPF_RB_NO_WAKEUP))
    count(lost_samples);
}

// A sample of the caller's own process from given registers: what tests hold against the same
// interpreter outside of the kernel.
SEC("syscall")
int given_sample(struct assay_given_sample *given) {
  __u32 zero = 0;
  struct assay_interpreter *run = bpf_map_lookup_elem(&interpreters, &zero);
  if (!run)
    return 1;
  assay_sample_begin(run);
  __u64 id = bpf_get_current_pid_tgid();
  run->out.pid = id >> 32;
  run->out.tid = (__u32)id;
  run->out.pc = run->pc = given->pc;
  run->out.in_kernel = run->in_kernel = 0;
  run->memory = run->remapped = run->changes = 0;
  run->counts_changes = 1;
  for (unsigned i = 0; i < ASSAY_GIVEN_REGISTERS; i++) {
    run->registers[i] = given->registers[i];
    run->known[i] = 1;
  }
  run->skip = given->skip;
  run->limit = given->instructions;
  run->out.skipped = run->skip;
  interpret(run);
  return 0;
}

// Code of the kernel's, for the tool to decode: kernel_bytes asks, and is answered.
SEC("syscall")
int read_kernel(void *context) {
  kernel_bytes.task = (__u64)bpf_get_current_task_btf();
  kernel_bytes.error = bpf_probe_read_kernel(kernel_bytes.bytes, sizeof kernel_bytes.bytes,
                                             (const void *)kernel_bytes.address);
  return 0;
}

// The kernel's own code was interrupted: it has no thread's segments, but each cpu's own memory.
static __always_inline void take_kernel_state(struct assay_interpreter *run,
                                              struct task_struct *task) {
  run->stack = (__u64)BPF_CORE_READ(task, stack);
  run->stack_page = run->registers[ASSAY_REG_RSP] & ~0xfffULL;
  __u64 base = 0;
  if (kernel_memory.per_cpu_offsets &&
      bpf_probe_read_kernel(
          &base, sizeof base,
          (const void *)(kernel_memory.per_cpu_offsets + 8ULL * bpf_get_smp_processor_id())) == 0) {
    run->registers[ASSAY_REG_GS] = base;
    run->known[ASSAY_REG_GS] = 1;
  }
}

// The address space, and how often what is mapped in it has changed.
static __always_inline void take_memory(struct assay_interpreter *run, struct task_struct *task) {
  struct mm_struct *memory = BPF_CORE_READ(task, mm);
  struct mm_struct___int *before = (void *)memory;
  run->memory = (__u32)((__u64)memory >> 6);
  run->changes = 0;
  run->counts_changes = 1;
  if (bpf_core_field_exists(memory->mm_lock_seq.sequence))
    run->changes = BPF_CORE_READ(memory, mm_lock_seq.sequence);
  else if (bpf_core_field_exists(before->mm_lock_seq))
    run->changes = (__u32)BPF_CORE_READ(before, mm_lock_seq);
  else
    run->counts_changes = 0;
  __u64 process = (__u64)run->out.pid << 32 | run->memory;
  __u32 *times = bpf_map_lookup_elem(&remapped, &process);
  run->remapped = times ? *times : 0;
  run->memory += run->remapped;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *event) {
  __u32 zero = 0;
  struct assay_interpreter *run = bpf_map_lookup_elem(&interpreters, &zero);
  if (!run)
    return 0;
  count(samples);
  __u64 id = bpf_get_current_pid_tgid();
  if ((__u32)id == settings.own_pid || id >> 32 == settings.own_pid)
    return 0;
  __u32 in_kernel = (event->regs.cs & 3) != 3;
  if (in_kernel && !kernel_memory.is_interpreted) {
    count(in_kernel);
    return 0;
  }
  assay_sample_begin(run);
  run->out.pid = id >> 32;
  run->out.tid = (__u32)id;
  run->out.pc = event->regs.rip;
  run->out.in_kernel = run->in_kernel = in_kernel;
  run->pc = event->regs.rip;
  take_registers(run, &event->regs);
  struct task_struct *task = bpf_get_current_task_btf();
  take_memory(run, task);
  if (in_kernel) {
    take_kernel_state(run, task);
  } else {
    run->registers[ASSAY_REG_FS] = task->thread.fsbase;
    run->registers[ASSAY_REG_GS] = task->thread.gsbase;
    run->known[ASSAY_REG_FS] = 1;
    run->known[ASSAY_REG_GS] = 1;
  }
  assay_draw_sample(run, settings.most_skipped, settings.instructions, settings.is_random_length,
                    bpf_get_prandom_u32());
  interpret(run);
  return 0;
}
