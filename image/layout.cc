// Struct layouts from DWARF.
//
// The idea: one walk over the debug info entries of all units, taking definitions (not
// declarations) of structs whose qualified name is asked for; LLVM prints the qualified name,
// template arguments included, the way that clang spells types. An index over all names was
// refused: it costs more than the one walk that a report needs.

#include "image/layout.h"

#include "image/crash_guard.h"
#include "image/section_check.h"

#include "base/stable_sort.h"

#include <fmt/format.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/DebugInfo/DWARF/DWARFDie.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

namespace image {
namespace {

std::string qualified_name(const llvm::DWARFDie &die) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::dumpTypeQualifiedName(die, out);
  return text;
}

// The short name without template arguments: a cheap test before the qualified name is made.
std::string plain_name(std::string_view name) {
  name = name.substr(0, name.find('<'));
  size_t colons = name.rfind("::");
  return std::string(colons == std::string_view::npos ? name : name.substr(colons + 2));
}

Member member_of(const llvm::DWARFDie &die) {
  Member member;
  if (const char *name = die.getShortName(); name && die.getTag() == llvm::dwarf::DW_TAG_member)
    member.name = name;
  if (auto type = die.getAttributeValueAsReferencedDie(llvm::dwarf::DW_AT_type)
                      .resolveTypeUnitReference()) {
    member.type = qualified_name(type);
    member.size = type.getTypeSize(8).value_or(0);
  }
  if (auto offset = die.find(llvm::dwarf::DW_AT_data_member_location))
    member.offset = offset->getAsUnsignedConstant().value_or(0);
  else if (auto bits = die.find(llvm::dwarf::DW_AT_data_bit_offset))
    member.offset = bits->getAsUnsignedConstant().value_or(0) / 8;
  return member;
}

constexpr unsigned kMaxNested = 8; // bases of bases, anonymous structs within others

// Of a record that begins so far behind, and of those in it that have no name: their members are
// called as if they were its own.
void add_members(const llvm::DWARFDie &die, uint64_t begin, unsigned depth,
                 std::vector<Member> &members) {
  for (llvm::DWARFDie child : die.children()) {
    const bool is_static = child.find(llvm::dwarf::DW_AT_external).has_value() ||
                           child.find(llvm::dwarf::DW_AT_declaration).has_value();
    if ((child.getTag() != llvm::dwarf::DW_TAG_member || is_static) &&
        child.getTag() != llvm::dwarf::DW_TAG_inheritance)
      continue;
    // The pointer to the table of virtual functions is a member without a name of the user's.
    Member member = member_of(child);
    member.offset += begin;
    const bool is_known =
        !child.find(llvm::dwarf::DW_AT_virtuality); // where a virtual base lies, the object says
    if (member.name.empty() && is_known && depth < kMaxNested)
      if (auto type = child.getAttributeValueAsReferencedDie(llvm::dwarf::DW_AT_type)
                          .resolveTypeUnitReference())
        add_members(type, member.offset, depth + 1, members);
    members.push_back(std::move(member));
  }
}

StructLayout layout_of(const llvm::DWARFDie &die, std::string name, uint64_t size) {
  StructLayout layout;
  layout.name = std::move(name);
  layout.size = size;
  layout.file = die.getDeclFile(llvm::DILineInfoSpecifier::FileLineInfoKind::AbsoluteFilePath);
  layout.line = static_cast<uint32_t>(die.getDeclLine());
  add_members(die, 0, 0, layout.members);
  base::stable_sort(layout.members,
                    [](const Member &a, const Member &b) { return a.offset < b.offset; });
  return layout;
}

// What tells two definitions of one name apart, without a look at the types of their members.
std::string signature_of(const llvm::DWARFDie &die, const std::string &name, uint64_t size) {
  std::string signature = fmt::format("{} {} {}", name, size, die.getDeclLine());
  for (llvm::DWARFDie child : die.children())
    if (const char *member = child.getShortName())
      signature += fmt::format(" {}", member);
  return signature;
}

void walk_debug_info(const std::string &path, const std::set<std::string> &names,
                     std::multimap<std::string, StructLayout> &found) {
  auto file = llvm::object::ObjectFile::createObjectFile(path);
  if (!file) {
    llvm::consumeError(file.takeError());
    return;
  }
  std::set<std::string> plain_names;
  for (const std::string &name : names)
    plain_names.insert(plain_name(name));
  auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
  auto context = llvm::DWARFContext::create(*file->getBinary(),
                                            llvm::DWARFContext::ProcessDebugRelocations::Process,
                                            nullptr, "", ignore, ignore);
  std::set<std::string> seen;
  auto visit = [&](llvm::DWARFUnit &unit) {
    unit.getUnitDIE(false); // reads all entries of the unit
    for (const llvm::DWARFDebugInfoEntry &entry : unit.dies()) {
      auto tag = entry.getTag();
      if (tag != llvm::dwarf::DW_TAG_structure_type && tag != llvm::dwarf::DW_TAG_class_type &&
          tag != llvm::dwarf::DW_TAG_union_type)
        continue;
      llvm::DWARFDie die(&unit, &entry);
      const char *short_name = die.getShortName();
      auto size = die.find(llvm::dwarf::DW_AT_byte_size);
      if (!short_name || !size || !plain_names.count(plain_name(short_name)))
        continue;
      std::string name = qualified_name(die);
      if (!names.count(name))
        continue;
      const uint64_t bytes = size->getAsUnsignedConstant().value_or(0);
      if (!seen.insert(signature_of(die, name, bytes)).second) // from the same header, mostly
        continue;
      StructLayout layout = layout_of(die, name, bytes);
      const auto [begin, end] = found.equal_range(name);
      if (std::none_of(begin, end, [&](auto &known) { return known.second.lies_like(layout); }))
        found.emplace(std::move(name), std::move(layout));
    }
  };
  for (const auto &unit : context->info_section_units())
    visit(*unit);
}

} // namespace

const Member *StructLayout::flexible_array() const {
  if (members.empty())
    return nullptr;
  const Member &last = members.back();
  return last.type.ends_with("[]") || last.type.ends_with("[0]") ? &last : nullptr;
}

bool StructLayout::lies_like(const StructLayout &other) const {
  return size == other.size && members == other.members;
}

uint64_t StructLayout::hole_bytes() const {
  uint64_t covered_to = 0, holes = 0;
  for (const Member &member : members) {
    if (member.offset > covered_to)
      holes += member.offset - covered_to;
    covered_to = std::max(covered_to, std::min(member.offset + member.size, size));
  }
  return holes + (size > covered_to ? size - covered_to : 0);
}

std::multimap<std::string, StructLayout> struct_layouts(const std::string &path,
                                                        const std::set<std::string> &names) {
  if (section_damage(path))
    return {};
  std::multimap<std::string, StructLayout> found;
  if (!ends_well([&] { walk_debug_info(path, names, found); }))
    return {};
  return found;
}

} // namespace image
