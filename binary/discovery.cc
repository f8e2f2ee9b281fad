// Symbols may be stripped, unwind tables left out, and assembly often has neither: then a third of a
// codec and most of a static program belong to no function. What is known says where more begins: it
// is called, jumped to, its address is made by an instruction or stands in data. From there a function
// goes on to an instruction after which control cannot come, beyond all that it has jumped to; behind
// padding the next one begins.
//
// That is a sweep, and may take data for code. So what nothing leads to is a function only if it can be
// decoded to its end, and has no instruction on the way that programs do not have; and a function found in either way is understood only if its control flow is
// proven like that of any other. Learning what beginnings look like was refused: they would be guesses,
// and nobody could say why one was made.

#include "binary/discovery.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace binary {
namespace {

constexpr size_t kMostFound = 2'000'000;

class Discovery {
public:
  explicit Discovery(const image::Executable &executable) : executable_(executable) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  std::vector<image::CodeRange> run() {
    for (const image::CodeRange &range : executable_.functions()) {
      // Where the loader enters has no end of its own: it would reach to the next function known.
      if (range.found_by == image::FoundBy::entry)
        begins_[range.begin] = {range.name, true};
      else
        known_.push_back(range);
    }
    find_gaps();
    if (gaps_.empty())
      return known_;
    if (executable_.position_independent())
      for (uint64_t pointer : executable_.code_pointers())
        arrive(pointer, true);
    for (const image::CodeRange &range : known_)
      if (range.found_by != image::FoundBy::plt)
        look_for_targets(range.begin, range.end);
    divide_all();
    // Words of data that are labels of switches are known by now.
    if (!executable_.position_independent()) {
      for (uint64_t pointer : executable_.code_pointers())
        if (pointer % 16 == 0 && !labels_.contains(pointer))
          arrive(pointer, true);
      divide_all();
    }
    known_.insert(known_.end(), found_.begin(), found_.end());
    std::sort(known_.begin(), known_.end(),
              [](const auto &a, const auto &b) { return a.begin < b.begin; });
    return std::move(known_);
  }

private:
  // Beginnings may be found while the gaps before them are divided: so again, until none is new.
  void divide_all() {
    constexpr unsigned kMostPasses = 6;
    for (unsigned pass = 0; pass < kMostPasses; pass++) {
      changed_ = false;
      found_.clear();
      for (const auto &[begin, end] : gaps_)
        divide(begin, end);
      if (!changed_)
        break;
    }
  }

  void find_gaps() {
    auto next = known_.begin();
    for (const auto &[begin, end] : executable_.code_regions()) {
      uint64_t at = begin;
      for (; next != known_.end() && next->begin < end; ++next) {
        if (next->begin > at)
          gaps_.emplace_back(at, next->begin);
        at = std::max(at, next->end);
      }
      if (at < end)
        gaps_.emplace_back(at, end);
    }
  }

  // Something leads to this address. `sure`: control does, from code that is known to be code; else it may
  // be the address of data.
  void arrive(uint64_t address, bool sure) {
    auto after = std::upper_bound(gaps_.begin(), gaps_.end(), std::pair(address, UINT64_MAX));
    if (after == gaps_.begin() || address >= std::prev(after)->second ||
        begins_.size() >= kMostFound)
      return;
    Begin &begin = begins_[address];
    changed_ |= !begin.seen || (sure && !begin.sure);
    begin.seen = true;
    begin.sure |= sure;
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
    for (uint64_t at = begin; at < end && decode(at, end, decoded); at += decoded.length)
      note_targets(decoded, at + decoded.length, true,
                   [&](uint64_t target, bool sure) { arrive(target, sure); });
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

  static bool is_padding(const ZydisDecodedInstruction &decoded) {
    return decoded.mnemonic == ZYDIS_MNEMONIC_NOP || decoded.mnemonic == ZYDIS_MNEMONIC_INT3;
  }

  bool is_padding_to(uint64_t at, uint64_t end) {
    ZydisDecodedInstruction decoded;
    while (at < end && decode(at, end, decoded) && decoded.mnemonic == ZYDIS_MNEMONIC_NOP)
      at += decoded.length;
    return at == end;
  }

  void divide(uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end;) {
      auto next = begins_.upper_bound(at);
      uint64_t limit = next == begins_.end() ? end : std::min(end, next->first);
      ZydisDecodedInstruction decoded;
      auto known = begins_.find(at);
      bool is_begin = known != begins_.end(), is_sure = is_begin && known->second.sure;
      bool decodes = decode(at, limit, decoded);
      // Jumps to padding are the ends of paths that are never taken, behind calls that do not return.
      if (decodes && is_padding(decoded) && decoded.mnemonic == ZYDIS_MNEMONIC_NOP &&
          is_padding_to(at, end))
        return;
      if (!is_begin && decodes && is_padding(decoded)) {
        at += decoded.length;
        continue;
      }
      Seen asked{limit, 0, is_begin, is_sure};
      Seen &before = seen_[at];
      bool is_known =
          before.limit == limit && before.is_begin == is_begin && before.is_sure == is_sure;
      if (!is_known) {
        asked.behind = decodes ? end_of(at, limit, is_begin, is_sure) : 0;
        before = asked;
      }
      uint64_t behind = before.behind;
      if (!behind) { // data: on at the next place where a function could begin
        at = std::min(limit, (at + 16) & ~uint64_t{15});
        continue;
      }
      // Only now, because what data seems to lead to is nowhere.
      if (!is_known)
        for (const auto &[target, sure] : noted_)
          arrive(target, sure && is_sure);
      found_.push_back({at, behind, known == begins_.end() ? std::string() : known->second.name,
                        image::FoundBy::code});
      at = behind;
    }
  }

