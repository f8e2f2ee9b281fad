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

static StringRef bytes_of(const auto &value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

static void pad(std::string &bytes) {
  bytes.resize(alignTo(bytes.size(), 8), '\0');
}

Sites::~Sites() {
  appendToUsed(module_, kept_);
}

GlobalVariable *Sites::add(uint32_t kind, StringRef body, StringRef comdat) {
  AssaySite site = {kind, (uint32_t)alignTo(sizeof site + body.size(), 8)};
  std::string bytes = (bytes_of(site) + body).str();
  pad(bytes);
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
  kept_.push_back(variable);
  return variable;
}

void Sites::add_record(uint64_t hash, StringRef body) {
  std::string comdat = "__assay_record_" + utohexstr(hash, /*LowerCase=*/true);
  if (!module_.getNamedGlobal(comdat))
    add(ASSAY_SITE_RECORD, body, comdat);
}

// The two distances at the begin are the linker's, so the entry is a struct: the head, they, and the rest.
void Sites::add_counters(uint32_t kind, StringRef body, GlobalVariable &counters,
                         GlobalVariable &base) {
  LLVMContext &context = module_.getContext();
  Type *word = Type::getInt64Ty(context);
  constexpr size_t kDistances = 2 * sizeof(int64_t);
  AssaySite site = {kind, (uint32_t)alignTo(sizeof site + body.size(), 8)};
  std::string rest = body.substr(kDistances).str();
  pad(rest);
  Constant *head = ConstantDataArray::getString(context, bytes_of(site), /*AddNull=*/false);
  Constant *tail = ConstantDataArray::getString(context, rest, /*AddNull=*/false);
  auto *type = StructType::get(context, {head->getType(), word, word, tail->getType()}, true);
  auto *entry = new GlobalVariable(module_, type, true, GlobalValue::PrivateLinkage, nullptr,
                                   "__assay_counters");
  auto distance = [&](GlobalVariable &to, unsigned member) {
    Constant *from = ConstantExpr::getInBoundsGetElementPtr(
        type, entry,
        ArrayRef<Constant *>{ConstantInt::get(Type::getInt32Ty(context), 0),
                             ConstantInt::get(Type::getInt32Ty(context), member)});
    return ConstantExpr::getSub(ConstantExpr::getPtrToInt(&to, word),
                                ConstantExpr::getPtrToInt(from, word));
  };
  entry->setInitializer(
      ConstantStruct::get(type, {head, distance(counters, 1), distance(base, 2), tail}));
  entry->setSection(ASSAY_SITES_SECTION);
  entry->setAlignment(Align(8));
  kept_.push_back(entry);
}

uint32_t Sites::type_id(const TaggedType &type) {
  std::string key = (type.name + "\n" + Twine(type.size) + "\n" + Twine(type.layout)).str();
  uint64_t hash = xxh3_64bits(key);
  if ((uint32_t)hash == 0) // 0 is "unknown"
    hash |= 1;
  std::string comdat = "__assay_type_" + utohexstr(hash, /*LowerCase=*/true);
  if (!module_.getNamedGlobal(comdat))
    add(ASSAY_SITE_TYPE,
        (bytes_of(AssaySiteType{hash, type.size, (uint32_t)type.name.size(), 0}) + type.name).str(),
        comdat);
  return (uint32_t)hash;
}

void Sites::add_unit(StringRef source, uint64_t tools, ArrayRef<uint32_t> modes) {
  std::string body =
      bytes_of(AssaySiteUnit{tools, (uint32_t)modes.size(), (uint32_t)source.size()}).str();
  for (uint32_t mode : modes)
    body += bytes_of(mode);
  pad(body);
  add(ASSAY_SITE_UNIT, body + source.str(), {});
}

} // namespace assay::compiler
