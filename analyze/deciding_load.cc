// By the text of instructions, which is all that a result keeps of them. What this does not
// understand is not claimed: a finding that names the wrong load tells to take a loop's condition
// out of the loop.

#include "analyze/deciding_load.h"

#include "abi/samples.h"
#include "analyze/register_names.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>

namespace analyze {
namespace {

constexpr size_t kNear = 4; // instructions before a branch, at one of which its register was loaded

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// A comparison as it reads: "cmp eax, 0x5", "test rdi, rdi", "cmp dword ptr [rdi], 0x0".
struct ComparedText {
  bool is_with_constant = false, is_in_memory = false;
  std::string operand;

  explicit ComparedText(const std::string &text) {
    const bool tests = text.starts_with("test ");
    const size_t comma = text.rfind(", ");
    if ((!tests && !text.starts_with("cmp ")) || comma == std::string::npos)
      return;
    operand = text.substr(text.find(' ') + 1, comma - text.find(' ') - 1);
    const std::string other = text.substr(comma + 2);
    is_in_memory = operand.find('[') != std::string::npos;
    const bool is_number = !other.empty() && (is_digit(other[0]) || other[0] == '-');
    is_with_constant = is_number || (tests && other == operand);
  }
};

// Its first operand is the register: most such instructions write it.
bool writes_register(const std::string &text, const std::string &wanted) {
  const size_t begin = text.find(' ');
  if (begin == std::string::npos)
    return false;
  const size_t end = std::min(text.find(',', begin), text.size());
  const auto number = register_number(text.substr(begin + 1, end - begin - 1));
  return number && number == register_number(wanted);
}

// What writes its first operand and flags, and nothing else: a call, a division or an exchange writes more.
bool writes_first_alone(const std::string &text) {
  static const std::set<std::string_view> kSuch = {
      "adc",   "add",    "and",   "bsf", "bsr",  "cmp", "dec", "inc",    "lea",   "mov",
      "movsx", "movsxd", "movzx", "neg", "nop",  "not", "or",  "rol",    "ror",   "sar",
      "sbb",   "shl",    "shr",   "sub", "test", "xor", "bt",  "popcnt", "lzcnt", "tzcnt"};
  const std::string_view name = std::string_view(text).substr(0, text.find(' '));
  return kSuch.contains(name) || name.starts_with("cmov") || name.starts_with("set");
}

const ValueList *load_of(const ValueInstruction &at) {
  const auto list = std::ranges::find(at.lists, ASSAY_VALUE_load, &ValueList::kind);
  return list == at.lists.end() ? nullptr : &*list;
}

} // namespace

const ValueList *deciding_load(const ValueFunction &function, size_t branch) {
  const std::vector<ValueInstruction> &code = function.instructions;
  // Of instructions that were not sampled nothing is here.
  const auto is_behind = [&](size_t i) {
    return i > 0 && code[i - 1].offset + code[i - 1].length == code[i].offset;
  };
  if (!is_behind(branch))
    return nullptr;
  const ComparedText compared(code[branch - 1].text);
  if (!compared.is_with_constant)
    return nullptr;
  if (compared.is_in_memory)
    return load_of(code[branch - 1]);
  for (size_t back = 2; back <= kNear && back <= branch && is_behind(branch - back + 1); back++) {
    const ValueInstruction &at = code[branch - back];
    if (!writes_first_alone(at.text))
      return nullptr;
    if (writes_register(at.text, compared.operand))
      return at.text.starts_with("mov") ? load_of(at) : nullptr;
  }
  return nullptr;
}

} // namespace analyze