  // jmp [table + 8 * index]: its words, as long as they lead into this function or behind it.
  bool read_table(const ZydisDecodedInstruction &decoded, uint64_t begin, uint64_t limit,
                  uint64_t &furthest) {
    bool is_absolute = decoded.raw.modrm.mod == 0 && decoded.raw.modrm.rm == 4 &&
                       decoded.raw.sib.base == 5 && decoded.raw.sib.scale == 3;
    if (!is_absolute || executable_.position_independent())
      return false;
    auto table = static_cast<uint64_t>(decoded.raw.disp.value);
    for (;; table += 8) {
      auto word = executable_.read<uint64_t>(table);
      if (!word || *word < begin || *word >= limit)
        return true;
      labels_.insert(*word);
      furthest = std::max(furthest, *word);
    }
  }

  // Where the function ends that begins at `begin`; 0 if there is none.
  uint64_t end_of(uint64_t begin, uint64_t limit, bool is_begin, bool is_sure) {
    noted_.clear();
    uint64_t furthest = begin, stop = 0;
    bool jumps_by_table = false; // to code behind: all up to the next beginning
    ZydisDecodedInstruction decoded;
    bool zeros = true;
    for (uint64_t at = begin; at < limit;) {
      if (!decode(at, limit, decoded))
        return stop ? stop : is_begin && at > begin ? at : 0;
      if (!is_sure && is_unlikely(decoded))
        return stop;
      zeros &= decoded.opcode == 0 && decoded.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;
      uint64_t next = at + decoded.length;
      auto kind = decoded.meta.category;
      auto note = [&](uint64_t target, bool sure) { noted_.emplace_back(target, sure); };
      note_targets(decoded, next, false, note);
      if (is_relative_jump(decoded)) {
        uint64_t target = target_of(decoded, next);
        if (target >= begin && target < limit)
          furthest = std::max(furthest, target);
        else
          note(target, true);
      }
      bool is_table_jump = kind == ZYDIS_CATEGORY_UNCOND_BR && !decoded.raw.imm[0].is_relative &&
                           !(decoded.raw.modrm.mod == 0 && decoded.raw.modrm.rm == 5);
      bool stops = kind == ZYDIS_CATEGORY_RET || kind == ZYDIS_CATEGORY_UNCOND_BR ||
                   decoded.mnemonic == ZYDIS_MNEMONIC_UD2 || decoded.mnemonic == ZYDIS_MNEMONIC_HLT;
      if (is_table_jump && !read_table(decoded, begin, limit, furthest))
        jumps_by_table = true;
      at = next;
      if (!stops || is_table_jump || at <= furthest)
        continue;
      stop = zeros ? 0 : at;
      if (!jumps_by_table || zeros)
        return stop;
    }
    if (stop && jumps_by_table)
      return stop;
    return is_begin ? limit : 0; // it runs into what is known to begin there
  }

  const image::Executable &executable_;
  ZydisDecoder decoder_;
  ZydisDecoderContext context_;
  std::vector<image::CodeRange> known_, found_;
  std::vector<std::pair<uint64_t, uint64_t>> gaps_; // by begin
  std::set<uint64_t> labels_;                       // of switches
  struct Begin {
    std::string name; // if there is one
    bool sure = false, seen = false;
  };
  std::map<uint64_t, Begin> begins_; // in gaps
  // How far a function goes that begins somewhere, as asked in an earlier pass: most stay as they were.
  struct Seen {
    uint64_t limit = 0, behind = 0;
    bool is_begin = false, is_sure = false;
  };
  std::unordered_map<uint64_t, Seen> seen_;
  std::vector<std::pair<uint64_t, bool>> noted_; // what the function that is looked at leads to
  bool changed_ = false;
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
