// Call-site tables of language-specific data (.gcc_except_table).
//
// A landing pad is code that no jump leads to: a control-flow graph without it takes the pad for
// dead code, and the loop around a try block for one that has no such way out. The data of one
// function is
//
//   encoding u8, start that pads are relative to (absent: the function's begin)
//   encoding u8, offset of the type table uleb (if not absent)
//   encoding u8, size of the call sites uleb
//   call site: begin, size, pad (0: none), each encoded; action uleb
// ("C++ ABI for Itanium: Exception Handling", and the comments of libsupc++'s personality routine;
// neither LLVM nor binutils offers a reader.) Actions and types are not read: which exceptions are
// caught does not change where control may go.
//
// Frames share a table only in hostile files, where one large table for each frame would be
// quadratic: the bytes read of tables may together be at most those of the file's segments, twice.

#include "image/landing_pads.h"

#include "image/encoded_pointer.h"

#include "base/byte_reader.h"
#include "base/fail.h"

#include <algorithm>
#include <tuple>

namespace image {
namespace {

void read_call_sites(const ElfTables &tables, const UnwindRange &frame, uint64_t &budget,
                     std::vector<LandingPad> &pads) {
  base::ByteReader reader(tables.segments.bytes_from(frame.exception_table), ".gcc_except_table",
                          frame.exception_table);
  uint64_t start = frame.begin;
  if (auto encoding = reader.read<uint8_t>(); encoding != kPointerOmitted) {
    auto explicit_start = read_pointer(reader, encoding);
    if (!explicit_start)
      return;
    start = *explicit_start;
  }
  if (reader.read<uint8_t>() != kPointerOmitted)
    read_uleb128(reader);
  uint8_t encoding = reader.read<uint8_t>();
  if (encoding & 0xf0) // offsets are relative to nothing else
    return;
  uint64_t size = read_uleb128(reader);
  if (size > budget)
    return;
  uint64_t address = reader.offset();
  base::ByteReader sites(reader.bytes(size), ".gcc_except_table", address);
  budget -= size;
  auto is_code = [&](uint64_t place) {
    const Segment *segment = tables.segments.at(place);
    return segment && segment->executable;
  };
  while (!sites.at_end()) {
    uint64_t begin = read_pointer(sites, encoding).value_or(0);
    uint64_t length = read_pointer(sites, encoding).value_or(0);
    uint64_t pad = read_pointer(sites, encoding).value_or(0);
    read_uleb128(sites);
    uint64_t frame_size = frame.end - frame.begin;
    if (!pad || !length || begin >= frame_size || length > frame_size - begin ||
        !is_code(frame.begin + begin) || !is_code(start + pad))
      continue;
    pads.push_back({frame.begin + begin, frame.begin + begin + length, start + pad});
  }
}

} // namespace

std::vector<LandingPad> landing_pads(const ElfTables &tables,
                                     const std::vector<UnwindRange> &frames) {
  std::vector<LandingPad> pads;
  uint64_t budget = 0;
  for (const Segment &segment : tables.segments.all())
    budget += 2 * segment.file_size;
  for (const UnwindRange &frame : frames) {
    if (!frame.exception_table)
      continue;
    try {
      read_call_sites(tables, frame, budget, pads);
    } catch (const base::Failure &) {
      continue; // the next one is elsewhere and may be whole
    }
  }
  std::sort(pads.begin(), pads.end(), [](const LandingPad &a, const LandingPad &b) {
    return std::tie(a.call_begin, a.call_end, a.pad) < std::tie(b.call_begin, b.call_end, b.pad);
  });
  auto same = [](const LandingPad &a, const LandingPad &b) {
    return a.call_begin == b.call_begin && a.call_end == b.call_end && a.pad == b.pad;
  };
  pads.erase(std::unique(pads.begin(), pads.end(), same), pads.end());
  return pads;
}

} // namespace image
