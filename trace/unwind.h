// Unwind tables for moved code: what exceptions, cancellation and debuggers need to pass through it.
//
// Each frame description entry of the original is written again for the moved instructions: the
// same rules, at the places where the instructions lie now; and its language-specific data with the
// moved calls and landing pads.
#pragma once

#include "abi/moved_code.h"
#include "image/executable.h"
#include "trace/assembler.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

namespace trace {

// Where the instruction at a linked address lies now, or the first one behind it, in the run of
// code that a frame covers.
using Moved = std::function<uint32_t(uint64_t)>;
// Where a block begins now; UINT32_MAX: it was not moved.
using MovedBlock = std::function<uint32_t(uint64_t)>;

class UnwindTables {
public:
  UnwindTables(const image::Executable &executable, std::vector<AssayMovedFixup> &fixups)
      : executable_(executable), fixups_(fixups) {}

  // Whether frames of this entry can be written again.
  static bool can_move(const image::Executable &executable, const image::UnwindRange &frame);

  // Code of [begin, end) is what the original has at the addresses of `frame`.
  void add(const image::UnwindRange &frame, uint32_t begin, uint32_t end, const Moved &moved,
           const MovedBlock &pad);

  // Appends the tables to the code; returns where .eh_frame_hdr begins, 0 without frames.
  uint32_t write(Assembler &code);

private:
  struct CallSite {
    uint32_t begin, end;
    uint32_t pad; // UINT32_MAX: none
    uint64_t action;
  };
  struct LanguageData {
    uint8_t type_encoding = 0xff;
    std::vector<CallSite> sites;
    std::vector<uint8_t> actions;
    std::vector<uint64_t>
        types; // from the last one to the first, as they lie; linked addresses, or as encoded
    std::vector<uint8_t> lists; // behind the types: those of exception specifications
  };
  struct Frame {
    const image::UnwindRange *original;
    uint32_t begin, end;
    std::vector<uint8_t> instructions;
    std::optional<LanguageData> data;
    uint32_t data_at = 0, at = 0;
  };

  class DataReader;
  static std::optional<LanguageData> read_data(const image::Executable &executable,
                                               const image::UnwindRange &frame);
  void write_data(Assembler &code, Frame &frame);
  uint32_t write_common(Assembler &code, const image::UnwindCommon &common);
  void relative_to_image(Assembler &code, uint64_t target);

  const image::Executable &executable_;
  std::vector<AssayMovedFixup> &fixups_;
  std::vector<Frame> frames_;
  std::unordered_map<const image::UnwindCommon *, uint32_t> commons_;
};

} // namespace trace
