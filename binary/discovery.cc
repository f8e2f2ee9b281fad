// Symbols may be stripped, unwind tables left out, and assembly often has neither: then a third of
// a codec and most of a static program belong to no function. What is known says where more begins:
// it is called, jumped to, its address is made by an instruction or stands in data. From there a
// function goes on to an instruction after which control cannot come, beyond all that it has jumped
// to, or to data among its code; what it leads to begins in turn.
//
// What is left over then is swept: what can be decoded to its end, and has no instruction on the
// way that programs do not have, is a function, too. But it may be data, or begin within an
// instruction, so it is not understood (FoundBy::sweep), and nothing follows from what it seems to
// lead to. All others are understood only if their control flow is proven like that of any other.
// Learning what beginnings look like was refused: they would be guesses, and nobody could say why
// one was made.

#include "binary/discovery.h"

#include "binary/plain_instructions.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>

namespace binary {
namespace {

constexpr size_t kMaxFound = 2'000'000;

class Discovery {
public:
  explicit Discovery(const image::Executable &executable) : executable_(executable) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  std::vector<image::CodeRange> run() {
    for (const image::CodeRange &range : executable_.functions()) {
      // Where the loader enters has no end of its own: it would reach to the next function known.
      if (range.found_by == image::FoundBy::entry)
        begins_[range.begin] = {.name = range.name, .sure = true};
      else
        known_.push_back(range);
    }
    sort(known_);
    gaps_ = gaps_between(known_);
    if (gaps_.empty())
      return known_;
    for (auto begin = begins_.begin(); begin != begins_.end(); ++begin)
      wait(begin);
    if (executable_.position_independent())
      for (uint64_t pointer : executable_.code_pointers())
        arrive(pointer, true);
    for (const image::CodeRange &range : known_)
      if (range.found_by != image::FoundBy::plt)
        look_for_targets(range.begin, range.end);
    follow();
    if (!executable_.position_independent())
      follow_words();
    return sweep();
  }

private:
  struct Begin {
    std::string name; // if there is one
    // Control comes here, from code that is known to be code; else it may be the address of data.
    bool sure = false;
    uint64_t behind = 0; // the end of the function; 0: it is none
    bool waits = false;  // its end is to be found
  };
  using Begins = std::map<uint64_t, Begin>;

  using Gaps = std::vector<std::pair<uint64_t, uint64_t>>; // by begin

  static void sort(std::vector<image::CodeRange> &functions) {
    std::sort(functions.begin(), functions.end(),
              [](const auto &a, const auto &b) { return a.begin < b.begin; });
  }

  // Between functions, which are sorted.
  Gaps gaps_between(const std::vector<image::CodeRange> &functions) const {
    Gaps gaps;
    auto next = functions.begin();
    for (const auto &[begin, end] : executable_.code_regions()) {
      uint64_t at = begin;
      for (; next != functions.end() && next->begin < end; ++next) {
        if (next->begin > at)
          gaps.emplace_back(at, next->begin);
        at = std::max(at, next->end);
      }
      if (at < end)
        gaps.emplace_back(at, end);
    }
    return gaps;
  }

  // The end of the gap that an address is in; nullopt: a function is known there.
  std::optional<uint64_t> end_of_gap(uint64_t address) const {
    auto after = std::upper_bound(gaps_.begin(), gaps_.end(), std::pair(address, UINT64_MAX));
    if (after == gaps_.begin() || address >= std::prev(after)->second)
      return std::nullopt;
    return std::prev(after)->second;
  }

  void wait(Begins::iterator begin) {
    if (!begin->second.waits)
      work_.push_back(begin);
    begin->second.waits = true;
  }

  // Something leads to this address.
  void arrive(uint64_t address, bool sure) {
    if (!end_of_gap(address) || begins_.size() >= kMaxFound)
      return;
    auto [begin, is_new] = begins_.try_emplace(address);
    if (!is_new && (begin->second.sure || !sure))
      return;
    begin->second.sure |= sure;
    wait(begin);
    if (is_new && begin != begins_.begin()) // what lies before ends here
      wait(std::prev(begin));
  }

  // Finds where functions end, and where those begin that they lead to.
  void follow() {
    while (!work_.empty()) {
      const auto begin = work_.back();
      work_.pop_back();
      begin->second.waits = false;
      const uint64_t end = *end_of_gap(begin->first);
      const auto next = std::next(begin);
      const uint64_t limit = next == begins_.end() ? end : std::min(end, next->first);
      const bool sure = begin->second.sure;
      begin->second.behind =
          is_padding_to(begin->first, end)
              ? 0
              : end_of(begin->first, limit, sure ? Start::control_comes : Start::led_to);
      if (begin->second.behind) // what data seems to lead to is nowhere
        for (const auto &[target, is_control] : noted_)
          arrive(target, is_control && sure);
    }
  }

