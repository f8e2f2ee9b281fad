// values/sample.bpf.c interprets; here it is loaded, its maps are made visible to the tool, and its
// messages are handed on. What libbpf prints is left out: a failure is one sentence that says what
// to do.
//
// The kernel's code is read by a second BPF program, which the tool runs when it wants a piece. A
// piece never crosses a page, so either all of it can be read or none. Refused (decision 032):
// /proc/kcore and images in /boot, which many machines lack; one copy of the kernel's text, because
// static keys and tracing change it.
//
// Samples may load from what is thought to be RAM. If that were wrong, a load might come to a
// device: so first the tool's own task must be found there.

#include "values/kernel_collector.h"

#include "abi/records.h"
#include "abi/sample_state.h"
#include "base/fail.h"
#include "values/perf_events.h"
#include "values/sampling.h"

#include "sample.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace values {
namespace {

constexpr size_t kMessageBytes = 8 << 20; // a power of two
constexpr uint64_t kMissIntervalNs = 50'000'000;
constexpr int kNice = -10; // of the thread that decodes
static_assert(ASSAY_CODE_PAGE_BYTES % ASSAY_KERNEL_BYTES == 0,
              "a piece of the kernel's code lies in a page");
constexpr uint32_t kStepsOfInstruction = 24; // micro-ops that one instruction may have on average

// A map whose memory both sides see.
template <class T> class SharedMap {
public:
  SharedMap(bpf_map *map, size_t count) : bytes_(rounded(count * sizeof(T))) {
    void *memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (memory == MAP_FAILED)
      base::fail("decoded code cannot be shared with the kernel: {}; raise `ulimit -v`",
                 std::strerror(errno));
    items_ = {static_cast<T *>(memory), count};
  }
  ~SharedMap() { munmap(items_.data(), bytes_); }
  SharedMap(const SharedMap &) = delete;
  SharedMap &operator=(const SharedMap &) = delete;
  std::span<T> items() const { return items_; }

private:
  static size_t rounded(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page;
  }
  size_t bytes_;
  std::span<T> items_;
};

// libbpf does not always tell that it could not open a file.
bool has_few_files() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 32;
}

class KernelCollector : public Collector {
public:
  explicit KernelCollector(const SamplingSettings &settings) : settings_(settings) {
    libbpf_set_print([](libbpf_print_level, const char *, va_list) { return 0; });
    skeleton_.reset(sample_bpf__open());
    if (!skeleton_)
      base::fail(
          "the program for the kernel cannot be opened: {}; raise `ulimit -n` and `ulimit -v`",
          std::strerror(errno));
    bpf_map__set_max_entries(skeleton_->maps.pages, static_cast<uint32_t>(settings.code_pages));
    bpf_map__set_max_entries(skeleton_->maps.entries, static_cast<uint32_t>(settings.code_entries));
    bpf_map__set_max_entries(skeleton_->maps.files, static_cast<uint32_t>(settings.code_pages));
    bpf_map__set_max_entries(skeleton_->maps.messages, kMessageBytes);
    assay_sampling_settings &to = skeleton_->data_settings->settings;
    to.instructions = settings.instructions;
    to.is_random_length = settings.is_random_length && settings.instructions > 1;
    to.most_skipped = settings.most_skipped;
    to.most_steps = (settings.most_skipped + 2 * settings.instructions) * kStepsOfInstruction + 64;
    to.own_pid = static_cast<uint32_t>(getpid());
    to.miss_interval_ns = kMissIntervalNs;
    const int error = sample_bpf__load(skeleton_.get());
    if (error == -EPERM ||
        (error == -EACCES && geteuid() != 0)) // to root, it says what the verifier refuses
      base::fail("programs in the kernel need root, or the capabilities BPF and PERFMON; run it as "
                 "root");
    if (error == -EMFILE || (error && has_few_files()))
      base::fail(
          "the program that interprets samples needs more open files than are allowed; raise "
          "`ulimit -n`");
    if (error)
      base::fail("the kernel does not take the program that interprets samples: {}; ask `assay "
                 "doctor` what it needs",
                 std::strerror(-error));
    pages_ =
        std::make_unique<SharedMap<assay_code_page>>(skeleton_->maps.pages, settings.code_pages);
    entries_ =
        std::make_unique<SharedMap<assay_uop>>(skeleton_->maps.entries, settings.code_entries);
    ring_.reset(ring_buffer__new(bpf_map__fd(skeleton_->maps.messages), on_message, this, nullptr));
    if (!ring_)
      base::fail("samples cannot be read from the kernel: {}; raise `ulimit -n` and `ulimit -v`",
                 std::strerror(errno));
    if (settings.kernel_code)
      interpret_kernel();
  }

