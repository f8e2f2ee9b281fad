// bpf_agreement [--samples N]
//
// The interpreter of samples in the kernel against the same source compiled here: this program
// works (strings, sorting, formatting, maps, vectors) with the trap flag set, and every few
// instructions a signal handler gives the registers of that moment to both. What they send must be
// equal, bit for bit. Exit 1 if anything differs, 77 if the kernel runs no BPF program for us.

#include "abi/sample_state.h"
#include "values/code_cache.h"
#include "values/process_maps.h"
#include "values/sampling.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "sample.skel.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr size_t kPages = 1024, kEntries = size_t{1} << 19, kMisses = 4096;
constexpr uint64_t kPageMask = ~uint64_t{ASSAY_CODE_PAGE_BYTES - 1};

std::span<assay_code_page> pages;
std::span<assay_uop> entries;
assay_miss misses[kMisses];
size_t miss_count;
// Pages that are known, for the interpreter here: written between phases only.
std::map<uint64_t, uint32_t> page_at;

int read_own(void *to, unsigned bytes, uint64_t address) {
  iovec ours = {to, bytes}, theirs = {reinterpret_cast<void *>(address), bytes};
  return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == static_cast<ssize_t>(bytes);
}

int find(uint64_t pc, uint32_t *number) {
  auto known = page_at.find(pc & kPageMask);
  if (known == page_at.end())
    return 0;
  *number = known->second;
  return 1;
}

} // namespace

#define ASSAY_SAMPLE_READ(run, to, bytes, address) read_own(to, bytes, address)
#define ASSAY_SAMPLE_FIND(run, pc) find(pc, &(run)->page_number)
#define ASSAY_SAMPLE_PAGE(run, number) ((number) < kPages ? &pages[number] : nullptr)
#define ASSAY_SAMPLE_ENTRY(run, index) ((index) < kEntries ? &entries[index] : nullptr)
#define ASSAY_SAMPLE_VALUE(uop, a, b, c) assay_uop_value(uop, a, b, c)
#define ASSAY_SAMPLE_MISS(run, pc) ((void)0)
#include "abi/sample_run.h"

namespace {

sample_bpf *skeleton;
ring_buffer *ring;
assay_interpreter here;
uint64_t compared, without_code, instructions, values_compared, differing, countdown = 1,
                                                                           random_state = 1;
uint64_t ends[ASSAY_SAMPLE_ENDS];
alignas(8) char message[sizeof(assay_sample) + sizeof(assay_sampled_value) * ASSAY_SAMPLE_VALUES];
size_t message_size;

uint64_t next_random() {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

int on_message(void *, void *data, size_t size) {
  const auto kind = *static_cast<const uint32_t *>(data);
  if (kind == ASSAY_MESSAGE_MISS) {
    if (miss_count < kMisses)
      misses[miss_count++] = *static_cast<const assay_miss *>(data);
  } else if (size <= sizeof message) {
    std::memcpy(message, data, size);
    message_size = size;
  }
  return 0;
}

void compare(const assay_given_sample &given) {
  message_size = 0;
  ring_buffer__consume(ring);
  if (message_size < sizeof(assay_sample))
    return;
  const auto *there = reinterpret_cast<const assay_sample *>(message);
  assay_sample_begin(&here);
  std::copy_n(given.registers, ASSAY_GIVEN_REGISTERS, here.registers);
  std::fill_n(here.known, ASSAY_GIVEN_REGISTERS, uint8_t{1});
  here.pc = here.out.pc = given.pc;
  here.skip = given.skip;
  here.limit = given.instructions;
  here.out.skipped = static_cast<uint16_t>(given.skip);
  uint32_t steps = 0;
  while (steps < skeleton->data_settings->settings.most_steps && !assay_sample_step(&here))
    steps++;
  if (steps >= skeleton->data_settings->settings.most_steps)
    here.out.end = ASSAY_ENDED_many_steps;
  here.out.skipped = static_cast<uint16_t>(here.out.skipped - here.skip);
  if (there->end == ASSAY_ENDED_no_code || here.out.end == ASSAY_ENDED_no_code) {
    without_code++; // it is decoded before the next round
    return;
  }
  compared++;
  instructions += here.out.instructions;
  values_compared += here.out.values;
  ends[there->end < ASSAY_SAMPLE_ENDS ? there->end : 0]++;
  const auto *values = reinterpret_cast<const assay_sampled_value *>(there + 1);
  const bool equal =
      there->end == here.out.end && there->values == here.out.values &&
      there->instructions == here.out.instructions && there->skipped == here.out.skipped &&
      there->start == here.out.start &&
      std::memcmp(values, here.values, sizeof(assay_sampled_value) * here.out.values) == 0;
  if (!equal && differing++ < 20) {
    char text[200];
    const int size = std::snprintf(
        text, sizeof text,
        "at %#llx: kernel ends %u after %u with %u values, here %u after %u with %u\n",
        static_cast<unsigned long long>(given.pc), there->end, there->instructions, there->values,
        here.out.end, here.out.instructions, here.out.values);
    [[maybe_unused]] ssize_t written = write(2, text, static_cast<size_t>(size));
  }
}

// On a stack of its own. Calls nothing that may have been interrupted: no malloc, no stdio.
void on_trap(int, siginfo_t *, void *context) {
  if (--countdown != 0)
    return;
  countdown = 1 + next_random() % 16;
  const auto *machine = &static_cast<ucontext_t *>(context)->uc_mcontext;
  static const int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                 REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                 REG_R12, REG_R13, REG_R14, REG_R15};
  assay_given_sample given = {};
  for (int i = 0; i < 16; i++)
    given.registers[i] = static_cast<uint64_t>(machine->gregs[kOrder[i]]);
  const auto flags = static_cast<uint64_t>(machine->gregs[REG_EFL]);
  given.registers[ASSAY_REG_FLAGS] = flags & ASSAY_FLAGS;
  given.registers[ASSAY_REG_CONTROL] = flags & ~uint64_t{ASSAY_FLAGS};
  asm("mov %%fs:0, %0" : "=r"(given.registers[ASSAY_REG_FS])); // by the ABI it points to itself
  given.pc = static_cast<uint64_t>(machine->gregs[REG_RIP]);
  given.skip = static_cast<uint32_t>(next_random() % 4);
  given.instructions = 1 + static_cast<uint32_t>(next_random() % 64);
  bpf_test_run_opts options = {};
  options.sz = sizeof options;
  options.ctx_in = &given;
  options.ctx_size_in = sizeof given;
  if (bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.given_sample), &options) == 0)
    compare(given);
}