  // Words of data that may be addresses: those that are aligned as functions are, unless they are
  // labels of switches, which are known by now; and those that lie where nothing is known.
  void follow_words() {
    for (uint64_t word : executable_.code_pointers())
      if (word % 16 == 0 && !labels_.contains(word))
        arrive(word, true);
    follow();
    for (uint64_t word : executable_.code_pointers()) {
      auto behind = begins_.upper_bound(word);
      if (word % 8 == 0 && (behind == begins_.begin() || std::prev(behind)->second.behind <= word))
        arrive(word, true);
    }
    follow();
  }

  bool decode(uint64_t address, uint64_t end, ZydisDecodedInstruction &decoded) {
    auto bytes = executable_.bytes_from(address);
    return ZYAN_SUCCESS(
        ZydisDecoderDecodeInstruction(&decoder_, &context_, bytes.data(),
                                      std::min<uint64_t>(bytes.size(), end - address), &decoded));
  }

  static bool is_relative_jump(const ZydisDecodedInstruction &decoded) {
    auto kind = decoded.meta.category;
    return (kind == ZYDIS_CATEGORY_UNCOND_BR || kind == ZYDIS_CATEGORY_COND_BR) &&
           decoded.raw.imm[0].is_relative;
  }
  static uint64_t target_of(const ZydisDecodedInstruction &decoded, uint64_t next) {
    return next + static_cast<uint64_t>(decoded.raw.imm[0].value.s);
  }

  // Calls, jumps and addresses that lead into gaps.
  template <class Note>
  void note_targets(const ZydisDecodedInstruction &decoded, uint64_t next, bool own_jumps,
                    Note note) {
    bool is_call = decoded.meta.category == ZYDIS_CATEGORY_CALL && decoded.raw.imm[0].is_relative;
    if (is_call || (own_jumps && is_relative_jump(decoded)))
      note(target_of(decoded, next), true);
    else if (decoded.mnemonic == ZYDIS_MNEMONIC_LEA && decoded.raw.modrm.mod == 0 &&
             decoded.raw.modrm.rm == 5)
      note(next + static_cast<uint64_t>(decoded.raw.disp.value), false);
    else if (decoded.mnemonic == ZYDIS_MNEMONIC_MOV && decoded.raw.imm[0].size == 32 &&
             !executable_.position_independent())
      note(decoded.raw.imm[0].value.u & 0xffffffff, false);
  }
  void look_for_targets(uint64_t begin, uint64_t end) {
    ZydisDecodedInstruction decoded;
    const auto bytes = executable_.bytes_from(begin);
    for (uint64_t at = begin; at < end;) {
      const auto rest = bytes.subspan(at - begin);
      if (unsigned length = plain_.length_at(rest)) {
        at += length;
        continue;
      }
      if (!decode(at, end, decoded))
        return;
      plain_.note(rest, decoded);
      at += decoded.length;
      note_targets(decoded, at, true, [&](uint64_t target, bool sure) { arrive(target, sure); });
    }
  }

  // What compilers and people do not write for programs, but data is full of.
  static bool is_unlikely(const ZydisDecodedInstruction &decoded) {
    constexpr ZydisInstructionAttributes kOdd =
        ZYDIS_ATTRIB_IS_PRIVILEGED | ZYDIS_ATTRIB_HAS_SEGMENT_CS | ZYDIS_ATTRIB_HAS_SEGMENT_SS |
        ZYDIS_ATTRIB_HAS_SEGMENT_ES;
    bool is_nop = decoded.mnemonic == ZYDIS_MNEMONIC_NOP; // padding has such prefixes
    switch (decoded.meta.category) {
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_INTERRUPT: return decoded.mnemonic != ZYDIS_MNEMONIC_INT3;
    case ZYDIS_CATEGORY_RET:
      return decoded.mnemonic != ZYDIS_MNEMONIC_RET ||
             decoded.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ||
             (decoded.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE);
    default:
      return decoded.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ||
             (!is_nop && decoded.mnemonic != ZYDIS_MNEMONIC_HLT && decoded.attributes & kOdd);
    }
  }