  const KernelCode *kernel_code() const override { return kernel_code_.get(); }
  std::string why_no_kernel_code() const override { return why_no_kernel_code_; }
  std::vector<std::byte> kernel_bytes(uint64_t address, size_t size) override {
    std::vector<std::byte> bytes;
    while (bytes.size() < size) {
      assay_kernel_bytes piece = {};
      // A piece that lies in one page; its end is what was asked for.
      const uint64_t at = address + bytes.size();
      piece.address = at & ~uint64_t{ASSAY_KERNEL_BYTES - 1};
      if (!read_kernel(piece))
        break;
      const auto *from = reinterpret_cast<const std::byte *>(piece.bytes);
      bytes.insert(bytes.end(), from + (at - piece.address), from + ASSAY_KERNEL_BYTES);
    }
    bytes.resize(std::min(bytes.size(), size));
    return bytes;
  }

  std::span<assay_code_page> pages() override { return pages_->items(); }
  std::span<assay_uop> entries() override { return entries_->items(); }
  void announce(const assay_code_key &key, uint32_t page) override {
    bpf_map_update_elem(bpf_map__fd(skeleton_->maps.files), &key, &page, BPF_ANY);
  }

  void watch_command(pid_t pid) override {
    events_.open_command(pid, settings_.hertz);
    attach(); // they begin with the command
  }
  void watch_process(pid_t pid) override {
    events_.open_process(pid, settings_.hertz);
    attach();
    events_.enable();
  }
  void watch_all() override {
    events_.open_all(settings_.hertz);
    attach();
    events_.enable();
  }

  void poll(int milliseconds, MessageTaker &taker) override {
    taker_ = &taker;
    if (ring_buffer__consume(ring_.get()) == 0 && milliseconds > 0) {
      ring_buffer__poll(ring_.get(), milliseconds);
      ring_buffer__consume(ring_.get());
    }
    taker_ = nullptr;
  }

  void stop() override { events_.disable(); }
  void begin_anew() override {
    std::ranges::fill(pages_->items(), assay_code_page{});
    std::ranges::fill(entries_->items(), assay_uop{});
    for (const bpf_map *map :
         {skeleton_->maps.files, skeleton_->maps.places, skeleton_->maps.misses})
      clear(map);
    events_.enable();
  }
  bool can_begin_anew() const override { return true; }

  CollectorCounts counts() const override {
    const assay_sampling_counts &counts = skeleton_->data_counts->counts;
    return {counts.samples, counts.in_kernel, counts.lost_samples};
  }
  uint32_t kind() const override { return ASSAY_COLLECTOR_KERNEL; }
  const std::string &clock() const override { return events_.clock(); }

private:
  bool read_kernel(assay_kernel_bytes &piece) const {
    bpf_test_run_opts options = {};
    options.sz = sizeof options;
    skeleton_->data_asked->kernel_bytes.address = piece.address;
    if (bpf_prog_test_run_opts(bpf_program__fd(skeleton_->progs.read_kernel), &options) != 0)
      return false;
    piece = skeleton_->data_asked->kernel_bytes;
    return piece.error == 0;
  }

