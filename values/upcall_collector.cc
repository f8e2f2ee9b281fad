// The handler in a program knows nothing but addresses. So a miss names an address of a process,
// and what file lies there is looked up here; then it is a miss as the kernel's, and the same code
// cache decodes. Where the page is known, from another process or another program, only its place
// is told. What is shared is drawn in abi/upcall.h.
//
// What programs write is looked at with care: they may write anything there. Nothing runs when a
// thread ends, so the tool asks the kernel now and then which threads are gone, and frees their
// slots; it asks before it reads the ring, so that the last samples are taken.

#include "values/upcall_collector.h"

#include "abi/records.h"
#include "abi/upcall.h"
#include "base/fail.h"
#include "base/shared_memory.h"
#include "values/code_key.h"
#include "values/cpu_time.h"
#include "values/memory_levels.h"
#include "values/process_maps.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <map>
#include <set>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuple>
#include <unistd.h>
#include <unordered_map>

namespace values {
namespace {

// What a process has mapped, from who may not look at it: one whose executable this user may not read.
bool hides_maps(uint32_t pid) {
  const int maps = open(fmt::format("/proc/{}/maps", pid).c_str(), O_RDONLY | O_CLOEXEC);
  const bool hides = maps < 0 && (errno == EACCES || errno == EPERM);
  if (maps >= 0)
    close(maps);
  return hides;
}

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLately{20};
constexpr std::chrono::milliseconds kPart{20}; // of CPU time
constexpr uint32_t kStepsOfInstruction = 24;   // micro-ops that one instruction may have on average

using base::load_shared;
using base::store_shared;

perf_event_attr event_attributes(uint64_t hertz, bool is_cycles) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = is_cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
  attributes.config =
      is_cycles ? uint64_t{PERF_COUNT_HW_CPU_CYCLES} : uint64_t{PERF_COUNT_SW_CPU_CLOCK};
  attributes.freq = is_cycles;
  attributes.sample_period = is_cycles ? hertz : 1'000'000'000 / hertz;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.sigtrap = 1;
  attributes.remove_on_exec = 1;
  return attributes;
}

// 0, or errno.
int try_event(perf_event_attr attributes) {
  const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (file < 0)
    return errno;
  close(static_cast<int>(file));
  return 0;
}

uint64_t page_of(uint64_t address) {
  return assay_code_page_begin(address);
}
uint64_t whole_pages(uint64_t bytes) {
  return (bytes + 4095) & ~uint64_t{4095};
}

class UpcallCollector : public Collector {
public:
  UpcallCollector(const SamplingSettings &settings, uint32_t kind) : settings_(settings) {
    assay_upcall_header header = {};
    std::memcpy(header.magic, ASSAY_UPCALL_MAGIC, sizeof header.magic);
    header.version = ASSAY_UPCALL_VERSION;
    header.tool = static_cast<uint32_t>(getpid());
    header.collector = kind;
    header.instructions = settings.instructions;
    header.is_random_length = settings.is_random_length && settings.instructions > 1;
    header.most_skipped = settings.most_skipped;
    header.most_steps =
        (settings.most_skipped + 2 * settings.instructions) * kStepsOfInstruction + 64;
    header.period_ns = 1'000'000'000 / settings.hertz;
    if (kind == ASSAY_COLLECTOR_UPCALL) {
      if (auto why = why_no_upcall())
        base::fail("{}", *why);
      const bool is_cycles = try_event(event_attributes(settings.hertz, true)) == 0;
      const perf_event_attr event = event_attributes(settings.hertz, is_cycles);
      header.event_type = event.type;
      header.event_config = event.config;
      header.event_period = event.sample_period;
      header.is_frequency = event.freq;
      clock_ = is_cycles ? "cycles" : "cpu-clock";
    }
    if (settings.times_loads) {
      const MemoryLevels levels = memory_levels();
      header.is_timed = 1;
      std::copy(levels.limits.begin(), levels.limits.end(), header.level_limits);
      std::copy(levels.sets.begin(), levels.sets.end(), header.level_sets);
    }
    header.page_count = static_cast<uint32_t>(settings.code_pages);
    header.entry_count = static_cast<uint32_t>(settings.code_entries);
    header.pages_at = 4096;
    header.entries_at =
        header.pages_at + whole_pages(settings.code_pages * sizeof(assay_code_page));
    header.places_at = header.entries_at + whole_pages(settings.code_entries * sizeof(assay_uop));
    header.news_at =
        header.places_at + whole_pages(ASSAY_UPCALL_PLACES * sizeof(assay_upcall_place));
    header.slots_at = header.news_at + 4096;
    header.bytes = header.slots_at + ASSAY_UPCALL_SLOTS * sizeof(assay_upcall_slot);
    map(header);
  }

