// Short ids of types may be shared by two types: the module of the innermost frame that declares one of them decides.
//
// Numbers hold within one file; here they become ids of the whole profile. A context is kept as the
// file has it until it is asked for: only its stack says which module the code is of, and so which
// of two types is meant. Where a thousand types or more share a short id, the first is taken
// without a search.
//
// Two contexts with one number are a loss; two modules or two origins with one number are an error.
// A context that is missing is no loss in a process without an end: it was not written any more.

#include "profile/file_numbers.h"

#include "abi/container.h"
#include "abi/tools.h"
#include "base/byte_reader.h"
#include "profile/merge.h"
#include "profile/sites.h"

#include <cstring>

namespace profile {

ContextNumber context_number(uint64_t context) {
  if (context == 0 || context > UINT32_MAX)
    base::fail("context number");
  return static_cast<ContextNumber>(context);
}

std::vector<std::string> read_strings(std::span<const std::byte> tail) {
  std::vector<std::string> strings;
  base::ByteReader reader(tail, "strings");
  while (!reader.at_end())
    strings.emplace_back(reader.zero_terminated());
  return strings;
}

std::string read_text(std::span<const std::byte> tail) {
  return std::string(base::ByteReader(tail).text(tail.size()));
}

void FileNumbers::add(const AssayModule &r, std::span<const std::byte> tail, Process &process) {
  auto strings = read_strings(tail);
  if (r.module == 0 || modules_.count(r.module) || r.build_id_size > 32)
    base::fail("module number or build id");
  const uint64_t words[] = {r.build_id0, r.build_id1, r.build_id2, r.build_id3};
  std::vector<uint8_t> build_id(r.build_id_size);
  if (!build_id.empty())
    std::memcpy(build_id.data(), words, build_id.size());
  std::string path = strings.empty() ? "" : strings.front();
  ModuleId id = output_.module(path, build_id, r.instrumented != 0);
  modules_[r.module] = id;
  mapping_of_[r.module] = process.mappings.size();
  process.mappings.push_back({id, r.start, r.end, r.bias, r.loaded_us, std::nullopt});
}

void FileNumbers::add(const AssayModuleUnload &r, Process &process) {
  auto mapping = mapping_of_.find(static_cast<uint32_t>(r.module));
  if (mapping == mapping_of_.end() || r.module > UINT32_MAX)
    base::fail("unload of an unknown module");
  process.mappings[mapping->second].unloaded_us = r.unloaded_us;
}

void FileNumbers::add(const AssaySites &r, std::span<const std::byte> tail) {
  auto module = modules_.find(static_cast<uint32_t>(r.module));
  if (module == modules_.end() || r.module > UINT32_MAX)
    base::fail("sites of an unknown module");
  base::ByteReader reader(tail, "sites");
  while (!reader.at_end()) {
    auto site = reader.read<AssaySite>();
    if (site.size < sizeof(AssaySite) || site.size % 8 != 0)
      base::fail("size of a site");
    auto body = reader.bytes(site.size - sizeof(AssaySite));
    base::ByteReader entry(body, "site");
    if (site.kind == ASSAY_SITE_UNIT)
      output_.declare(module->second, read_unit(entry));
    if (site.kind != ASSAY_SITE_TYPE && site.kind != ASSAY_SITE_OLD_UNIT)
      continue;
    auto raw = entry.read<AssaySiteType>();
    std::string name(entry.text(raw.name_length));
    if (site.kind == ASSAY_SITE_OLD_UNIT) {
      output_.declare(module->second,
                      Unit{name,
                           {static_cast<uint32_t>(raw.size), static_cast<uint32_t>(raw.size >> 32)},
                           assay_tools_or_default(raw.hash)});
      continue;
    }
    TypeId id = output_.type({raw.hash, name, raw.size});
    output_.declare(module->second, id);
    types_by_short_id_[static_cast<uint32_t>(raw.hash)].push_back({module->second, id});
  }
  // Only the compiler makes sites.
  output_.profile().modules[module->second.v].instrumented = true;
}

void FileNumbers::add(const AssayContext &r, std::span<const std::byte> tail) {
  if (r.context == 0 || tail.size() % 8 != 0)
    base::fail("context number or frames");
  FileContext context{r.type, r.origin, r.cut != 0, std::vector<uint64_t>(tail.size() / 8)};
  if (!tail.empty())
    std::memcpy(context.frames.data(), tail.data(), tail.size());
  auto [known, is_new] = contexts_.try_emplace(r.context, context);
  if (!is_new && known->second != context)
    lose(ASSAY_LOSS_foreign_context);
}

void FileNumbers::add(const AssayOrigin &r, const std::string &name) {
  if (r.origin == 0 || (r.kind != ASSAY_ORIGIN_POOL && r.kind != ASSAY_ORIGIN_MMAP))
    base::fail("number or kind of an origin");
  Origin origin{r.kind, name};
  auto [known, is_new] = origins_.try_emplace(r.origin, origin);
  if (!is_new && known->second != origin)
    base::fail("two origins with one number");
}

ModuleId FileNumbers::module(uint32_t number) const {
  auto known = modules_.find(number);
  return known == modules_.end() ? ModuleId() : known->second;
}

FileNumbers::Context FileNumbers::context(ContextNumber number) {
  Stack stack = stack_of(number);
  auto known = contexts_.find(number);
  FileContext facts = known == contexts_.end() ? FileContext() : known->second;
  return {output_.stack(stack), type_of(facts.type, stack), origin_of(facts.origin)};
}

StackId FileNumbers::stack(ContextNumber number) {
  return output_.stack(stack_of(number));
}

CodeLocation FileNumbers::location(uint64_t frame) const {
  return {module(static_cast<uint32_t>(frame >> ASSAY_FRAME_MODULE_SHIFT)),
          frame & ((1ULL << ASSAY_FRAME_MODULE_SHIFT) - 1)};
}

Stack FileNumbers::stack_of(ContextNumber context) {
  Stack stack;
  auto known = contexts_.find(context);
  if (known == contexts_.end()) {
    const auto &processes = output_.profile().processes;
    bool unfinished = !processes.empty() && processes.back().ends.empty();
    if (!unfinished) // else it was not written any more
      lose(ASSAY_LOSS_bad_record);
    return stack;
  }
  stack.cut = known->second.cut;
  for (uint64_t frame : known->second.frames)
    stack.frames.push_back(location(frame));
  return stack;
}

TypeId FileNumbers::type_of(uint32_t short_id, const Stack &stack) {
  if (short_id == 0)
    return TypeId();
  auto candidates = types_by_short_id_.find(short_id);
  if (candidates == types_by_short_id_.end())
    return output_.type({short_id, "", 0});
  const auto &declared = candidates->second;
  if (declared.size() > 1 && declared.size() < 1000)
    for (const CodeLocation &frame : stack.frames)
      for (auto [module, type] : declared)
        if (module == frame.module)
          return type;
  return declared.front().second;
}

Origin FileNumbers::origin_of(uint32_t origin) {
  if (origin == 0)
    return Origin();
  auto known = origins_.find(origin);
  if (known != origins_.end())
    return known->second;
  lose(ASSAY_LOSS_bad_record);
  return Origin();
}

void FileNumbers::lose(uint32_t kind) {
  output_.profile().losses[kind]++;
}

} // namespace profile
