// A unit's counters are one array, whose length is known at the end. Code finds it through a
// variable, which the runtime moves so that each thread finds counters of its own behind it: an
// update needs the variable and the thread's distance, and no address of the module.

#include "compiler/fields_unit.h"

#include "abi/fields.h"
#include "abi/lines.h"
#include "abi/sites.h"
#include "compiler/counting.h"
#include "compiler/module_init.h"
#include "compiler/sites.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
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

constexpr uint64_t kLine = 64; // nothing that is written often lies beside what all code reads

template <class T> StringRef bytes_of(const T &value) {
  return {reinterpret_cast<const char *>(&value), sizeof value};
}

} // namespace

UnitFields::UnitFields(Module &module, bool has_windows)
    : module_(module), has_windows_(has_windows) {
  LLVMContext &context = module.getContext();
  Type *word = Type::getInt64Ty(context), *half = Type::getInt32Ty(context);
  counters_ = new GlobalVariable(
      module, ArrayType::get(word, 0), false, GlobalValue::PrivateLinkage,
      ConstantArray::get(ArrayType::get(word, 0), {}), "__assay_fields_counters");
  auto *pointer = PointerType::getUnqual(context);
  Constant *asks = ConstantPointerNull::get(pointer), *zero = ConstantInt::get(half, 0);
  if (has_windows) {
    Type *line = ArrayType::get(half, kLine / sizeof(uint32_t));
    asks_ = new GlobalVariable(module, line, false, GlobalValue::LinkOnceODRLinkage,
                               Constant::getNullValue(line), "__assay_fields_asks");
    asks_->setAlignment(Align(kLine));
    link_once(module, *asks_);
    asks = asks_;
  }
  auto *type = StructType::get(word, word, pointer, half, half); // AssayFieldsUnit
  variable_ =
      new GlobalVariable(module, type, false, GlobalValue::PrivateLinkage,
                         ConstantStruct::get(type, ConstantExpr::getPtrToInt(counters_, word),
                                             ConstantInt::get(word, 0), asks, zero, zero),
                         "__assay_fields_unit");
}

std::optional<UnitFields::Quantity> UnitFields::add_counter() {
  if (counters_count_ == ASSAY_MAX_FIELD_COUNTERS)
    return std::nullopt;
  return Quantity{counters_count_++, false};
}

UnitFields::Quantity UnitFields::add_derived(ArrayRef<Term> terms) {
  put(derived_, terms.size());
  for (const Term &term : terms)
    put(derived_,
        4 * term.quantity.number + 2 * term.quantity.is_derived + (term.is_negative ? 1 : 0));
  return {derived_count_++, true};
}

uint64_t UnitFields::add_stretch(const SourcePlace &place, Quantity executions,
                                 ArrayRef<FieldItem> items) {
  put(stretches_, functions_.insert({place.function, functions_.size()}).first->second);
  put(stretches_, place.line);
  put(stretches_, 2 * executions.number + executions.is_derived);
  put(stretches_, items.size());
  for (const FieldItem &item : items) {
    uint64_t record = ASSAY_RECORD_LOST;
    if (item.record) {
      auto known = records_.insert({item.record->hash, item.record}).first;
      record = ASSAY_RECORD_FIRST + (uint64_t)(known - records_.begin());
    }
    put(stretches_, record);
    put(stretches_, item.leaves.first);
    put(stretches_, item.leaves.last - item.leaves.first);
    put(stretches_, item.reads);
    put(stretches_, item.writes);
    put(stretches_, item.copied);
    put(stretches_, ASSAY_ITEM_POINTERS(item.base, item.element));
    put(stretches_, item.start >= 0 ? 2 * (uint64_t)item.start : 2 * (uint64_t)-item.start - 1);
  }
  return stretch_count_++;
}

void UnitFields::add_record(Sites &sites, const RecordLayout &record) {
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
  sites.add_record(record.hash, body);
}

void UnitFields::finish() {
  if (!stretch_count_) {
    variable_->eraseFromParent();
    counters_->eraseFromParent();
    if (asks_)
      asks_->eraseFromParent();
    return;
  }
  Type *type = ArrayType::get(Type::getInt64Ty(module_.getContext()), counters_count_);
  auto *counters = new GlobalVariable(module_, type, false, GlobalValue::PrivateLinkage,
                                      Constant::getNullValue(type), "__assay_fields_counters");
  counters->setAlignment(Align(64));
  counters->setSection(ASSAY_FIELDS_SECTION);
  counters_->replaceAllUsesWith(counters);
  counters_->eraseFromParent();
  counters_ = counters;
  Sites sites(module_);
  for (auto &[hash, record] : records_)
    add_record(sites, *record);
  AssaySiteFields head = {};
  head.count = (uint32_t)counters_count_;
  head.derived = (uint32_t)derived_count_;
  head.stretches = (uint32_t)stretch_count_;
  head.records = (uint32_t)records_.size();
  head.functions = (uint32_t)functions_.size();
  std::string body = bytes_of(head).str();
  for (auto &[hash, record] : records_)
    body += bytes_of(hash);
  for (auto &[function, number] : functions_)
    put(body, function);
  sites.add_counters(ASSAY_SITE_FIELDS, body + derived_ + stretches_, *counters_, *variable_);
}

} // namespace assay::compiler