void trap(bool on) {
  if (on)
    asm volatile("sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp" ::
                     : "memory", "cc");
  else
    asm volatile("sub $128, %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp" ::
                     : "memory", "cc");
}

volatile uint64_t sink;

// Strings, vectors, divisions, calls through pointers, allocation, floating point.
void work(unsigned round) {
  std::vector<std::string> words;
  for (unsigned i = 0; i < 20; i++)
    words.push_back(std::to_string(i * 2654435761u + round) +
                    std::string(i % 23, char('a' + i % 26)));
  std::sort(words.begin(), words.end());
  std::map<std::string, size_t> lengths;
  for (const std::string &word : words)
    lengths[word] = std::strlen(word.c_str()) + word.find('7');
  char text[400];
  double x = 1 + round;
  for (const auto &[word, length] : lengths) {
    std::snprintf(text, sizeof text, "%-30s %8zu %12.5f %x", word.c_str(), length, x,
                  unsigned(length * 7919));
    x = x * 1.01 + double(std::strtod(text + 40, nullptr));
    sink += std::strlen(text) + size_t(std::memchr(text, ' ', sizeof text) != nullptr);
  }
  std::vector<int> numbers(100);
  for (unsigned i = 0; i < numbers.size(); i++)
    numbers[i] = int(i * 7919 + round) % 1000 - 500;
  std::qsort(numbers.data(), numbers.size(), sizeof(int), [](const void *a, const void *b) {
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
  });
  long sum = 0;
  for (int n : numbers)
    sum += n / 3 + (n ? 1000 / n : 0);
  std::vector<char> copy(5000);
  std::memmove(copy.data() + 13, copy.data(), 4000);
  std::memset(copy.data(), int(round), 777);
  sink += uint64_t(sum) + uint64_t(copy[100]) + uint64_t(x);
}

template <class T> std::span<T> shared(bpf_map *map, size_t count) {
  const size_t bytes = (count * sizeof(T) + 4095) / 4096 * 4096;
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
  if (memory == MAP_FAILED)
    std::exit(2);
  return {static_cast<T *>(memory), count};
}

} // namespace

int main(int argc, char **argv) {
  const uint64_t wanted = argc > 2 ? std::strtoull(argv[2], nullptr, 0) : 100'000;
  skeleton = sample_bpf__open();
  if (!skeleton)
    return 77;
  bpf_map__set_max_entries(skeleton->maps.pages, kPages);
  bpf_map__set_max_entries(skeleton->maps.entries, kEntries);
  bpf_map__set_max_entries(skeleton->maps.files, kPages);
  bpf_map__set_max_entries(skeleton->maps.messages, 1 << 20);
  skeleton->data_settings->settings.most_steps = 2000;
  skeleton->data_settings->settings.miss_interval_ns = 0;
  if (sample_bpf__load(skeleton) != 0) {
    std::fprintf(stderr, "bpf_agreement: the kernel does not take the program\n");
    return 77;
  }
  pages = shared<assay_code_page>(skeleton->maps.pages, kPages);
  entries = shared<assay_uop>(skeleton->maps.entries, kEntries);
  values::CodeCache code(pages, entries, values::kAllKinds);
  code.record_callers_in({"all"});
  ring = ring_buffer__new(bpf_map__fd(skeleton->maps.messages), on_message, nullptr, nullptr);
  stack_t stack = {};
  stack.ss_size = 1 << 20;
  stack.ss_sp =
      mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGTRAP, &action, nullptr);
  for (unsigned round = 0; compared < wanted && round < 100'000; round++) {
    trap(true);
    work(round);
    trap(false);
    for (size_t i = 0; i < miss_count; i++) {
      const assay_miss &miss = misses[i];
      const auto answer = code.fill(miss);
      if (answer.is_new_page) {
        const assay_code_key key = {miss.page, miss.file, miss.device, miss.version};
        bpf_map_update_elem(bpf_map__fd(skeleton->maps.files), &key, &answer.page, BPF_ANY);
      }
      if (answer.page)
        page_at[miss.address & kPageMask] = answer.page;
    }
    miss_count = 0;
  }
  std::printf("%llu samples, %llu instructions, %llu values, %llu differ\n",
              (unsigned long long)compared, (unsigned long long)instructions,
              (unsigned long long)values_compared, (unsigned long long)differing);
  static const char *const kEnds[] = {
#define ASSAY_SAMPLE_END(name, meaning) #name,
#include "abi/sample_ends.def"
  };
  for (unsigned i = 0; i < ASSAY_SAMPLE_ENDS; i++)
    if (ends[i])
      std::printf("end %10llu %s\n", (unsigned long long)ends[i], kEnds[i]);
  return differing || compared < wanted ? 1 : 0;
}
