// lackey_kinds MAPS < OUTPUT: reads what Valgrind's lackey prints with --trace-mem=yes of a program
// whose mappings (/proc/self/maps) are in the file MAPS, and compares the accesses of each executed
// instruction, by kind and size, with those that the decoder says it makes.
//
// Valgrind decodes for itself, so both can only agree by both being right. What it tells in another
// way is allowed for: a read and a write of the same bytes are one line (M); a repeated string
// instruction is executed once for each element, and once for none; large vectors and the state of
// the processor come in parts; what an atomic instruction changes is read twice; a bit of a
// register is looked at in memory of Valgrind's. Instructions in code that is no file's are not
// looked at.
//
// Prints a line for each instruction that differs, up to 20, and one with the numbers; exit status 1 if any differs.
#include "base/fail.h"
#include "binary/decoder.h"
#include "image/executable.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Kind {
  bool write;
  uint32_t size;
  auto operator<=>(const Kind &) const = default;
};

struct Mapping {
  uint64_t begin, end, bias;
  std::shared_ptr<image::Executable> file;
};

std::vector<Mapping> read_maps(const char *path) {
  std::vector<Mapping> mappings;
  std::map<std::string, std::shared_ptr<image::Executable>> files;
  std::ifstream maps(path);
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0, offset = 0;
    char rights[8] = {}, name[1024] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %*s %1023s", &begin, &end, rights, &offset,
                    name) != 5 ||
        rights[2] != 'x' || name[0] != '/')
      continue;
    auto &file = files[name];
    try {
      if (!file)
        file = std::make_shared<image::Executable>(name);
    } catch (const base::Failure &) { // Valgrind's own, or gone
      continue;
    }
    for (const image::Segment &segment : file->segments())
      if (segment.executable && (segment.file_offset & ~0xfffULL) == offset)
        mappings.push_back({begin, end, begin - (segment.address & ~0xfffULL), file});
  }
  return mappings;
}

// What is known of one instruction.
struct Known {
  bool is_decoded = false, repeats = false, has_state = false, may_be_less = false;
  std::vector<Kind> accesses; // sorted: reads first
  std::string text;
  bool is_atomic() const { return text.starts_with("lock ") || text.starts_with("xchg "); }
};

class Comparison {
public:
  explicit Comparison(std::vector<Mapping> mappings) : mappings_(std::move(mappings)) {}

  void instruction(uint64_t pc) {
    finish();
    pc_ = pc;
    seen_.clear();
  }
  void access(char kind, uint32_t size) {
    if (kind != 'S')
      seen_.push_back({false, size});
    if (kind != 'L')
      seen_.push_back({true, size});
  }
  void finish() {
    if (!pc_)
      return;
    const Known &known = known_at(pc_);
    if (!known.is_decoded)
      return;
    executed_++;
    accesses_ += seen_.size();
    std::sort(seen_.begin(), seen_.end());
    if (seen_ == known.accesses || is_explained(known))
      return;
    auto [at, is_new] = differing_.try_emplace(pc_, 0);
    if (is_new && differing_.size() <= 20)
      fmt::print("{:x} {}: lackey has {}, we have {}\n", pc_, known.text, text_of(seen_),
                 text_of(known.accesses));
    at->second++;
  }

  int report() const {
    uint64_t times = 0;
    for (const auto &[pc, count] : differing_)
      times += count;
    fmt::print("{} instructions at {} places, {} accesses: {} differ, at {} places\n", executed_,
               known_.size(), accesses_, times, differing_.size());
    return executed_ == 0 || !differing_.empty() ? 1 : 0;
  }

private:
  static std::string text_of(const std::vector<Kind> &kinds) {
    std::string text;
    for (const Kind &kind : kinds)
      text += fmt::format(" {}{}", kind.write ? 'w' : 'r', kind.size);
    return text.empty() ? " none" : text;
  }

  bool is_explained(const Known &known) const {
    if (known.repeats && seen_.empty())
      return true;
    if (known.has_state || (known.accesses.empty() && known.text.starts_with("bt")))
      return true;
    if (known.is_atomic() && known.accesses.size() == 2) {
      std::vector<Kind> twice = known.accesses;
      twice.insert(twice.begin(), twice.front());
      return seen_ == twice;
    }
    // A masked move makes some of its accesses; a vector comes in parts.
    uint64_t bytes[2][2] = {}; // by side, by kind
    for (const Kind &kind : seen_)
      bytes[0][kind.write] += kind.size;
    for (const Kind &kind : known.accesses)
      bytes[1][kind.write] += kind.size;
    if (known.may_be_less)
      return bytes[0][0] <= bytes[1][0] && bytes[0][1] <= bytes[1][1];
    constexpr uint32_t kVector = 16;
    const bool is_vector = std::any_of(known.accesses.begin(), known.accesses.end(),
                                       [](const Kind &kind) { return kind.size >= kVector; });
    return is_vector && bytes[0][0] == bytes[1][0] && bytes[0][1] == bytes[1][1];
  }

  const Known &known_at(uint64_t pc) {
    auto [at, is_new] = known_.try_emplace(pc);
    Known &known = at->second;
    if (!is_new)
      return known;
    for (const Mapping &mapping : mappings_) {
      if (pc < mapping.begin || pc >= mapping.end)
        continue;
      const auto bytes = mapping.file->bytes_from(pc - mapping.bias);
      binary::Code code;
      if (!decoder_.decode(bytes, pc - mapping.bias, code))
        break;
      known.is_decoded = true;
      known.text = decoder_.text(bytes, pc - mapping.bias);
      known.repeats = code.instructions.front().repeats;
      for (const binary::Access &access : code.accesses) {
        known.has_state |= access.size == 0;
        known.may_be_less |= access.masked || !access.has_address();
        known.accesses.push_back({access.write, access.size});
      }
      std::sort(known.accesses.begin(), known.accesses.end());
      break;
    }
    return known;
  }

  std::vector<Mapping> mappings_;
  binary::Decoder decoder_;
  std::unordered_map<uint64_t, Known> known_;
  std::map<uint64_t, uint64_t> differing_;
  uint64_t pc_ = 0, executed_ = 0, accesses_ = 0;
  std::vector<Kind> seen_;
};

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  Comparison comparison(read_maps(argv[1]));
  char line[256];
  while (std::fgets(line, sizeof line, stdin)) {
    char *at = line + 3;
    if (std::strlen(line) < 5 || line[2] != ' ' || !std::strchr("I LSM", line[0]))
      continue;
    const uint64_t address = std::strtoul(at, &at, 16);
    if (*at != ',')
      continue;
    const auto size = static_cast<uint32_t>(std::strtoul(at + 1, nullptr, 10));
    if (line[0] == 'I')
      comparison.instruction(address);
    else if (std::strchr("LSM", line[1]))
      comparison.access(line[1], size);
  }
  comparison.finish();
  return comparison.report();
}
