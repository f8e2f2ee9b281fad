// sample_truth [--most N] [--length K] -- PROGRAM ARGUMENTS…
//
// Holds the interpreter of samples (abi/sample_run.h) against the processor: runs a program under
// single step; every few instructions takes its registers as an interrupt would, lets the
// interpreter go on by up to K instructions without the program having moved, and then steps the
// program through the same ones. After each, pc and all registers and flags that the interpreter
// claims to know must agree. Prints how samples ended; exit 1 if anything disagreed.

#include "abi/sample_state.h"
#include "base/fail.h"
#include "binary/effects.h"
#include "oracle/single_step.h"
#include "values/code_cache.h"
#include "values/process_maps.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

// What the interpreter asks for, of the program that is stepped.
struct World {
  oracle::SingleStep *process = nullptr;
  std::vector<assay_code_page> pages{2048};
  std::vector<assay_uop> entries{size_t{1} << 20};
  std::unique_ptr<values::CodeCache> code;
  std::map<uint64_t, uint32_t> page_at; // by address
  uint64_t misses = 0;

  int read(void *to, unsigned bytes, uint64_t address) const {
    return process->read(address, {static_cast<std::byte *>(to), bytes}) == bytes;
  }
  // As the kernel would know it: the inode is the name's number here.
  assay_miss miss_of(uint64_t address) {
    const auto pid = static_cast<uint32_t>(process->pid());
    assay_miss miss = {};
    miss.kind = ASSAY_MESSAGE_MISS;
    miss.pid = miss.tid = pid;
    miss.address = address;
    miss.page = assay_code_page_begin(address);
    miss.device = pid;
    const auto ranges = values::mapped_ranges(pid);
    const values::MappedRange *range = values::range_at(ranges, address);
    if (range && range->is_file()) {
      miss.page += range->file_offset - range->start;
      miss.file = range->inode;
      miss.device = 1;
    }
    return miss;
  }
  void fill(uint64_t address) {
    const auto answer = code->fill(miss_of(address));
    if (answer.page)
      page_at[assay_code_page_begin(address)] = answer.page;
    misses++;
  }
  int find(uint64_t pc, uint32_t *number) {
    auto known = page_at.find(assay_code_page_begin(pc));
    if (known == page_at.end()) {
      fill(pc);
      return 0;
    }
    *number = known->second;
    return 1;
  }
};

World world;

} // namespace

#define ASSAY_SAMPLE_READ(run, to, bytes, address) world.read(to, bytes, address)
#define ASSAY_SAMPLE_FIND(run, pc) world.find(pc, &(run)->page_number)
#define ASSAY_SAMPLE_PAGE(run, number)                                                             \
  ((number) < world.pages.size() ? &world.pages[number] : nullptr)
#define ASSAY_SAMPLE_ENTRY(run, index)                                                             \
  ((index) < world.entries.size() ? &world.entries[index] : nullptr)
#define ASSAY_SAMPLE_VALUE(uop, a, b, c) assay_uop_value(uop, a, b, c)
#define ASSAY_SAMPLE_MISS(run, pc) world.fill(pc)
#include "abi/sample_run.h"

namespace {

constexpr unsigned kGeneral = ASSAY_REG_FLAGS + 1; // registers that are compared
constexpr unsigned kMaxReports = 40;

struct Snapshot { // after an instruction
  uint64_t pc;
  std::array<uint64_t, kGeneral> registers;
  std::array<uint8_t, kGeneral> known;
};

class Truth {
public:
  explicit Truth(const std::vector<std::string> &command) : process_(command) {
    world.process = &process_;
    world.code = std::make_unique<values::CodeCache>(world.pages, world.entries, values::kAllKinds);
  }

  void run(uint64_t most, unsigned length) {
    while (process_.running() && checked_ < most) {
      for (uint64_t skip = random_() % 64; skip > 0 && process_.running(); skip--)
        process_.step();
      if (process_.running())
        sample(1 + static_cast<unsigned>(random_() % length));
    }
  }

  bool report() const {
    std::fprintf(stderr,
                 "%llu samples, %llu instructions checked, %llu registers compared, %llu values "
                 "recorded, %llu disagree\n",
                 ull(samples_), ull(checked_), ull(compared_), ull(values_), ull(wrong_));
    static const char *const kEnds[] = {
#define ASSAY_SAMPLE_END(name, meaning) #name,
#include "abi/sample_ends.def"
    };
    for (const auto &[end, times] : ends_)
      std::fprintf(stderr, "end %10llu %s\n", ull(times), kEnds[end]);
    return wrong_ == 0 && checked_ > 0;
  }

private:
  static unsigned long long ull(uint64_t v) { return v; }