  ~UpcallCollector() override { store_shared(header_->is_over, 1u); }
  UpcallCollector(const UpcallCollector &) = delete;
  UpcallCollector &operator=(const UpcallCollector &) = delete;

  std::span<assay_code_page> pages() override {
    return {at<assay_code_page>(header_->pages_at), settings_.code_pages};
  }
  std::span<assay_uop> entries() override {
    return {at<assay_uop>(header_->entries_at), settings_.code_entries};
  }
  void announce(const assay_code_key &key, uint32_t page) override {
    numbers_[key] = page;
    auto waiting = waiting_.find(key);
    if (waiting == waiting_.end())
      return;
    for (const auto &[program, address] : waiting->second)
      put_place(program, address, page);
    waiting_.erase(waiting);
  }

  // It watches itself. Its threads may be hundreds, among which this one goes first, if it may.
  void watch_command(pid_t) override { setpriority(PRIO_PROCESS, 0, -20); }
  void watch_process(pid_t) override { refuse("-p"); }
  void watch_all() override { refuse("-a"); }
  std::pair<std::string, std::string> environment() const override {
    return {ASSAY_UPCALL_ENVIRONMENT, memory_->path()};
  }

  void poll(int milliseconds, MessageTaker &taker) override {
    const uint32_t posted = load_shared(news_->posted);
    if (take_all(taker) || milliseconds <= 0)
      return;
    const timespec wait = {0, std::min(milliseconds, 999) * 1'000'000L};
    syscall(SYS_futex, &news_->posted, FUTEX_WAIT, posted, &wait, nullptr, 0);
    take_all(taker);
  }
  void stop() override { store_shared(header_->is_over, 1u); }

  CollectorCounts counts() const override {
    CollectorCounts counts;
    counts.interrupts = load_shared(news_->interrupts);
    counts.in_kernel = load_shared(news_->in_kernel);
    counts.blocked = load_shared(news_->blocked);
    counts.lost = load_shared(news_->lost);
    counts.unsampled_threads = load_shared(news_->unsampled_threads);
    counts.programs = load_shared(news_->programs);
    counts.no_place = no_place_;
    counts.hidden_programs = hidden_.size();
    return counts;
  }
  uint32_t kind() const override { return header_->collector; }
  const std::string &clock() const override { return clock_; }

private:
  void map(const assay_upcall_header &header) {
    memory_.emplace("assay-values", header.bytes);
    header_ = at<assay_upcall_header>(0);
    *header_ = header;
    places_ = at<assay_upcall_place>(header.places_at);
    news_ = at<assay_upcall_news>(header.news_at);
    slots_ = at<assay_upcall_slot>(header.slots_at);
  }

  template <class T> T *at(uint64_t offset) const {
    return reinterpret_cast<T *>(memory_->data() + offset);
  }

  [[noreturn]] static void refuse(const char *option) {
    base::fail("{}: programs can be sampled from inside only from their begin on; write `-- "
               "./app`, or record as root (`--collector kernel`)",
               option);
  }

