// A trace names functions by their addresses. An instruction belongs to the function that begins
// last at or before it, or of which a part does that the compiler has moved away, which is right
// also for code behind its symbol's size.

#include "analyze/access_places.h"

#include "image/elf.h"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace analyze {
namespace {

std::vector<image::ModuleFile> files_of(const TracedProgram &program) {
  std::vector<image::ModuleFile> files;
  files.reserve(program.modules.size());
  for (const TracedModule &module : program.modules)
    files.push_back({module.path, module.build_id});
  return files;
}

} // namespace

std::string program_build_id(const TracedProgram &program) {
  return program.modules.empty() ? "" : image::build_id_text(program.modules.front().build_id);
}

AccessPlaces::AccessPlaces(const TracedProgram &program)
    : program_(program), symbols_(files_of(program)) {
  for (uint32_t m = 0; m < program.modules.size(); m++)
    for (const TracedFunction &function : program.modules[m].functions) {
      Function &to = functions_.emplace_back();
      to.module = m;
      to.address = function.address;
      to.traced = &function;
      to.linkage_name = function.linkage_name;
      to.name = function.linkage_name.empty() ? fmt::format("{:#x}", function.address)
                                              : image::demangled(function.linkage_name);
    }
  auto before = [](const Function &a, const Function &b) {
    return std::tie(a.module, a.address) < std::tie(b.module, b.address);
  };
  std::sort(functions_.begin(), functions_.end(), before);
  std::map<std::pair<uint32_t, uint64_t>, uint32_t>
      begins; // module, address: number of the function
  for (uint32_t f = 0; f < functions_.size(); f++) {
    begins.insert_or_assign({functions_[f].module, functions_[f].address}, f);
    for (uint64_t part : functions_[f].traced->apart)
      begins.insert_or_assign({functions_[f].module, part}, f);
  }
  std::map<uint32_t, uint32_t> without; // by module
  for (const profile::AccessSite &site : program.sites) {
    const uint32_t module = module_of_file(site.file);
    const auto after = begins.upper_bound({module, site.offset});
    if (after != begins.begin() && std::prev(after)->first.first == module) {
      function_of_.push_back(std::prev(after)->second);
      continue;
    }
    auto [known, is_new] = without.try_emplace(module, static_cast<uint32_t>(functions_.size()));
    if (is_new) {
      Function &none = functions_.emplace_back();
      none.module = module;
      none.name = "(no function)";
    }
    function_of_.push_back(known->second);
  }
}

uint32_t AccessPlaces::module_of_file(uint32_t number) const {
  for (uint32_t m = 0; m < program_.modules.size(); m++)
    if (program_.modules[m].number == number)
      return m;
  return 0; // every site is of a file that was announced
}

const AccessPlaces::Function &AccessPlaces::named(uint32_t function) {
  Function &named = functions_[function];
  if (!named.linkage_name.empty() || !named.traced || named.was_looked_up)
    return named;
  named.was_looked_up = true;
  const image::Frame &frame = symbols_.call(named.module, named.address + 1).back();
  if (!frame.linkage_name.empty()) {
    named.name = frame.function;
    named.linkage_name = frame.linkage_name;
  }
  return named;
}

AccessPlaces::Line AccessPlaces::line_of(uint32_t site) {
  // Symbols are asked for calls by their return addresses: one past the instruction's first byte.
  const profile::AccessSite &at = program_.sites[site];
  const image::Frame &frame = symbols_.call(module_of_file(at.file), at.offset + 1).front();
  return {frame.file, frame.line};
}

AccessPlaces::Line AccessPlaces::line_of(const Function &function) {
  if (function.address == 0)
    return {};
  const image::Frame &frame = symbols_.call(function.module, function.address + 1).back();
  return {frame.function_file, frame.function_start_line};
}

} // namespace analyze