  static void clear(const bpf_map *map) {
    const int fd = bpf_map__fd(map);
    std::vector<std::byte> key(bpf_map__key_size(map)), next(key.size());
    // The next one is found from one that is there: from the begin, all that is empty by now would be passed each time.
    bool is_more = bpf_map_get_next_key(fd, nullptr, next.data()) == 0;
    while (is_more) {
      key.swap(next);
      is_more = bpf_map_get_next_key(fd, key.data(), next.data()) == 0;
      bpf_map_delete_elem(fd, key.data());
    }
  }

  // The tool's own task lies in RAM: so where RAM is thought to be is tried before anything is read there.
  void interpret_kernel() {
    auto code = std::make_unique<KernelCode>();
    why_no_kernel_code_ = code->why_not();
    if (!why_no_kernel_code_.empty())
      return;
    assay_kernel_bytes piece = {};
    if (const uint64_t variable = code->direct_map_variable()) {
      piece.address = variable & ~uint64_t{ASSAY_KERNEL_BYTES - 1};
      uint64_t begin = 0;
      if (read_kernel(piece) && variable % ASSAY_KERNEL_BYTES + 8 <= ASSAY_KERNEL_BYTES) {
        std::memcpy(&begin, piece.bytes + variable % ASSAY_KERNEL_BYTES, sizeof begin);
        code->set_direct_map(begin);
      }
    }
    piece.address = code->memory().range[0].begin;
    if (!read_kernel(piece) || !code->is_ram(piece.task)) {
      why_no_kernel_code_ = "its memory is not where it should be, or is not to be read (lockdown)";
      return;
    }
    skeleton_->data_kernel->kernel_memory = code->memory();
    kernel_code_ = std::move(code);
  }

  // Code is decoded while its processes live. Where they wait for a cpu, this thread goes first, if
  // the user has not said otherwise and it may.
  static void go_first() {
    if (getpriority(PRIO_PROCESS, 0) == 0)
      setpriority(PRIO_PROCESS, 0, kNice);
  }

  void attach() {
    go_first();
    const int program = bpf_program__fd(skeleton_->progs.sample);
    for (int event : events_.descriptors())
      if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) != 0)
        base::fail("the kernel does not run a program on its perf events: {}",
                   std::strerror(errno));
  }

  static int on_message(void *self, void *data, size_t size) {
    auto &collector = *static_cast<KernelCollector *>(self);
    const auto *kind = static_cast<const uint32_t *>(data);
    if (size >= sizeof(assay_miss) && *kind == ASSAY_MESSAGE_MISS) {
      collector.taker_->miss(*static_cast<const assay_miss *>(data));
    } else if (size >= sizeof(assay_sample) && *kind == ASSAY_MESSAGE_SAMPLE) {
      const auto &sample = *static_cast<const assay_sample *>(data);
      const size_t room = (size - sizeof sample) / sizeof(assay_sampled_value);
      collector.taker_->sample(sample, {reinterpret_cast<const assay_sampled_value *>(&sample + 1),
                                        std::min<size_t>(room, sample.values)});
    }
    return 0;
  }

  struct Destroy {
    void operator()(sample_bpf *skeleton) const { sample_bpf__destroy(skeleton); }
    void operator()(ring_buffer *ring) const { ring_buffer__free(ring); }
  };
  SamplingSettings settings_;
  std::unique_ptr<sample_bpf, Destroy> skeleton_;
  std::unique_ptr<SharedMap<assay_code_page>> pages_;
  std::unique_ptr<SharedMap<assay_uop>> entries_;
  std::unique_ptr<ring_buffer, Destroy> ring_;
  std::unique_ptr<KernelCode> kernel_code_;
  std::string why_no_kernel_code_;
  PerfEvents events_;
  MessageTaker *taker_ = nullptr;
};

} // namespace

std::unique_ptr<Collector> kernel_collector(const SamplingSettings &settings) {
  return std::make_unique<KernelCollector>(settings);
}

} // namespace values