  // An indirect jump to a register, or through an index: what it goes to may lie behind it. Through another pointer
  // (jmp [rbx]) it goes to where some function begins.
  static bool may_choose(const ZydisDecodedInstruction &decoded) {
    if (decoded.raw.imm[0].is_relative)
      return false;
    const bool has_index =
        decoded.raw.modrm.rm == 4 && !(decoded.raw.sib.index == 4 && decoded.raw.rex.X == 0);
    return decoded.raw.modrm.mod == 3 || has_index;
  }

  static bool stops(const ZydisDecodedInstruction &decoded) {
    return decoded.meta.category == ZYDIS_CATEGORY_RET ||
           decoded.meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
           decoded.mnemonic == ZYDIS_MNEMONIC_UD2 || decoded.mnemonic == ZYDIS_MNEMONIC_HLT;
  }

  static bool is_padding(const ZydisDecodedInstruction &decoded) {
    return decoded.mnemonic == ZYDIS_MNEMONIC_NOP || decoded.mnemonic == ZYDIS_MNEMONIC_INT3;
  }

  bool is_padding_to(uint64_t at, uint64_t end) {
    ZydisDecodedInstruction decoded;
    while (at < end && decode(at, end, decoded) && decoded.mnemonic == ZYDIS_MNEMONIC_NOP)
      at += decoded.length;
    return at == end;
  }

  // What is known and what was found.
  std::vector<image::CodeRange> found() const {
    std::vector<image::CodeRange> all = known_;
    for (const auto &[address, begin] : begins_)
      if (begin.behind)
        all.push_back({address, begin.behind, begin.name, image::FoundBy::code});
    sort(all);
    return all;
  }

  // Functions between those that were found. Where one begins at just what a word of data says, that leads to it.
  std::vector<image::CodeRange> sweep() {
    const auto &words = executable_.code_pointers();
    for (;;) {
      std::vector<image::CodeRange> functions = found();
      std::vector<image::CodeRange> swept;
      for (const auto &[begin, end] : gaps_between(functions))
        sweep(begin, end, swept);
      for (const image::CodeRange &range : swept)
        if (std::binary_search(words.begin(), words.end(), range.begin))
          arrive(range.begin, false);
      if (work_.empty()) {
        functions.insert(functions.end(), swept.begin(), swept.end());
        sort(functions);
        return functions;
      }
      follow();
    }
  }

  // Behind padding, data or a function the next one begins.
  void sweep(uint64_t begin, uint64_t end, std::vector<image::CodeRange> &swept) {
    for (uint64_t at = begin; at < end;) {
      ZydisDecodedInstruction decoded;
      const bool decodes = decode(at, end, decoded);
      if (decodes && is_padding(decoded)) {
        at += decoded.length;
        continue;
      }
      const uint64_t behind = decodes ? end_of(at, end, Start::guessed) : 0;
      if (behind)
        swept.push_back({at, behind, {}, image::FoundBy::sweep});
      at = behind ? behind : std::min(end, (at + 16) & ~uint64_t{15});
    }
  }

  // What a function jumps to further on, and the place behind which control goes on only there; or
  // between, if something further on jumps back.
  struct Ahead {
    std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> targets;
    uint64_t furthest = 0;
    uint64_t pause = 0, resumes = 0; // 0: control runs on

    void add(uint64_t target) {
      targets.push(target);
      furthest = std::max(furthest, target);
    }
    // Before the furthest target.
    void stop_at(uint64_t at) {
      while (targets.top() < at)
        targets.pop();
      pause = at;
      resumes = targets.top();
    }
  };

  // jmp [table + 8 * index]: its words, as long as they lead into this function or behind it;
  // before them words may be 0, where the least indexes have no entry. False: there are none.
  bool read_table(const ZydisDecodedInstruction &decoded, uint64_t begin, uint64_t limit,
                  Ahead &ahead) {
    bool is_absolute = decoded.raw.modrm.mod == 0 && decoded.raw.modrm.rm == 4 &&
                       decoded.raw.sib.base == 5 && decoded.raw.sib.scale == 3;
    if (!is_absolute || executable_.position_independent())
      return false;
    constexpr unsigned kMaxHoles = 8;
    auto table = static_cast<uint64_t>(decoded.raw.disp.value);
    for (unsigned hole = 0; hole < kMaxHoles && executable_.read<uint64_t>(table) == 0; hole++)
      table += 8;
    for (bool any = false;; table += 8, any = true) {
      auto word = executable_.read<uint64_t>(table);
      if (!word || *word < begin || *word >= limit)
        return any;
      labels_.insert(*word);
      ahead.add(*word);
    }
  }