  // Whether there was anything. What hundreds of threads tell is taken in parts, so that there is
  // time to decode what they miss.
  bool take_all(MessageTaker &taker) {
    const auto now = Clock::now();
    const bool looks_for_ended = now - looked_ >= std::chrono::milliseconds(50);
    if (looks_for_ended)
      looked_ = now;
    if (now - told_since_ >= kLately) {
      told_.clear();
      told_since_ = now;
    }
    bool any = false;
    const auto begin = thread_cpu_time();
    for (uint32_t i = 0; i < ASSAY_UPCALL_SLOTS; i++) {
      assay_upcall_slot &slot = slots_[next_slot_];
      const bool is_claimed = load_shared(slot.is_claimed) == 1;
      if (is_claimed && thread_cpu_time() - begin > kPart)
        break;
      next_slot_ = (next_slot_ + 1) % ASSAY_UPCALL_SLOTS;
      if (!is_claimed)
        continue;
      // Before its ring is read: what it wrote last is taken too.
      const bool has_ended =
          looks_for_ended && syscall(SYS_tgkill, slot.pid, slot.tid, 0) != 0 && errno == ESRCH;
      any |= take(slot, taker);
      if (has_ended) {
        store_shared(slot.written, uint64_t{0});
        store_shared(slot.read, uint64_t{0});
        store_shared(slot.is_claimed, 0u);
      }
    }
    return any;
  }

  bool take(assay_upcall_slot &slot, MessageTaker &taker) {
    const uint64_t written = load_shared(slot.written);
    uint64_t read = slot.read;
    const bool any = read != written;
    if (written - read > ASSAY_UPCALL_RING_BYTES) // not what we write
      read = written;
    while (read < written) {
      const uint64_t place = read & (ASSAY_UPCALL_RING_BYTES - 1);
      const uint64_t room = std::min<uint64_t>(written - read, ASSAY_UPCALL_RING_BYTES - place);
      assay_upcall_message message;
      if (room < sizeof message) {
        read = written;
        break;
      }
      std::memcpy(&message, slot.ring + place, sizeof message);
      if (message.bytes == ASSAY_UPCALL_SKIP) {
        read += ASSAY_UPCALL_RING_BYTES - place;
        continue;
      }
      if (message.bytes > room - sizeof message || message.bytes % 8 != 0) { // not what we write
        read = written;
        break;
      }
      buffer_.assign(message.bytes / 8, 0);
      std::memcpy(buffer_.data(), slot.ring + place + sizeof message, message.bytes);
      read += sizeof message + message.bytes;
      store_shared(slot.read, read);
      take_message(message, taker);
    }
    store_shared(slot.read, written);
    return any;
  }

  void take_message(const assay_upcall_message &message, MessageTaker &taker) {
    const void *data = buffer_.data();
    const auto kind = message.bytes ? *static_cast<const uint32_t *>(data) : 0;
    if (kind == ASSAY_MESSAGE_MISS && message.bytes >= sizeof(assay_miss)) {
      take_miss(*static_cast<const assay_miss *>(data), message.program, taker);
    } else if (kind == ASSAY_MESSAGE_SAMPLE && message.bytes >= sizeof(assay_sample)) {
      const auto &sample = *static_cast<const assay_sample *>(data);
      const size_t room = (message.bytes - sizeof sample) / sizeof(assay_sampled_value);
      const std::span values(reinterpret_cast<const assay_sampled_value *>(&sample + 1),
                             std::min<size_t>(room, sample.values));
      if (std::all_of(values.begin(), values.end(), [](const assay_sampled_value &value) {
            return value.kind < ASSAY_VALUE_KINDS;
          }))
        taker.sample(sample, values);
    }
  }

  // Whether the mapping is of the file whose hash the program has told; also where that cannot be
  // known. Of a list of mappings that is not fresh, map_files may lead to what has come there since.
  static bool has_hash(uint32_t pid, const MappedRange &range, uint64_t wanted, bool is_fresh) {
    if (wanted == 0 || !range.is_file())
      return true;
    bool is_known = false;
    for (const std::string &path :
         {range.name, is_fresh ? path_of_mapping(pid, range) : std::string()}) {
      std::array<uint64_t, ASSAY_UPCALL_FILE_BYTES / 8> words;
      const int file = path.empty() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (file < 0)
        continue;
      const bool is_read = pread(file, words.data(), sizeof words, 0) == sizeof words;
      close(file);
      if (is_read && assay_upcall_file_hash(words.data()) == wanted)
        return true;
      is_known = true;
    }
    return is_fresh && !is_known;
  }

