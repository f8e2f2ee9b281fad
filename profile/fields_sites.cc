#include "profile/fields_sites.h"

#include "abi/fields.h"
#include "base/units.h"
#include "profile/numbers.h"

#include <bit>

namespace profile {
namespace {

Executions quantity_of(uint64_t raw, uint64_t counters, uint64_t derived) {
  Executions quantity{raw / 2, raw % 2 != 0};
  if (quantity.number >= (quantity.is_derived ? derived : counters))
    base::fail("executions of a stretch");
  return quantity;
}

} // namespace

uint32_t read_small_number(base::ByteReader &reader) {
  uint64_t n = read_number(reader);
  if (n > UINT32_MAX)
    base::fail("number of a field");
  return static_cast<uint32_t>(n);
}

Record read_field_record(uint64_t hash, uint64_t size, uint32_t line, uint32_t leaves,
                         std::span<const std::byte> body) {
  base::ByteReader reader(body, "record");
  Record record;
  record.hash = hash;
  record.size = size;
  record.line = line;
  record.name = reader.zero_terminated();
  record.file = reader.zero_terminated();
  if (leaves > ASSAY_MAX_LEAVES + 1 || hash == 0)
    base::fail("a record of {}", base::with_noun(leaves, "leaf", "leaves"));
  for (uint32_t i = 0; i < leaves; i++) {
    Leaf leaf;
    leaf.offset_bits = read_number(reader);
    leaf.size_bits = read_number(reader);
    leaf.flags = read_small_number(reader);
    leaf.elements = read_number(reader);
    leaf.stride = read_number(reader);
    leaf.alignment = read_number(reader);
    leaf.name = reader.zero_terminated();
    leaf.type = reader.zero_terminated();
    if (leaf.offset_bits / 8 > (1ULL << 40) || leaf.size_bits / 8 > (1ULL << 40) ||
        !std::has_single_bit(leaf.alignment) || leaf.elements == 0 ||
        leaf.elements > (1ULL << 40) || leaf.stride > (1ULL << 40))
      base::fail("place of a field");
    record.leaves.push_back(std::move(leaf));
  }
  return record;
}

FieldUnit read_field_unit(std::span<const std::byte> body) {
  base::ByteReader reader(body, "unit");
  auto head = reader.read<AssaySiteFields>();
  FieldUnit unit;
  if (head.records > reader.left() / 8 || head.functions > reader.left() ||
      head.derived > reader.left() || head.stretches > reader.left() ||
      head.count > ASSAY_MAX_FIELD_COUNTERS)
    base::fail("a unit of {}", base::with_noun(head.count, "counter"));
  unit.counters = head.count;
  for (uint32_t i = 0; i < head.records; i++)
    unit.hashes.push_back(reader.read<uint64_t>());
  for (uint32_t i = 0; i < head.functions; i++)
    unit.functions.emplace_back(reader.zero_terminated());
  for (uint32_t i = 0; i < head.derived; i++) {
    std::vector<Term> terms;
    for (uint64_t n = read_number(reader); n > 0; n--) {
      const uint64_t raw = read_number(reader);
      terms.push_back({quantity_of(raw / 2, head.count, i), raw % 2 != 0});
    }
    unit.derived.push_back(std::move(terms));
  }
  for (uint32_t i = 0; i < head.stretches; i++) {
    Stretch stretch{read_small_number(reader), read_small_number(reader), {}, {}};
    stretch.executions = quantity_of(read_number(reader), head.count, head.derived);
    if (stretch.function >= unit.functions.size())
      base::fail("function of a stretch");
    for (uint64_t n = read_number(reader); n > 0; n--) {
      StretchItem item = {};
      item.record = read_small_number(reader);
      item.first = read_small_number(reader);
      item.more = read_small_number(reader);
      item.reads = read_number(reader);
      item.writes = read_number(reader);
      item.copied = read_number(reader);
      item.base = ASSAY_BASE_OF_ITEM(read_small_number(reader));
      read_number(reader); // where the object begins
      if (item.record >= ASSAY_RECORD_FIRST &&
          item.record - ASSAY_RECORD_FIRST >= unit.hashes.size())
        base::fail("record of a stretch");
      stretch.items.push_back(item);
    }
    unit.stretches.push_back(std::move(stretch));
  }
  return unit;
}

// How often each stretch was executed. Threads that are in the middle of code while counters are
// written can make a difference that is below zero by some: that is none.
std::vector<uint64_t> executions_of(const FieldUnit &unit, const std::vector<uint64_t> &counts) {
  std::vector<uint64_t> derived;
  auto value = [&](Executions quantity) {
    return quantity.is_derived ? derived[quantity.number] : counts[quantity.number];
  };
  for (const std::vector<Term> &terms : unit.derived) {
    uint64_t sum = 0; // modulo 2^64, as some sums are negative
    for (const Term &term : terms)
      sum += term.is_negative ? -value(term.quantity) : value(term.quantity);
    derived.push_back(sum);
  }
  std::vector<uint64_t> executions;
  for (const Stretch &stretch : unit.stretches) {
    const auto n = static_cast<int64_t>(value(stretch.executions));
    executions.push_back(n > 0 ? static_cast<uint64_t>(n) : 0);
  }
  return executions;
}

} // namespace profile
