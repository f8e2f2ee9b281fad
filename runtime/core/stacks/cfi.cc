// A reader for what compilers emit on x86-64: a sorted table of 4-byte offsets, CIEs of
// augmentation "z…", CFAs of the form register + offset. Everything else (expressions: PLT entries,
// signal frames) ends the chain, which costs the outer frames of a stack and never a wrong one.

#include "runtime/core/stacks/cfi.h"

#include <stddef.h>

namespace assay {
namespace {

enum : uint8_t { kPcRelative = 0x10, kDataRelative = 0x30, kSigned4 = 0x0b };
enum : uint64_t { kRbp = 6, kRsp = 7, kReturnAddress = 16 };

template <typename T> T load(uint64_t at) {
  T value;
  __builtin_memcpy(&value, (const void *)at, sizeof value);
  return value;
}

class Cursor {
public:
  Cursor(uint64_t at, uint64_t end) : at_(at), end_(end) {}
  bool more() const { return at_ < end_; }
  uint64_t at() const { return at_; }
  void skip(uint64_t n) { at_ += n; }
  template <typename T> T fixed() {
    T value = load<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      uint8_t byte = fixed<uint8_t>();
      value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
      if (!(byte & 0x80))
        return value;
    }
  }
  int64_t sleb() {
    int64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
      byte = fixed<uint8_t>();
      value |= shift < 64 ? (int64_t)(byte & 0x7f) << shift : 0;
      shift += 7;
    } while (byte & 0x80);
    return shift < 64 && (byte & 0x40) ? value | -(1LL << shift) : value;
  }

private:
  uint64_t at_, end_;
};