  // What lies at the address becomes known; then the miss is as one of the kernel's. A library that
  // has come and gone before we look stays unknown.
  void take_miss(assay_miss miss, uint32_t program, MessageTaker &taker) {
    const uint64_t hash = miss.file;
    program = assay_upcall_program_with(program, hash);
    if (!told_.emplace(program, miss.address).second) // by another thread, a moment ago
      return;
    miss.page = page_of(miss.address);
    miss.file = 0;
    miss.device = miss.pid;
    miss.version = 0;
    const MappedRange *range = maps_.range_at(miss.pid, miss.address, kLately);
    if (!range || !has_hash(miss.pid, *range, hash, false)) { // it may have been mapped since
      range = maps_.range_at(miss.pid, miss.address, ProcessMaps::kNow);
      if (range && !has_hash(miss.pid, *range, hash, true))
        return;
    }
    if (!range) {
      if (hides_maps(miss.pid)) // else it has ended
        hidden_.insert(miss.pid);
      return;
    }
    if (range->is_file()) {
      miss.page += range->file_offset - range->start;
      miss.file = range->inode;
      miss.device = range->device;
    }
    const assay_code_key key = key_of(miss);
    if (auto known = numbers_.find(key); known == numbers_.end())
      waiting_[key].emplace(program, page_of(miss.address));
    else if (put_place(program, page_of(miss.address), known->second))
      return; // the next sample finds it
    taker.miss(miss);
  }

  // False if it was there already.
  bool put_place(uint32_t program, uint64_t page, uint32_t number) {
    const uint32_t hash = assay_upcall_place_hash(page, program);
    for (uint32_t i = 0; i < ASSAY_UPCALL_PROBES; i++) {
      assay_upcall_place &place = places_[(hash + i) & (ASSAY_UPCALL_PLACES - 1)];
      if (place.number == 0) {
        place.page = page;
        place.program = program;
        store_shared(place.number, number);
        return true;
      }
      if (place.page == page && place.program == program) {
        if (place.number == number)
          return false;
        store_shared(place.number, number); // something else is mapped there by now
        return true;
      }
    }
    no_place_++;
    return true;
  }

  SamplingSettings settings_;
  std::string clock_ = "timers";
  std::optional<base::SharedMemory> memory_;
  assay_upcall_header *header_ = nullptr;
  assay_upcall_place *places_ = nullptr;
  assay_upcall_news *news_ = nullptr;
  assay_upcall_slot *slots_ = nullptr;
  std::map<assay_code_key, uint32_t, CodeKeyOrder> numbers_; // of pages
  std::map<assay_code_key, std::set<std::pair<uint32_t, uint64_t>>, CodeKeyOrder>
      waiting_; // programs and addresses, of pages without a number yet
  ProcessMaps maps_;
  std::vector<uint64_t> buffer_;
  Clock::time_point looked_;
  uint32_t next_slot_ = 0;
  std::set<std::pair<uint32_t, uint64_t>> told_; // program and address of misses, since:
  Clock::time_point told_since_;
  uint64_t no_place_ = 0;
  std::set<uint32_t> hidden_; // processes that do not let us look at what they have mapped
};

} // namespace

std::optional<std::string> why_no_upcall() {
  switch (const int error = try_event(event_attributes(1000, false))) {
  case 0: return std::nullopt;
  case EACCES:
  case EPERM:
    return "perf events are closed to this user: `sysctl kernel.perf_event_paranoid=2` opens them, "
           "or a container's seccomp profile does";
  case EINVAL:
  case E2BIG: return "perf events of this kernel send no signals: that needs Linux 5.13";
  case ENOENT:
  case ENOSYS: return "this kernel, or this container, has no perf events";
  default: return fmt::format("the kernel gives no perf event: {}", std::strerror(error));
  }
}

std::unique_ptr<Collector> upcall_collector(const SamplingSettings &settings, uint32_t kind) {
  return std::make_unique<UpcallCollector>(settings, kind);
}

} // namespace values
