// Pages are filled piece by piece: from the place that was missed to the end of the function, and
// along its direct branches within the page; what it leads to in other pages is for whoever has
// time (Answer::ahead). Decoding all code was refused: of 4 KiB that are met, a third is executed,
// and each instruction costs some microseconds and a hundred bytes.
//
// There are pages that no interpreter sees, because there is no room: so that time spent there has a place.
//
// A page of a file is decoded from the file, once for all processes. A miss at a place that is
// already filled may say that a process has other bytes there: they are read from its memory, and
// if they differ, the page is no longer stable, and the instruction is decoded anew, into entries
// of its own.

#include "values/code_cache.h"

#include "base/stable_sort.h"
#include "values/argument_registers.h"
#include "values/code_key.h"
#include "values/made_code.h"
#include "values/vdso.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <set>

namespace values {
namespace {

constexpr const char *kKernelName = "[kernel]", *kVdsoName = "[vdso]";
constexpr std::chrono::milliseconds kLately{100};
constexpr size_t kKeptFiles = 100;
constexpr uint32_t kFewestSamples = 2; // of a page that is kept
constexpr double kKeptShare = .25;     // of pages, and of entries
constexpr size_t kMaxMissed = 16384, kMaxUnpublished = 65536;

struct PageInfo {
  uint32_t file = 0;   // index in CodeFiles::all()
  uint64_t offset = 0; // of the page: as linked
  uint64_t link = 0;   // as in struct assay_code_page
  CodeFiles::Opened *open = nullptr;
  bool is_kernel = false, is_vdso = false;
  uint32_t made_by = 0; // a process; 0: it is of a file, or of something else that has a name
  uint32_t samples = 0; // that began there
};

} // namespace

struct CodeCache::State {
  PublishedCode published;
  Kinds kinds;
  std::vector<std::string> callers_in;
  std::set<std::string> met_words; // of these
  const KernelCode *kernel = nullptr;
  ReadKernel read_kernel;
  MadeCode made_code;
  Vdso vdso;
  binary::Decoder decoder;
  CodeFiles files;
  // By number of the page. Those behind the last published one have no memory: there is no room,
  // but samples have their places.
  std::vector<PageInfo> info = std::vector<PageInfo>(1);
  std::map<assay_code_key, uint32_t, CodeKeyOrder> page_of;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t>
      number_of; // of a page, by file and address as linked
  // Pages by process and address in it, over the bytes of a page: of those that were missed lately.
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> missed;
  ProcessMaps maps;

  Place kernel_place(uint64_t address) {
    const KernelCode::Function *function = kernel ? kernel->function_at(address) : nullptr;
    return function ? Place{files.named(function->name), address - function->begin}
                    : Place{files.named(kKernelName), address};
  }

  // In code without a file, which has its functions from what names them.
  Place place_in(const PageInfo &page, uint64_t address) {
    auto of = [&](const auto *function) {
      return function ? Place{files.named(files.all()[page.file].path + " " + function->name),
                              address - function->begin}
                      : Place{page.file, address};
    };
    return page.is_vdso   ? of(vdso.function_at(address))
           : page.made_by ? of(made_code.function_at(page.made_by, address))
                          : Place{page.file, address};
  }

  PageInfo kernel_page(uint64_t address) {
    PageInfo page;
    page.is_kernel = true;
    page.offset = page.link = address;
    page.file = files.named(kKernelName);
    return page;
  }

  // Of a file, at so many bytes in it; nothing if it is no executable, or has no code there.
  static std::optional<PageInfo> file_page(CodeFiles::Opened *open, uint64_t offset) {
    if (!open || !open->executable)
      return std::nullopt;
    const auto address = CodeFiles::linked(*open->executable, offset);
    if (!address)
      return std::nullopt;
    PageInfo page;
    page.open = open;
    page.offset = page.link = *address;
    page.file = open->index;
    return page;
  }

