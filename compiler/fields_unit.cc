// A unit's counters are one array, whose length is known at the end: until then code refers to a placeholder. Its address
// stands in a variable, which the runtime moves so that each thread finds counters of its own behind it: an update needs the
// variable and the thread's distance, and no address of the module.

#include "compiler/fields_unit.h"

#include "abi/fields.h"
#include "abi/lines.h"
#include "abi/sites.h"
#include "compiler/sites.h"
#include "llvm/IR/Constants.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace assay::compiler {
namespace {

void put(std::string &to, uint64_t n) {
  uint8_t bytes[ASSAY_NUMBER_BYTES];
  to.append(reinterpret_cast<char *>(bytes), (size_t)(assay_put_number(bytes, n) - bytes));
}

void put(std::string &to, StringRef text) {
  to += text;
  to += '\0';
}

template <class T> StringRef bytes_of(const T &value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

} // namespace

UnitFields::UnitFields(Module &module, bool has_windows)
    : module_(module), has_windows_(has_windows) {
  Type *word = Type::getInt64Ty(module.getContext());
  counters_ = new GlobalVariable(
      module, ArrayType::get(word, 0), false, GlobalValue::PrivateLinkage,
      ConstantArray::get(ArrayType::get(word, 0), {}), "__assay_fields_counters");
  base_ = new GlobalVariable(module, word, false, GlobalValue::PrivateLinkage,
                             ConstantExpr::getPtrToInt(counters_, word), "__assay_fields_base");
}

uint64_t UnitFields::add(const Function &function, uint32_t line, ArrayRef<FieldItem> items) {
  put(stream_, functions_.insert({&function, functions_.size()}).first->second);
  put(stream_, line);
  put(stream_, items.size());
  for (const FieldItem &item : items) {
    uint64_t record = ASSAY_RECORD_LOST;
    if (item.record) {
      auto known = records_.insert({item.record->hash, item.record}).first;
      record = ASSAY_RECORD_FIRST + (uint64_t)(known - records_.begin());
    }
    put(stream_, record);
    put(stream_, item.leaves.first);
    put(stream_, item.leaves.last - item.leaves.first);
    put(stream_, item.reads);
    put(stream_, item.writes);
    put(stream_, item.copied);
    put(stream_, item.base);
    put(stream_, item.start >= 0 ? 2 * (uint64_t)item.start : 2 * (uint64_t)-item.start - 1);
  }
  return count_++;
}

void UnitFields::add_record(const RecordLayout &record) {
  std::string body = bytes_of(AssaySiteRecord{record.hash, record.size, record.line,
                                              (uint32_t)record.leaves.size()})
                         .str();
  put(body, record.name);
  put(body, record.file);
  for (const Leaf &leaf : record.leaves) {
    put(body, leaf.offset_bits);
    put(body, leaf.size_bits);
    put(body, leaf.flags);
    put(body, leaf.elements);
    put(body, leaf.stride);
    put(body, leaf.alignment);
    put(body, leaf.name);
    put(body, leaf.type);
  }
  Sites(module_).add_record(record.hash, body);
}

void UnitFields::finish() {
  if (!count_) {
    base_->eraseFromParent();
    counters_->eraseFromParent();
    return;
  }
  Type *word = Type::getInt64Ty(module_.getContext());
  auto *type = ArrayType::get(word, count_);
  auto *counters = new GlobalVariable(module_, type, false, GlobalValue::PrivateLinkage,
                                      Constant::getNullValue(type), "__assay_fields_counters");
  counters->setAlignment(Align(64));
  counters->setSection(ASSAY_FIELDS_SECTION);
  counters_->replaceAllUsesWith(counters);
  counters_->eraseFromParent();
  counters_ = counters;
  for (auto &[hash, record] : records_)
    add_record(*record);
  AssaySiteFields head = {
      0, 0, (uint32_t)count_, (uint32_t)records_.size(), (uint32_t)functions_.size(), has_windows_};
  std::string body = bytes_of(head).str();
  for (auto &[hash, record] : records_)
    body += bytes_of(hash);
  for (auto &[function, number] : functions_)
    put(body, function->getName());
  Sites(module_).add_counters(ASSAY_SITE_FIELDS, body + stream_, *counters_, *base_);
}

} // namespace assay::compiler
