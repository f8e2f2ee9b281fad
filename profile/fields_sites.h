// What Sites say of field accesses: layouts, and what each stretch of code accesses.
#pragma once

#include "base/byte_reader.h"
#include "profile/fields.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace profile {

// An access of a stretch, as often as that is executed.
struct StretchItem {
  uint32_t record; // ASSAY_RECORD_FIRST and on: index into the unit's hashes
  uint32_t first, more;
  uint64_t reads, writes, copied;
  uint32_t base;
};

// How often something is executed: a counter, or what is derived from some.
struct Executions {
  uint64_t number;
  bool is_derived;
};

struct Term {
  Executions quantity;
  bool is_negative;
};

struct Stretch {
  uint32_t function, line;
  Executions executions;
  std::vector<StretchItem> items;
};

// Of one file of the source.
struct FieldUnit {
  std::vector<uint64_t> hashes;
  std::vector<std::string> functions;
  uint64_t counters = 0;
  std::vector<std::vector<Term>> derived; // of counters, and of those before
  std::vector<Stretch> stretches;
};

// What follows the fixed part of a record: name, file, leaves. Throws Failure if it makes no sense;
// so do all of these.
Record read_field_record(uint64_t hash, uint64_t size, uint32_t line, uint32_t leaves,
                         std::span<const std::byte> body);
FieldUnit read_field_unit(std::span<const std::byte> body);
// A number of 32 bits.
uint32_t read_small_number(base::ByteReader &reader);

// How often each stretch was executed, from the counts of all counters.
std::vector<uint64_t> executions_of(const FieldUnit &unit, const std::vector<uint64_t> &counts);

} // namespace profile