  // Of what a process has in memory there, from no file that says what it is; nothing if it has nothing there, or
  // something else than what was missed.
  std::optional<PageInfo> memory_page(const assay_miss &miss) {
    const MappedRange *range = maps.range_at(miss.pid, miss.address, ProcessMaps::kNow);
    if (!range || (miss.file ? !CodeFiles::is_mapped(miss, *range) : range->is_file()))
      return std::nullopt;
    PageInfo page;
    page.link = assay_code_page_begin(miss.address);
    if (range->name.empty())
      page.made_by = miss.pid;
    const std::string name =
        range->name.empty() ? fmt::format("[code made by {}]", miss.pid) : range->name;
    page.file = files.named(name);
    page.is_vdso = name == kVdsoName;
    page.offset = page.is_vdso ? page.link - range->start : page.link;
    return page;
  }

  // Of a page that another cache has published; nothing if its file is not open any more.
  std::optional<PageInfo> known_page(const assay_code_key &key) {
    return key.file == 0 ? kernel_page(key.page) : file_page(files.use(key), key.page);
  }

  // The number of the page; 0 if there is no room, nothing if the file says nothing of it.
  std::optional<uint32_t> page_for(const assay_miss &miss, const assay_code_key &key,
                                   bool &is_new) {
    if (auto known = page_of.find(key); known != page_of.end())
      return known->second;
    if (miss.in_kernel && !kernel)
      return std::nullopt;
    std::optional<PageInfo> page;
    if (miss.in_kernel)
      page = kernel_page(key.page);
    else if (miss.file)
      page = file_page(files.open(miss, maps), key.page);
    if (!page)
      page = memory_page(miss);
    return page ? std::optional(new_page(key, *page, is_new)) : std::nullopt;
  }

  // What is of an opened file is stable.
  uint32_t new_page(const assay_code_key &key, const PageInfo &page, bool &is_new) {
    if (info.size() >= published.pages() + kMaxUnpublished)
      return 0;
    const auto number = static_cast<uint32_t>(info.size());
    info.push_back(page);
    number_of.emplace(std::pair(page.file, page.link), number);
    page_of.emplace(key, number);
    if (number < published.pages()) {
      published.begin_page(number, page.link, page.open != nullptr);
      is_new = true;
    }
    return number;
  }

  std::optional<binary::RegisterSet> arguments_at(const PageInfo &page, uint64_t address,
                                                  std::span<const std::byte> code) {
    if (!(page.open || page.is_kernel) ||
        !(kinds & (kind_bit(ASSAY_VALUE_argument) | kind_bit(ASSAY_VALUE_caller))))
      return std::nullopt;
    if (page.is_kernel) {
      const KernelCode::Function *function = kernel->function_at(address);
      return function && function->begin == address
                 ? std::optional(argument_registers(decoder, code, address))
                 : std::nullopt;
    }
    const image::CodeRange *function = page.open->executable->function_at(address);
    if (!function || function->begin != address || function->found_by == image::FoundBy::plt ||
        is_cold_part(*function))
      return std::nullopt;
    return argument_registers(
        decoder, page.open->executable->bytes(address, function->end - address), address);
  }

  std::optional<CallerRule> caller_at(const PageInfo &page, uint64_t address) {
    if (!page.open || callers_in.empty())
      return std::nullopt;
    const image::CodeRange *function = page.open->executable->function_at(address);
    bool is_asked = false;
    for (const std::string &word : callers_in)
      if (word == "all" || (function && function->name.find(word) != std::string::npos)) {
        is_asked = true;
        met_words.insert(word);
      }
    if (!is_asked)
      return std::nullopt;
    if (!page.open->caller_rules)
      page.open->caller_rules = std::make_unique<CallerRules>(*page.open->executable);
    return page.open->caller_rules->at(address);
  }