  void sample(unsigned length) {
    binary::Machine machine;
    process_.read_general(machine);
    assay_interpreter &run = *interpreter_;
    assay_sample_begin(&run);
    std::copy_n(machine.registers.begin(), ASSAY_REG_GS + 1, run.registers);
    std::fill_n(run.known, ASSAY_REG_GS + 1, uint8_t{1});
    run.pc = machine.pc;
    run.limit = length;
    run.skip = 0;
    std::vector<Snapshot> after;
    unsigned done = 0;
    int ended = 0;
    while (!ended) {
      ended = assay_sample_step(&run);
      if (run.out.instructions != done) {
        done = run.out.instructions;
        Snapshot &to = after.emplace_back();
        to.pc = run.pc;
        std::copy_n(run.registers, kGeneral, to.registers.begin());
        std::copy_n(run.known, kGeneral, to.known.begin());
      }
    }
    samples_++;
    ends_[run.out.end]++;
    values_ += run.out.values;
    uint64_t undefined = 0;
    way_.clear();
    for (const Snapshot &ours : after) {
      undefined = undefined_after(machine.pc, undefined);
      way_.push_back(machine.pc);
      if (!process_.step() || !process_.running())
        return; // a signal, or its end
      process_.read_general(machine);
      checked_++;
      if (!compare(ours, machine, undefined))
        return;
    }
  }

  // Flags that the manual leaves undefined after the instruction at pc.
  uint64_t undefined_after(uint64_t pc, uint64_t before) {
    auto [known, is_new] = undefined_.try_emplace(pc);
    if (is_new) {
      std::byte bytes[15];
      const size_t size = process_.read(pc, bytes);
      binary::Code code;
      if (decoder_.decode({bytes, size}, pc, code)) {
        for (const assay_uop &uop : code.uops)
          known->second.writes |= binary::has_result(uop) && uop.dst == ASSAY_REG_FLAGS;
        known->second.undefined = code.instructions[0].undefined_flags;
      }
    }
    return known->second.undefined | (known->second.writes ? 0 : before);
  }

  bool compare(const Snapshot &ours, const binary::Machine &native, uint64_t undefined) {
    std::string wrong;
    if (ours.pc != native.pc)
      wrong += "pc ";
    for (unsigned i = 0; i < kGeneral; i++) {
      if (!ours.known[i])
        continue;
      compared_++;
      uint64_t differ = ours.registers[i] ^ native.registers[i];
      if (i == ASSAY_REG_FLAGS)
        differ &= ~undefined;
      if (differ) {
        char text[80];
        std::snprintf(text, sizeof text, "register %u %#llx, natively %#llx; ", i,
                      ull(ours.registers[i]), ull(native.registers[i]));
        wrong += text;
      }
    }
    if (wrong.empty())
      return true;
    if (wrong_++ < kMaxReports) {
      std::fprintf(stderr, "before %#llx: %s\n", ull(native.pc), wrong.c_str());
      for (uint64_t pc : way_) {
        std::byte bytes[15] = {};
        process_.read(pc, bytes);
        std::fprintf(stderr, "  %#llx %s\n", ull(pc), decoder_.text(bytes, pc).c_str());
      }
    }
    return false;
  }

  std::vector<uint64_t> way_; // instructions of the sample, so far
  struct Flags {
    bool writes = false;
    uint64_t undefined = 0;
  };
  oracle::SingleStep process_;
  binary::Decoder decoder_;
  std::map<uint64_t, Flags> undefined_;
  std::unique_ptr<assay_interpreter> interpreter_ = std::make_unique<assay_interpreter>();
  std::mt19937_64 random_{1};
  std::map<unsigned, uint64_t> ends_;
  uint64_t samples_ = 0, checked_ = 0, compared_ = 0, values_ = 0, wrong_ = 0;
};

} // namespace

int main(int argc, char **argv) {
  uint64_t most = UINT64_MAX, length = 32;
  int i = 1;
  for (; i + 1 < argc && std::strcmp(argv[i], "--") != 0; i += 2) {
    const uint64_t number = std::strtoull(argv[i + 1], nullptr, 0);
    (std::string(argv[i]) == "--length" ? length : most) = number;
  }
  if (i + 1 >= argc || length == 0 || length > 256) {
    std::fprintf(stderr, "usage: sample_truth [--most N] [--length K] -- PROGRAM ARGUMENTS...\n");
    return 2;
  }
  try {
    Truth truth({argv + i + 1, argv + argc});
    truth.run(most, static_cast<unsigned>(length));
    return truth.report() ? 0 : 1;
  } catch (const base::Failure &failure) {
    std::fprintf(stderr, "sample_truth: %s\n", failure.what());
    return 2;
  }
}