  // The function ends where control stops, before data; what it jumps to behind that is something else's begin.
  uint64_t end_before_data(Ahead &ahead) {
    for (; !ahead.targets.empty(); ahead.targets.pop())
      if (ahead.targets.top() >= ahead.pause)
        noted_.emplace_back(ahead.targets.top(), true);
    return ahead.pause;
  }

  // How it is known that a function begins somewhere: control comes there, something holds the
  // address, or it lies behind padding.
  enum class Start { control_comes, led_to, guessed };

  // Where the function ends that begins at `begin`; 0 if there is none.
  uint64_t end_of(uint64_t begin, uint64_t limit, Start start) {
    noted_.clear();
    uint64_t stop = 0;
    Ahead ahead;
    bool jumps_by_table = false; // to code behind: all up to the next beginning
    ZydisDecodedInstruction decoded;
    bool zeros = true;
    for (uint64_t at = begin; at < limit;) {
      if (ahead.pause && at >= ahead.resumes) {
        if (at > ahead.resumes)
          return end_before_data(ahead);
        ahead.pause = 0;
      }
      const bool is_code = decode(at, limit, decoded);
      if (ahead.pause && (!is_code || is_unlikely(decoded)))
        return end_before_data(ahead);
      if (!is_code)
        return stop ? stop : start != Start::guessed && at > begin ? at : 0;
      if (start != Start::control_comes && is_unlikely(decoded))
        return stop;
      uint64_t next = at + decoded.length;
      zeros &= decoded.opcode == 0 && decoded.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
      auto kind = decoded.meta.category;
      auto note = [&](uint64_t target, bool sure) { noted_.emplace_back(target, sure); };
      note_targets(decoded, next, false, note);
      if (is_relative_jump(decoded)) {
        uint64_t target = target_of(decoded, next);
        if (target >= begin && target < limit)
          ahead.add(target);
        else
          note(target, true);
      }
      bool is_table_jump = kind == ZYDIS_CATEGORY_UNCOND_BR && may_choose(decoded);
      if (is_table_jump && !read_table(decoded, begin, limit, ahead))
        jumps_by_table = true;
      at = next;
      if (!stops(decoded) || is_table_jump)
        continue;
      if (at <= ahead.furthest) {
        if (!jumps_by_table && !zeros)
          ahead.stop_at(at);
        continue;
      }
      stop = zeros ? 0 : at;
      if (!jumps_by_table || zeros)
        return stop;
    }
    if (ahead.pause)
      return end_before_data(ahead);
    if (stop && jumps_by_table)
      return stop;
    return start != Start::guessed ? limit : 0; // it runs into what is known to begin there
  }

  const image::Executable &executable_;
  ZydisDecoder decoder_;
  ZydisDecoderContext context_;
  PlainInstructions plain_;
  std::vector<image::CodeRange> known_; // by tables of the file
  Gaps gaps_;                           // between these
  std::set<uint64_t> labels_;           // of switches
  Begins begins_;                       // in gaps
  std::vector<Begins::iterator> work_;
  std::vector<std::pair<uint64_t, bool>>
      noted_; // what the function that is looked at leads to, and whether control does
};

} // namespace

std::vector<image::CodeRange> discovered_functions(const image::Executable &executable) {
  return Discovery(executable).run();
}

Coverage coverage_of(const image::Executable &executable) {
  ZydisDecoder decoder;
  ZydisDecoderContext context;
  ZydisDecodedInstruction decoded;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  auto padding_at = [&](uint64_t address) -> uint64_t {
    auto bytes = executable.bytes_from(address);
    if (bytes.empty() || bytes[0] == std::byte{0} || bytes[0] == std::byte{0xcc})
      return 1;
    bool is_nop = ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, bytes.data(),
                                                             bytes.size(), &decoded)) &&
                  decoded.mnemonic == ZYDIS_MNEMONIC_NOP;
    return is_nop ? decoded.length : 0;
  };
  Coverage coverage;
  auto next = executable.functions().begin();
  for (const auto &[begin, end] : executable.code_regions()) {
    coverage.code += end - begin;
    for (uint64_t at = begin; at < end;) {
      while (next != executable.functions().end() && next->end <= at)
        ++next;
      if (next != executable.functions().end() && next->begin <= at) {
        uint64_t until = std::min(end, next->end);
        coverage.in_functions += until - at;
        at = until;
        continue;
      }
      uint64_t length = padding_at(at);
      coverage.padding += std::min(length, end - at);
      at += length ? length : 1;
    }
  }
  return coverage;
}

} // namespace binary