// Address of the entry (FDE) that may describe pc; 0 if none.
uint64_t find_entry(uint64_t header, uint64_t pc) {
  Cursor c(header, header + 12);
  uint8_t version = c.fixed<uint8_t>(), frame_encoding = c.fixed<uint8_t>(),
          count_encoding = c.fixed<uint8_t>(), table_encoding = c.fixed<uint8_t>();
  if (version != 1 || frame_encoding != (kPcRelative | kSigned4) ||
      count_encoding != 3 /* unsigned, 4 bytes */ || table_encoding != (kDataRelative | kSigned4))
    return 0;
  uint32_t count = load<uint32_t>(header + 8);
  uint64_t table = header + 12;
  uint32_t low = 0, high = count; // the last entry that starts at or before pc
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (header + (uint64_t)(int64_t)load<int32_t>(table + 8ULL * middle) <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? header + (uint64_t)(int64_t)load<int32_t>(table + 8ULL * (low - 1) + 4) : 0;
}

struct CommonEntry {
  uint64_t code_align;
  int64_t data_align;
  bool has_augmentation_data;
  uint64_t program, program_end;
};

bool read_common_entry(uint64_t at, CommonEntry &out) {
  uint32_t length = load<uint32_t>(at);
  if (length == 0 || length == 0xffffffff)
    return false;
  Cursor c(at + 8, at + 4 + length);
  if (c.fixed<uint8_t>() != 1)
    return false;
  bool signal = false, plain_pointers = true;
  uint64_t augmentation = c.at();
  while (c.fixed<uint8_t>())
    ;
  out.code_align = c.uleb();
  out.data_align = c.sleb();
  if (c.uleb() != kReturnAddress)
    return false;
  const char *letters = (const char *)augmentation;
  out.has_augmentation_data = letters[0] == 'z';
  if (!out.has_augmentation_data)
    return false;
  uint64_t data_size = c.uleb();
  Cursor data(c.at(), c.at() + data_size);
  for (letters++; *letters; letters++) {
    if (*letters == 'S')
      signal = true;
    else if (*letters == 'L')
      data.skip(1);
    else if (*letters == 'R')
      plain_pointers = data.fixed<uint8_t>() == (kPcRelative | kSigned4);
    else if (*letters == 'P')
      data.skip(data.fixed<uint8_t>() % 16 == kSigned4 ? 4 : 8);
  }
  c.skip(data_size);
  out.program = c.at();
  out.program_end = at + 4 + length;
  return !signal && plain_pointers;
}

// Runs a program of call frame instructions up to pc.
class Interpreter {
public:
  Interpreter(const CommonEntry &common, uint64_t start, uint64_t pc)
      : common_(common), location_(start), pc_(pc) {}

  bool run(uint64_t program, uint64_t end) {
    Cursor c(program, end);
    while (c.more() && location_ <= pc_)
      if (!step(c))
        return false;
    return true;
  }
  void remember_initial() { initial_ = rule_; }
  FrameRule rule() const { return rule_; }

private:
  void advance(uint64_t units) { location_ += units * common_.code_align; }

  void set_cfa(uint64_t reg, int64_t offset) {
    rule_.known = reg == kRbp || reg == kRsp;
    rule_.from_rbp = reg == kRbp;
    rule_.cfa_offset = (int32_t)offset;
  }

  void saved(uint64_t reg, int64_t offset) {
    if (reg != kRbp)
      return;
    rule_.rbp_saved = true;
    rule_.rbp_offset = (int16_t)offset;
  }

  void restore(uint64_t reg) {
    if (reg != kRbp)
      return;
    rule_.rbp_saved = initial_.rbp_saved;
    rule_.rbp_offset = initial_.rbp_offset;
  }

  bool step(Cursor &c) {
    uint8_t op = c.fixed<uint8_t>();
    uint64_t low = op & 0x3f, reg;
    switch (op >> 6) {
    case 1: advance(low); return true;
    case 2: saved(low, (int64_t)c.uleb() * common_.data_align); return true;
    case 3: restore(low); return true;
    default: break; // the lower bits tell
    }
    switch (op) {
    case 0x00: return true;                               // nop
    case 0x02: advance(c.fixed<uint8_t>()); return true;  // advance_loc1
    case 0x03: advance(c.fixed<uint16_t>()); return true; // advance_loc2
    case 0x04: advance(c.fixed<uint32_t>()); return true; // advance_loc4
    case 0x05:
      reg = c.uleb();
      saved(reg, (int64_t)c.uleb() * common_.data_align);
      return true;                                // offset_extended
    case 0x06: restore(c.uleb()); return true;    // restore_extended
    case 0x07: return c.uleb() != kReturnAddress; // undefined: nobody called this (_start)
    case 0x08: c.uleb(); return true;             // same_value
    case 0x0a: return push();                     // remember_state
    case 0x0b: return pop();                      // restore_state
    case 0x0c:
      reg = c.uleb();
      set_cfa(reg, (int64_t)c.uleb());
      return true;                                                // def_cfa
    case 0x0d: set_cfa(c.uleb(), rule_.cfa_offset); return true;  // def_cfa_register
    case 0x0e: rule_.cfa_offset = (int32_t)c.uleb(); return true; // def_cfa_offset
    case 0x11:
      reg = c.uleb();
      saved(reg, c.sleb() * common_.data_align);
      return true; // offset_extended_sf
    case 0x12:
      reg = c.uleb();
      set_cfa(reg, c.sleb() * common_.data_align);
      return true; // def_cfa_sf
    case 0x13:
      rule_.cfa_offset = (int32_t)(c.sleb() * common_.data_align);
      return true; // def_cfa_offset_sf
    case 0x0f:
      rule_.known = false;
      c.skip(c.uleb());
      return true; // def_cfa_expression
    case 0x10:
    case 0x16: // expression, val_expression
      if (c.uleb() == kRbp)
        return false;
      c.skip(c.uleb());
      return true;
    case 0x2e: c.uleb(); return true; // GNU_args_size
    default: return false;
    }
  }

  bool push() {
    if (depth_ == kStates)
      return false;
    states_[depth_++] = rule_;
    return true;
  }
  bool pop() {
    if (depth_ == 0)
      return false;
    rule_ = states_[--depth_];
    return true;
  }

  static constexpr int kStates = 8;
  const CommonEntry &common_;
  uint64_t location_, pc_;
  FrameRule rule_, initial_, states_[kStates];
  int depth_ = 0;
};

} // namespace

FrameRule find_frame_rule(uint64_t header, uint64_t pc) {
  FrameRule none;
  uint64_t entry = header ? find_entry(header, pc) : 0;
  if (!entry)
    return none;
  uint32_t length = load<uint32_t>(entry), to_common = load<uint32_t>(entry + 4);
  CommonEntry common;
  if (length == 0 || length == 0xffffffff || !read_common_entry(entry + 4 - to_common, common))
    return none;
  Cursor c(entry + 8, entry + 4 + length);
  uint64_t start = c.at();
  start += (uint64_t)(int64_t)c.fixed<int32_t>();
  uint64_t size = c.fixed<uint32_t>();
  if (pc < start || pc >= start + size)
    return none;
  none.function = start;
  c.skip(c.uleb()); // augmentation data
  Interpreter interpreter(common, start, pc);
  if (!interpreter.run(common.program, common.program_end))
    return none;
  interpreter.remember_initial();
  if (!interpreter.run(c.at(), entry + 4 + length))
    return none;
  FrameRule rule = interpreter.rule();
  rule.function = start;
  return rule;
}

} // namespace assay
