// Each entry is a constant of its own, in a group that the linker keeps once: a type that a
// thousand files use is described once in the program.

#include "compiler/sites.h"

#include "abi/sites.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace assay::compiler {

void Sites::add(uint32_t kind, uint64_t hash, uint64_t size, StringRef name, StringRef comdat) {
  AssaySite site = {
      kind, (uint32_t)(sizeof(AssaySite) + sizeof(AssaySiteType) + alignTo(name.size(), 8))};
  AssaySiteType type = {hash, size, (uint32_t)name.size(), 0};
  std::string bytes(reinterpret_cast<char *>(&site), sizeof site);
  bytes.append(reinterpret_cast<char *>(&type), sizeof type).append(name);
  bytes.resize(site.size, '\0');
  Constant *data = ConstantDataArray::getString(module_.getContext(), bytes, /*AddNull=*/false);
  bool shared = !comdat.empty();
  auto *variable =
      new GlobalVariable(module_, data->getType(), true,
                         shared ? GlobalValue::LinkOnceODRLinkage : GlobalValue::PrivateLinkage,
                         data, shared ? comdat : "__assay_unit");
  if (shared) {
    variable->setComdat(module_.getOrInsertComdat(comdat));
    variable->setVisibility(GlobalValue::HiddenVisibility);
  }
  variable->setSection(ASSAY_SITES_SECTION);
  variable->setAlignment(Align(8));
  appendToUsed(module_, {variable});
}

uint32_t Sites::type_id(const TaggedType &type) {
  std::string key = (type.name + "\n" + Twine(type.size) + "\n" + Twine(type.layout)).str();
  uint64_t hash = xxh3_64bits(key);
  if ((uint32_t)hash == 0) // 0 is "unknown"
    hash |= 1;
  std::string comdat = "__assay_type_" + utohexstr(hash, /*LowerCase=*/true);
  if (!module_.getNamedGlobal(comdat))
    add(ASSAY_SITE_TYPE, hash, type.size, type.name, comdat);
  return (uint32_t)hash;
}

void Sites::add_unit(StringRef name, const UnitFacts &facts) {
  add(ASSAY_SITE_UNIT, facts.tools, (uint64_t)facts.lines << 32 | facts.counters, name, {});
}

} // namespace assay::compiler
