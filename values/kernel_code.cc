// Kernels differ in what they tell: kallsyms always has functions (to root, unless kptr_restrict
// hides them), not always variables. The list of physical memory says where RAM lies and where the
// kernel's image; RAM is mapped as a whole, the direct map, and what is not RAM there is left out,
// because a load from a device may change it. Without the variable that holds the direct map's
// begin, its place is known only of a kernel that does not randomise it.

#include "values/kernel_code.h"

#include "base/stable_sort.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace values {
namespace {

constexpr uint64_t kLinkedText = 0xffffffff81000000; // of a kernel that is not randomised
constexpr uint64_t kDirectMap = 0xffff888000000000;  // likewise, with four levels of page tables
// Code of modules, of which no device has a part.
constexpr assay_memory_range kModules = {0xffffffffa0000000, 0xffffffffff000000};

bool has_five_levels() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("flags"))
      return line.find(" la57") != std::string::npos;
  return false;
}

} // namespace

KernelCode::KernelCode() {
  if (read_symbols())
    read_memory();
}

bool KernelCode::read_symbols() {
  std::FILE *file = std::fopen("/proc/kallsyms", "re");
  if (!file) {
    why_not_ = "/proc/kallsyms, which says where its functions lie, cannot be read";
    return false;
  }
  char line[512];
  while (std::fgets(line, sizeof line, file)) {
    // "ffffffff81000000 T _text", behind that the module
    char *rest = nullptr;
    const uint64_t address = std::strtoull(line, &rest, 16);
    if (!(address >> 63) || std::strlen(rest) < 4)
      continue;
    const char kind = rest[1];
    const std::string name(rest + 3, std::strcspn(rest + 3, "\t\n"));
    if (name == "_text")
      text_ = address;
    else if (name == "page_offset_base")
      direct_map_variable_ = address;
    else if (name == "__per_cpu_offset")
      memory_.per_cpu_offsets = address;
    else if (std::strchr("tTwW", kind))
      functions_.push_back({"[kernel] " + name, address});
  }
  std::fclose(file);
  // Of several names at one address the first stays.
  base::stable_sort(functions_,
                    [](const Function &a, const Function &b) { return a.begin < b.begin; });
  functions_.erase(
      std::unique(functions_.begin(), functions_.end(),
                  [](const Function &a, const Function &b) { return a.begin == b.begin; }),
      functions_.end());
  if (text_ && !functions_.empty())
    return true;
  why_not_ = "it hides the addresses of its functions (kernel.kptr_restrict)";
  return false;
}

bool KernelCode::read_memory() {
  auto add = [&](assay_memory_range range) {
    if (memory_.ranges < ASSAY_KERNEL_RANGES)
      memory_.range[memory_.ranges++] = range;
  };
  std::ifstream iomem("/proc/iomem");
  uint64_t code = 0, image_end = 0;
  std::vector<assay_memory_range> ram;
  for (std::string line; std::getline(iomem, line);) {
    // "  01000000-0220bb07 : Kernel code"
    char *rest = nullptr;
    const uint64_t begin = std::strtoull(line.c_str(), &rest, 16);
    const uint64_t last = *rest == '-' ? std::strtoull(rest + 1, &rest, 16) : 0;
    if (last == 0 || std::strncmp(rest, " : ", 3) != 0)
      continue;
    const std::string what = rest + 3;
    if (what == "System RAM")
      ram.push_back({begin, last + 1});
    else if (what == "Kernel code")
      code = begin;
    else if (what == "Kernel rodata" || what == "Kernel data" || what == "Kernel bss")
      image_end = std::max(image_end, last + 1);
  }
  if (ram.empty() || code == 0 || image_end <= code) {
    why_not_ = "/proc/iomem does not say where memory lies that is no device's";
    return false;
  }
  if (!direct_map_variable_ && (text_ != kLinkedText || has_five_levels())) {
    why_not_ = "it does not name the place of its memory (page_offset_base), which is chance";
    return false;
  }
  add({text_, text_ + (image_end - code)});
  add(kModules);
  std::sort(ram.begin(), ram.end(),
            [](const auto &a, const auto &b) { return a.end - a.begin > b.end - b.begin; });
  for (const assay_memory_range &range : ram) // the largest ones, if there are many
    add({kDirectMap + range.begin, kDirectMap + range.end});
  memory_.first_ram = 2;
  memory_.is_interpreted = 1;
  return true;
}

void KernelCode::set_direct_map(uint64_t begin) {
  for (uint32_t i = memory_.first_ram; i < memory_.ranges; i++) {
    memory_.range[i].begin += begin - kDirectMap;
    memory_.range[i].end += begin - kDirectMap;
  }
}

bool KernelCode::is_ram(uint64_t address) const {
  for (uint32_t i = memory_.first_ram; i < memory_.ranges; i++)
    if (address >= memory_.range[i].begin && address < memory_.range[i].end)
      return true;
  return false;
}

const KernelCode::Function *KernelCode::function_at(uint64_t address) const {
  auto after = std::upper_bound(functions_.begin(), functions_.end(), address,
                                [](uint64_t a, const Function &each) { return a < each.begin; });
  if (after == functions_.begin())
    return nullptr;
  const Function &nearest = *std::prev(after);
  // Code that no symbol names lies where modules do, such as what the kernel compiles of BPF: it is
  // not the image's last function.
  const assay_memory_range image = memory_.range[0];
  auto is_in_image = [&](uint64_t a) { return a >= image.begin && a < image.end; };
  return is_in_image(nearest.begin) == is_in_image(address) ? &nearest : nullptr;
}

} // namespace values
