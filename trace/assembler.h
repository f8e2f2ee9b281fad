// The few instructions that are put between a program's own: all are mov or lea, which leave the flags alone, but for
// comparisons and what saves the flags. None moves the stack pointer.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "Instruction Format".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace trace {

// A number of a general register as instructions encode it: 0 rax, 1 rcx, 2 rdx, 3 rbx, 4 rsp, 5
// rbp, 6 rsi, 7 rdi, 8 r8 …
using Gpr = uint8_t;
inline constexpr Gpr kRax = 0, kRsp = 4;

class Assembler {
public:
  const std::vector<uint8_t> &bytes() const { return bytes_; }
  uint32_t size() const { return static_cast<uint32_t>(bytes_.size()); }

  void byte(unsigned value) { bytes_.push_back(static_cast<uint8_t>(value)); }
  template <class T> void word(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void append(std::span<const uint8_t> more) {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
  }
  void append(std::initializer_list<uint8_t> more) { bytes_.insert(bytes_.end(), more); }
  template <class T> void put(uint32_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  template <class T> T get(uint32_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }
  void align(uint32_t to, uint8_t with) {
    while (size() % to)
      byte(with);
  }

  // The same with instructions that do nothing, few long ones.
  void align_by_nops(uint32_t to) {
    while (size() % to) {
      const uint32_t left = std::min(to - size() % to, 9u);
      static constexpr uint8_t kNops[][9] = {{0x90},
                                             {0x66, 0x90},
                                             {0x0f, 0x1f, 0x00},
                                             {0x0f, 0x1f, 0x40, 0},
                                             {0x0f, 0x1f, 0x44, 0, 0},
                                             {0x66, 0x0f, 0x1f, 0x44, 0, 0},
                                             {0x0f, 0x1f, 0x80, 0, 0, 0, 0},
                                             {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
                                             {0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}};
      append(std::span(kNops[left - 1]).first(left));
    }
  }

  // mov to, fs:[offset]; where the offset's 4 bytes are. store: the other way.
  uint32_t load_fs(Gpr to, int32_t offset) { return fs(0x8b, to, offset); }
  uint32_t store_fs(Gpr from, int32_t offset) { return fs(0x89, from, offset); }
  // cmp reg, fs:[offset]
  uint32_t compare_fs(Gpr reg, int32_t offset) { return fs(0x3b, reg, offset); }
  // cmp dword fs:[offset], 0; where the offset's 4 bytes are.
  uint32_t is_zero_fs(int32_t offset) {
    byte(0x64);
    byte(0x83);
    byte(7 << 3 | 4);
    byte(0x25);
    word(offset);
    byte(0);
    return size() - 5;
  }
  // The flags but for the direction in eax, and back; both change eax, `flags_from_rax` all of them.
  void flags_to_rax() {
    append({0x9f, 0x0f, 0x90, 0xc0}); // lahf; seto al
  }
  void flags_from_rax() {
    append({0x04, 0x7f, 0x9e}); // add al, 127; sahf
  }
  // mov [base + offset], from: 8 bytes.
  void store(Gpr base, int32_t offset, Gpr from) {
    byte(0x48 | (from >> 3) << 2 | base >> 3);
    byte(0x89);
    operand(from, base, offset);
  }
  // mov [base + offset], the low bytes of from: 1, 2, 4 or 8.
  void store_low(Gpr base, int32_t offset, Gpr from, unsigned bytes) {
    if (bytes == 2)
      byte(0x66);
    byte((bytes == 8 ? 0x48 : 0x40) | (from >> 3) << 2 | base >> 3);
    byte(bytes == 1 ? 0x88 : 0x89);
    operand(from, base, offset);
  }
  // setcc [base + offset]
  void store_condition(Gpr base, int32_t offset, unsigned condition) {
    if (base >> 3)
      byte(0x41);
    byte(0x0f);
    byte(0x90 | condition);
    operand(0, base, offset);
  }
  // mov word [base + offset], constant
  void store_word(Gpr base, int32_t offset, uint16_t constant) {
    byte(0x66);
    if (base >> 3)
      byte(0x41);
    byte(0xc7);
    operand(0, base, offset);
    word(constant);
  }
  // mov dword [base + offset], constant; where the constant's 4 bytes are
  uint32_t store_constant(Gpr base, int32_t offset, uint32_t constant) {
    if (base >> 3)
      byte(0x41);
    byte(0xc7);
    operand(0, base, offset);
    word(constant);
    return size() - 4;
  }
  // lea to, [base + offset]
  void lea(Gpr to, Gpr base, int32_t offset) {
    byte(0x48 | (to >> 3) << 2 | base >> 3);
    byte(0x8d);
    operand(to, base, offset);
  }
  // lea to, [rip + …], to be filled in as with jumps
  uint32_t address(Gpr to) {
    byte(0x48 | (to >> 3) << 2);
    byte(0x8d);
    byte((to & 7) << 3 | 5);
    word(uint32_t{0});
    return size() - 4;
  }
  // mov to, from
  void copy(Gpr to, Gpr from) {
    byte(0x48 | (from >> 3) << 2 | to >> 3);
    byte(0x89);
    byte(0xc0 | (from & 7) << 3 | (to & 7));
  }
  // A jump, jump on a condition, or call with 4 bytes of distance, which is to be filled in at the place returned
  // (land, or put).
  uint32_t jump() { return branch(0xe9); }
  uint32_t call() { return branch(0xe8); }
  uint32_t jump_if(unsigned condition) {
    byte(0x0f);
    return branch(0x80 | condition);
  }

  // jmp [rip + …], likewise: the address to go to lies there
  uint32_t jump_to_slot() {
    byte(0xff);
    byte(0x25);
    word(uint32_t{0});
    return size() - 4;
  }
  // The distance at `at` leads to `to`.
  void land(uint32_t at, uint32_t to) { put<uint32_t>(at, to - (at + 4)); }

private:
  uint32_t branch(unsigned opcode) {
    byte(opcode);
    word(uint32_t{0});
    return size() - 4;
  }
  uint32_t fs(unsigned opcode, Gpr reg, int32_t offset) {
    byte(0x64);
    byte(0x48 | (reg >> 3) << 2);
    byte(opcode);
    byte((reg & 7) << 3 | 4);
    byte(0x25);
    word(offset);
    return size() - 4;
  }
  void operand(Gpr reg, Gpr base, int32_t offset) {
    const bool is_short = offset >= -128 && offset < 128;
    byte((is_short ? 0x40 : 0x80) | (reg & 7) << 3 | (base & 7));
    if ((base & 7) == kRsp)
      byte(0x24);
    if (is_short)
      byte(static_cast<uint8_t>(offset));
    else
      word(offset);
  }

  std::vector<uint8_t> bytes_;
};

} // namespace trace