  // Decodes from one instruction on. `code` begins at `begin`, as linked, and may go beyond the
  // page. Adds to `outside` what lies in other pages.
  Filled decode(uint32_t number, std::span<const std::byte> code, uint64_t begin, uint64_t address,
                bool anew, std::vector<uint64_t> *outside = nullptr) {
    const assay_code_page &page = published.page(number);
    std::vector<uint64_t> open = {address};
    std::vector<assay_uop> made;
    binary::Code decoded;
    Filled filled = Filled::is_there;
    while (!open.empty()) {
      uint64_t at = open.back();
      open.pop_back();
      while (at - page.link < ASSAY_CODE_PAGE_BYTES && at - begin < code.size()) {
        const bool is_asked = at == address && anew;
        if (page.first[at - page.link] != 0 && !is_asked)
          break;
        const auto bytes = code.subspan(at - begin);
        decoded.clear();
        made.clear();
        if (decoder.decode(bytes, at, decoded)) {
          publish(decoded, decoded.instructions.front(), bytes,
                  arguments_at(info[number], at, bytes), caller_at(info[number], at), kinds,
                  info[number].open ? info[number].open->executable.get() : nullptr, made);
        } else {
          assay_uop stop = {};
          stop.op = ASSAY_PUBLISHED_STOP;
          stop.imm = ASSAY_ENDED_bad_code;
          assay_code_head head = {1, 0, 1, 0, {}};
          std::memcpy(head.bytes, bytes.data(), 1);
          made.resize(1);
          std::memcpy(&made[0], &head, sizeof head);
          made.push_back(stop);
          decoded.instructions.emplace_back().flow = binary::Flow::stop;
        }
        if (!published.add(number, at - page.link, made))
          return Filled::no_room;
        filled = Filled::added;
        anew = anew && !is_asked;
        const binary::Instruction &instruction = decoded.instructions.front();
        if (instruction.flow == binary::Flow::branch || instruction.flow == binary::Flow::jump ||
            instruction.flow == binary::Flow::call)
          open.push_back(instruction.target());
        if (instruction.flow == binary::Flow::jump || instruction.flow == binary::Flow::ret ||
            instruction.flow == binary::Flow::indirect_jump ||
            instruction.flow == binary::Flow::stop)
          break;
        at = instruction.end();
      }
      if (outside && at - page.link >= ASSAY_CODE_PAGE_BYTES)
        outside->push_back(at);
    }
    return filled;
  }

  // The function's begin, and the first of these places in each other page, where they are not decoded.
  std::vector<assay_miss> ahead_of(const assay_miss &miss, const PageInfo &page, uint64_t address,
                                   std::vector<uint64_t> &places) const {
    std::vector<assay_miss> ahead;
    const image::CodeRange *function = page.open->executable->function_at(address);
    if (!function)
      return ahead;
    places.push_back(function->begin);
    std::sort(places.begin(), places.end());
    uint64_t last = 0; // page
    for (uint64_t place : places) {
      const uint64_t in = assay_code_page_begin(place);
      if (place < function->begin || place >= function->end || in == last ||
          published.head_at(where_of(page.file, place)))
        continue;
      last = in;
      assay_miss next = miss;
      next.address += place - address;
      next.page += in - assay_code_page_begin(address);
      ahead.push_back(next);
    }
    return ahead;
  }

  // 0: its page is not there.
  uint32_t where_of(uint32_t file, uint64_t linked) const {
    auto number = number_of.find({file, assay_code_page_begin(linked)});
    return number == number_of.end() ? 0 : assay_place_in_page(number->second, linked);
  }

