#include "analyze/register_names.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace analyze {
namespace {

const char *const kRegisterNames[4][16] = {
    {"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b",
     "r13b", "r14b", "r15b"},
    {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w",
     "r14w", "r15w"},
    {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d",
     "r13d", "r14d", "r15d"},
    {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
     "r14", "r15"}};

} // namespace

const char *register_name(unsigned number, unsigned bytes) {
  return kRegisterNames[std::countr_zero(bytes) & 3][number & 15];
}

const char *second_byte_name(unsigned number) {
  static const char *const kNames[4] = {"ah", "ch", "dh", "bh"};
  return kNames[number & 3];
}

std::optional<unsigned> register_number(std::string_view name) {
  for (const auto &names : kRegisterNames)
    if (const auto found = std::ranges::find(names, name); found != std::end(names))
      return static_cast<unsigned>(found - std::begin(names));
  return std::nullopt;
}

} // namespace analyze