  // Of an instruction that was not published, in a file.
  profile::InstructionBytes undecoded_bytes(uint32_t where) {
    const uint32_t number = assay_page_of(where);
    if (number >= info.size() || !info[number].open)
      return {};
    const uint64_t address = info[number].link + assay_offset_in_page(where);
    const auto code = info[number].open->executable->bytes_from(address);
    binary::Code decoded;
    if (!decoder.decode(code, address, decoded))
      return {};
    return profile::InstructionBytes(code.first(decoded.instructions.front().length));
  }
};

CodeCache::CodeCache(std::span<assay_code_page> pages, std::span<assay_uop> entries, Kinds kinds)
    : state_(std::make_unique<State>(PublishedCode(pages, entries), kinds)) {}
CodeCache::~CodeCache() = default;

void CodeCache::decode_kernel(const KernelCode &kernel, ReadKernel read) {
  state_->kernel = &kernel;
  state_->read_kernel = std::move(read);
}

void CodeCache::record_callers_in(std::vector<std::string> functions) {
  state_->callers_in = std::move(functions);
  if (!state_->callers_in.empty())
    state_->files.keep_callers();
}

std::vector<std::string> CodeCache::words_without_callers() const {
  std::vector<std::string> words;
  for (const std::string &word : state_->callers_in)
    if (word != "all" && !state_->met_words.count(word))
      words.push_back(word);
  return words;
}

void CodeCache::publish_again(KeptCode kept, const Announce &announce) {
  State &s = *state_;
  s.files = std::move(kept.files);
  s.met_words = std::move(kept.met_words);
  for (const KeptPage &each : kept.pages)
    if (const auto page = s.known_page(each.key)) {
      bool is_new = false;
      const uint32_t number = s.new_page(each.key, *page, is_new);
      s.published.publish_again(number, each);
      announce(each.key, number);
    }
}

KeptCode CodeCache::take_kept() {
  State &s = *state_;
  std::vector<std::pair<uint32_t, assay_code_key>> chosen; // samples
  for (const auto &[key, number] : s.page_of) {
    const PageInfo &info = s.info[number];
    if (number < s.published.pages() && info.samples >= kFewestSamples &&
        (info.is_kernel || (info.open && s.published.page(number).is_stable)))
      chosen.emplace_back(info.samples, key);
  }
  base::stable_sort(chosen, [](const auto &a, const auto &b) { return a.first > b.first; });
  KeptCode kept;
  kept.met_words = s.met_words;
  auto room = static_cast<int64_t>(kKeptShare * double(s.published.entries()));
  const auto most_pages = static_cast<size_t>(kKeptShare * double(s.published.pages()));
  for (const auto &[samples, key] : chosen) {
    if (kept.pages.size() == most_pages)
      break;
    const uint32_t number = s.page_of.at(key);
    KeptPage page = s.published.kept(number, key);
    room -= static_cast<int64_t>(page.entries.size());
    if (room < 0)
      break;
    kept.pages.push_back(std::move(page));
    if (CodeFiles::Opened *file = s.info[number].open)
      file->is_needed = true;
  }
  kept.files = std::move(s.files);
  kept.files.begin_anew(kKeptFiles);
  return kept;
}

CodeCache::Answer CodeCache::fill(const assay_miss &miss) {
  State &s = *state_;
  Answer answer;
  const assay_code_key key = key_of(miss);
  auto number = s.page_for(miss, key, answer.is_new_page);
  if (!number)
    return answer;
  if (*number == 0) {
    answer.filled = Filled::no_room;
    return answer;
  }
  if (s.missed.size() >= kMaxMissed)
    s.missed.clear();
  s.missed[{miss.pid, miss.address >> ASSAY_CODE_PAGE_BITS}] = *number;
  if (*number >= s.published.pages()) {
    answer.filled = Filled::no_room;
    return answer;
  }
  answer.page = *number;
  const assay_code_page &page = s.published.page(*number);
  const uint64_t in_page = assay_offset_in_page(miss.address), address = page.link + in_page;
  const PageInfo &info = s.info[*number];
  if (page.is_stable && page.first[in_page] == 0) {
    auto code = info.open->executable->bytes_from(page.link);
    uint64_t begin = page.link;
    if (code.empty()) { // the segment begins within the page
      code = info.open->executable->bytes_from(address);
      begin = address;
    }
    if (code.empty())
      return answer;
    std::vector<uint64_t> outside;
    answer.filled = s.decode(*number, code, begin, address, false, &outside);
    answer.ahead = s.ahead_of(miss, info, address, outside);
    return answer;
  }
  // What the process has there is what counts: code without a file, or code that is not what it was.
  const size_t wanted = ASSAY_CODE_PAGE_BYTES - in_page + 15;
  const auto memory = info.is_kernel ? s.read_kernel(miss.address, wanted)
                                     : process_memory(miss.pid, miss.address, wanted);
  if (memory.empty())
    return answer;
  const assay_code_head *head = s.published.head_at(assay_place_in_page(*number, in_page));
  if (head && memory.size() >= head->length &&
      std::memcmp(head->bytes, memory.data(), std::min<size_t>(8, head->length)) == 0) {
    answer.filled = Filled::is_there;
    return answer;
  }
  if (head)
    s.published.make_unstable(*number);
  answer.filled = s.decode(*number, memory, address, address, true);
  return answer;
}

CodeCache::Answer CodeCache::fill_ahead(const assay_miss &miss) {
  State &s = *state_;
  if (auto known = s.page_of.find(key_of(miss)); known != s.page_of.end()) {
    const uint32_t number = known->second;
    if (number >= s.published.pages() || !s.published.page(number).is_stable ||
        s.published.head_at(assay_place_in_page(number, miss.address)))
      return {};
  }
  return fill(miss);
}

std::optional<CodeCache::Place> CodeCache::place(uint32_t where) const {
  const uint32_t number = assay_page_of(where);
  if (number == 0 || number >= state_->info.size())
    return std::nullopt;
  const PageInfo &page = state_->info[number];
  const uint64_t offset = page.offset + assay_offset_in_page(where);
  return page.is_kernel ? state_->kernel_place(offset) : state_->place_in(page, offset);
}

profile::InstructionBytes CodeCache::bytes(uint32_t where) const {
  const assay_code_head *head = state_->published.head_at(where);
  if (!head)
    return state_->undecoded_bytes(where);
  const auto known = std::as_bytes(std::span(head->bytes)).first(std::min<size_t>(8, head->length));
  const PageInfo &page = state_->info[assay_page_of(where)];
  const uint64_t address = page.offset + assay_offset_in_page(where);
  if (head->length > 8 && page.open)
    return profile::InstructionBytes(page.open->executable->bytes(address, head->length));
  if (head->length > 8 && page.is_kernel) {
    const auto all = state_->read_kernel(address, head->length);
    if (all.size() == head->length && std::equal(known.begin(), known.end(), all.begin()))
      return profile::InstructionBytes(all);
  }
  return profile::InstructionBytes(known);
}

CodeCache::Shape CodeCache::shape(uint32_t where) const {
  const assay_code_head *head = state_->published.head_at(where);
  return head ? Shape{head->length, head->flags != 0} : Shape{};
}

bool CodeCache::is_stable(uint32_t where) const {
  const uint32_t page = assay_page_of(where);
  return page && page < state_->published.pages() && state_->published.page(page).is_stable;
}

uint64_t CodeCache::linked(uint32_t where) const {
  const uint32_t page = assay_page_of(where);
  return page && page < state_->info.size() ? state_->info[page].link + assay_offset_in_page(where)
                                            : 0;
}

uint32_t CodeCache::beside(uint32_t where, uint64_t linked) const {
  return state_->where_of(state_->info[assay_page_of(where)].file, linked);
}

uint32_t CodeCache::behind(uint32_t where, unsigned length) const {
  return assay_offset_in_page(where) + length < ASSAY_CODE_PAGE_BYTES
             ? where + length
             : beside(where, linked(where) + length);
}

uint32_t CodeCache::where_at(uint32_t pid, uint64_t address) {
  State &s = *state_;
  if (address >> 63)
    return s.where_of(s.files.named(kKernelName), address);
  if (const auto place = place_in(pid, address))
    if (const uint32_t where = s.where_of(place->file, place->offset))
      return where;
  // Code without a file, or the process has ended.
  const auto missed = s.missed.find({pid, address >> ASSAY_CODE_PAGE_BITS});
  return missed == s.missed.end() ? 0 : assay_place_in_page(missed->second, address);
}

std::optional<CodeCache::Place> CodeCache::place_in(uint32_t pid, uint64_t address) {
  State &s = *state_;
  if (address >> 63)
    return s.kernel ? std::optional(s.kernel_place(address)) : std::nullopt;
  const MappedRange *range = s.maps.file_at(pid, address, kLately);
  if (!range)
    return std::nullopt;
  return s.files.place_in(*range, address);
}

const std::vector<CodeFile> &CodeCache::files() const {
  return state_->files.all();
}

std::string CodeCache::path_of_build(const CodeFile &file) const {
  return state_->files.path_of_build(file);
}

size_t CodeCache::open_files() const {
  return state_->files.opened();
}

void CodeCache::count_sample(uint32_t where) {
  if (const uint32_t number = assay_page_of(where); number < state_->info.size())
    state_->info[number].samples++;
}

double CodeCache::fullness() const {
  return std::max(double(state_->info.size()) / double(state_->published.pages()),
                  state_->published.fullness());
}

} // namespace values
