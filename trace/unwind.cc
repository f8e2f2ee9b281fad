// DWARF's call frame instructions are a program that advances through the code; only the advances
// change. The data of the C++ personality routines is read as far as it must be: call sites are
// moved, chains of actions are copied, and followed to learn how many types there are (their table
// has no length).
//
// Source: DWARF 5, 6.4.2; Linux Standard Base Core, "Exception Frames"; Itanium C++ ABI, "Exception Handling".

#include "trace/unwind.h"

#include "base/byte_reader.h"
#include "base/fail.h"
#include "image/encoded_pointer.h"

#include <llvm/BinaryFormat/Dwarf.h>

#include <algorithm>
#include <set>

namespace trace {
namespace {

using namespace llvm::dwarf;
using base::ByteReader;

constexpr uint8_t kRelative = DW_EH_PE_pcrel | DW_EH_PE_sdata4;

void put_uleb(std::vector<uint8_t> &to, uint64_t value) {
  do {
    uint8_t byte = value & 0x7f;
    value >>= 7;
    to.push_back(value ? byte | 0x80 : byte);
  } while (value);
}

void put_padded_uleb(Assembler &to, uint32_t value) {
  for (int i = 0; i < 4; i++, value >>= 7)
    to.byte((value & 0x7f) | 0x80);
  to.byte(value);
}

// What follows an opcode of call frame instructions, one letter an operand: u and s LEB128, b a block.
const char *operands_of(uint8_t opcode) {
  switch (opcode) {
  case DW_CFA_nop:
  case DW_CFA_remember_state:
  case DW_CFA_restore_state: return "";
  case DW_CFA_restore_extended:
  case DW_CFA_undefined:
  case DW_CFA_same_value:
  case DW_CFA_def_cfa_register:
  case DW_CFA_def_cfa_offset:
  case DW_CFA_GNU_args_size: return "u";
  case DW_CFA_def_cfa_offset_sf: return "s";
  case DW_CFA_offset_extended:
  case DW_CFA_register:
  case DW_CFA_def_cfa:
  case DW_CFA_val_offset: return "uu";
  case DW_CFA_offset_extended_sf:
  case DW_CFA_def_cfa_sf:
  case DW_CFA_val_offset_sf: return "us";
  case DW_CFA_def_cfa_expression: return "b";
  case DW_CFA_expression:
  case DW_CFA_val_expression: return "ub";
  default: return nullptr;
  }
}

void skip_operands(ByteReader &reader, const char *operands) {
  for (; *operands; operands++) {
    const uint64_t value = image::read_uleb128(reader);
    if (*operands == 'b')
      reader.skip(value);
  }
}

// Visits the instructions: at(advance) for those that go on, other(bytes) for those that are the
// same at any place. False for what is not known.
template <class Advance, class Other>
bool for_each_instruction(std::span<const std::byte> bytes, Advance advance, Other other) {
  ByteReader reader(bytes, ".eh_frame");
  while (!reader.at_end()) {
    const auto rest = reader.rest();
    const auto opcode = reader.read<uint8_t>();
    switch (opcode & 0xc0) {
    case DW_CFA_advance_loc: advance(opcode & 0x3fu); continue;
    case DW_CFA_offset: skip_operands(reader, "u"); break;
    case DW_CFA_restore: break;
    default:
      switch (opcode) {
      case DW_CFA_advance_loc1: advance(reader.read<uint8_t>()); continue;
      case DW_CFA_advance_loc2: advance(reader.read<uint16_t>()); continue;
      case DW_CFA_advance_loc4: advance(reader.read<uint32_t>()); continue;
      default: break;
      }
      const char *operands = operands_of(opcode);
      if (!operands)
        return false;
      skip_operands(reader, operands);
    }
    other(rest.first(rest.size() - reader.left()));
  }
  return true;
}

unsigned size_of(uint8_t encoding) {
  switch (encoding & 0x0f) {
  case DW_EH_PE_udata2:
  case DW_EH_PE_sdata2: return 2;
  case DW_EH_PE_udata4:
  case DW_EH_PE_sdata4: return 4;
  case DW_EH_PE_absptr:
  case DW_EH_PE_udata8:
  case DW_EH_PE_sdata8: return 8;
  default: return 0;
  }
}

bool is_relative(uint8_t encoding) {
  return (encoding & 0x70) == DW_EH_PE_pcrel;
}

// What the chains of actions name: the highest type, and the furthest list of types behind their table.
struct Filters {
  uint64_t most = 0;
  int64_t least = 0;
};

Filters filters_of(std::span<const std::byte> actions, std::set<uint64_t> begins) {
  Filters filters;
  std::set<uint64_t> seen;
  while (!begins.empty()) {
    const uint64_t at = *begins.begin();
    begins.erase(begins.begin());
    if (!seen.insert(at).second)
      continue;
    if (at >= actions.size())
      base::fail("an action at {} of {}", at, actions.size());
    ByteReader reader(actions.subspan(at), "actions", at);
    const int64_t filter = image::read_sleb128(reader);
    const uint64_t next_at = reader.offset();
    const int64_t next = image::read_sleb128(reader);
    if (filter > 0)
      filters.most = std::max(filters.most, static_cast<uint64_t>(filter));
    filters.least = std::min(filters.least, filter);
    if (next)
      begins.insert(next_at + static_cast<uint64_t>(next));
  }
  return filters;
}

} // namespace

// Reads what a personality routine knows of a frame (.gcc_except_table), into a form whose places are offsets from the
// frame's begin. Nothing where it has a form that is not moved.
class UnwindTables::DataReader {
public:
  DataReader(const image::Executable &executable, const image::UnwindRange &frame)
      : executable_(executable), frame_(frame),
        reader_(executable.bytes_from(frame.exception_table), kSection, frame.exception_table) {}

  std::optional<LanguageData> read() {
    uint64_t start = frame_.begin;
    if (const auto encoding = reader_.read<uint8_t>(); encoding != image::kPointerOmitted)
      start = image::read_pointer(reader_, encoding).value_or(0);
    data_.type_encoding = reader_.read<uint8_t>();
    if (data_.type_encoding != image::kPointerOmitted) {
      const uint64_t distance = image::read_uleb128(reader_);
      types_end_ = reader_.offset() + distance;
    }
    if (!read_sites(start) || (!action_begins_.empty() && !read_actions()))
      return std::nullopt;
    return std::move(data_);
  }

private:
  static constexpr const char *kSection = ".gcc_except_table";

  bool read_sites(uint64_t start) {
    const auto encoding = reader_.read<uint8_t>();
    if (encoding & 0xf0)
      return false;
    const uint64_t size = image::read_uleb128(reader_);
    ByteReader sites(reader_.bytes(size), kSection, reader_.offset());
    while (!sites.at_end()) {
      const uint64_t begin = image::read_pointer(sites, encoding).value_or(0);
      const uint64_t length = image::read_pointer(sites, encoding).value_or(0);
      const uint64_t pad = image::read_pointer(sites, encoding).value_or(0);
      const uint64_t action = image::read_uleb128(sites);
      if (action)
        action_begins_.insert(action - 1);
      const uint64_t frame_size = frame_.end - frame_.begin;
      if (begin > frame_size || length > frame_size - begin)
        return false;
      // Far pads lie in another part of the function; 32 bits from the frame's begin.
      const uint64_t distance = start + pad - frame_.begin;
      if (pad && static_cast<uint64_t>(static_cast<int32_t>(distance)) != distance)
        return false;
      data_.sites.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + length),
                             pad ? static_cast<uint32_t>(distance) : UINT32_MAX, action});
    }
    return true;
  }

  bool read_actions() {
    constexpr uint64_t kMax = 1 << 20;
    const auto rest = reader_.rest().first(std::min<uint64_t>(
        reader_.left(), types_end_ ? types_end_ - std::min(types_end_, reader_.offset()) : kMax));
    const Filters filters = filters_of(rest, action_begins_);
    const unsigned bytes =
        data_.type_encoding == image::kPointerOmitted ? 0 : size_of(data_.type_encoding);
    if ((filters.most || filters.least) && (!types_end_ || !bytes))
      return false;
    const uint64_t table = filters.most * bytes;
    if (table > rest.size())
      return false;
    const auto only = rest.first(rest.size() - table);
    const auto *raw = reinterpret_cast<const uint8_t *>(only.data());
    // Without types nothing says where actions end; then they are as long as the chains need.
    data_.actions.assign(
        raw, raw + (types_end_ ? only.size()
                               : std::min<uint64_t>(only.size(), *action_begins_.rbegin() + 32)));
    read_types(filters.most, bytes);
    if (is_relative(data_.type_encoding) && bytes != 4)
      return false;
    if (filters.least < 0)
      read_lists(static_cast<uint64_t>(-filters.least));
    return true;
  }

  void read_types(uint64_t count, unsigned bytes) {
    for (uint64_t i = count; i-- > 0;) { // the last type comes first
      const uint64_t place = types_end_ - (i + 1) * bytes;
      ByteReader type(executable_.bytes(place, bytes), kSection, place);
      data_.types.push_back(
          image::read_pointer(type, data_.type_encoding & ~DW_EH_PE_indirect).value_or(0));
    }
  }

  // Of exception specifications; the furthest begins at `last`, from 1.
  void read_lists(uint64_t last) {
    ByteReader lists(executable_.bytes_from(types_end_), kSection, types_end_);
    lists.skip(last - 1);
    while (image::read_uleb128(lists))
      ;
    const auto *begin =
        reinterpret_cast<const uint8_t *>(executable_.bytes_from(types_end_).data());
    data_.lists.assign(begin, begin + (lists.offset() - types_end_));
  }

  const image::Executable &executable_;
  const image::UnwindRange &frame_;
  ByteReader reader_;
  LanguageData data_;
  uint64_t types_end_ = 0; // they are read backwards from here; 0: there are none
  std::set<uint64_t> action_begins_;
};

std::optional<UnwindTables::LanguageData>
UnwindTables::read_data(const image::Executable &executable, const image::UnwindRange &frame) {
  return DataReader(executable, frame).read();
}

bool UnwindTables::can_move(const image::Executable &executable, const image::UnwindRange &frame) {
  const image::UnwindCommon &common = *frame.common;
  if (common.is_signal || common.return_register != 16 || common.code_alignment != 1)
    return false;
  auto nothing = [](auto) {};
  try {
    if (!for_each_instruction(frame.instructions, nothing, nothing) ||
        !for_each_instruction(common.instructions, nothing, nothing))
      return false;
    return !frame.exception_table || read_data(executable, frame);
  } catch (const base::Failure &) {
    return false;
  }
}

void UnwindTables::add(const image::UnwindRange &frame, uint32_t begin, uint32_t end,
                       const Moved &moved, const MovedBlock &pad) {
  Frame &to = frames_.emplace_back();
  to.original = &frame;
  to.begin = begin;
  to.end = end;
  uint64_t address = frame.begin;
  uint32_t at = begin;
  for_each_instruction(
      frame.instructions, [&](uint64_t advance) { address += advance; },
      [&](std::span<const std::byte> bytes) {
        if (const uint32_t now = std::min(moved(address), end); now > at) {
          to.instructions.push_back(DW_CFA_advance_loc4);
          const uint32_t distance = now - at;
          for (int i = 0; i < 4; i++)
            to.instructions.push_back(static_cast<uint8_t>(distance >> 8 * i));
          at = now;
        }
        const auto *raw = reinterpret_cast<const uint8_t *>(bytes.data());
        if (*raw != DW_CFA_nop)
          to.instructions.insert(to.instructions.end(), raw, raw + bytes.size());
      });
  if (!frame.exception_table)
    return;
  to.data = read_data(executable_, frame);
  for (CallSite &site : to.data->sites) {
    if (site.pad != UINT32_MAX)
      site.pad = pad(frame.begin + static_cast<uint64_t>(static_cast<int32_t>(site.pad)));
    site.begin = moved(frame.begin + site.begin) - begin;
    site.end = moved(frame.begin + site.end) - begin;
  }
  std::erase_if(to.data->sites, [](const CallSite &site) { return site.begin >= site.end; });
}

void UnwindTables::relative_to_image(Assembler &code, uint64_t target) {
  fixups_.push_back({code.size(), ASSAY_FIXUP_image});
  code.word(static_cast<uint32_t>(target - code.size()));
}

void UnwindTables::write_data(Assembler &code, Frame &frame) {
  const LanguageData &data = *frame.data;
  code.align(4, 0);
  frame.data_at = code.size();
  // Landing pads count from a byte before the code, because 0 stands for none.
  code.byte(kRelative);
  code.word(ASSAY_MOVED_SLOTS * 8 - 1 - code.size());
  code.byte(data.type_encoding);
  uint32_t distance_at = 0;
  if (data.type_encoding != image::kPointerOmitted) {
    distance_at = code.size();
    put_padded_uleb(code, 0);
  }
  code.byte(DW_EH_PE_udata4);
  std::vector<uint8_t> sites;
  auto word = [&](uint32_t value) {
    for (int i = 0; i < 4; i++)
      sites.push_back(static_cast<uint8_t>(value >> 8 * i));
  };
  for (const CallSite &site : data.sites) {
    word(site.begin);
    word(site.end - site.begin);
    word(site.pad == UINT32_MAX ? 0 : site.pad - (ASSAY_MOVED_SLOTS * 8 - 1));
    put_uleb(sites, site.action);
  }
  std::vector<uint8_t> length;
  put_uleb(length, sites.size());
  code.append(length);
  code.append(sites);
  code.append(data.actions);
  if (!distance_at)
    return;
  const unsigned bytes = size_of(data.type_encoding);
  code.align(4, 0);
  for (uint64_t type : data.types) {
    if (is_relative(data.type_encoding) && type)
      relative_to_image(code, type);
    else
      for (unsigned i = 0; i < bytes; i++)
        code.byte(static_cast<uint8_t>(type >> 8 * i));
  }
  uint32_t distance = code.size() - (distance_at + 5);
  for (uint32_t i = 0; i < 5; i++, distance >>= 7)
    code.put<uint8_t>(distance_at + i,
                      static_cast<uint8_t>((distance & 0x7f) | (i < 4 ? 0x80 : 0)));
  code.append(data.lists);
}

uint32_t UnwindTables::write_common(Assembler &code, const image::UnwindCommon &common) {
  const auto [found, is_new] = commons_.try_emplace(&common, code.size());
  if (!is_new)
    return found->second;
  const uint32_t begin = code.size();
  code.word(uint32_t{0}); // length
  code.word(uint32_t{0}); // this is a common entry
  code.byte(1);
  const bool has_personality = common.personality != 0;
  for (char letter : std::string_view(has_personality ? "zPLR" : "zR"))
    code.byte(static_cast<uint8_t>(letter));
  code.byte(0);
  std::vector<uint8_t> alignments;
  put_uleb(alignments, 1);
  int64_t rest = common.data_alignment; // as SLEB128
  for (;;) {
    const uint8_t byte = rest & 0x7f;
    rest >>= 7;
    const bool done = (rest == 0 && !(byte & 0x40)) || (rest == -1 && (byte & 0x40));
    alignments.push_back(done ? byte : byte | 0x80);
    if (done)
      break;
  }
  code.append(alignments);
  code.byte(static_cast<unsigned>(common.return_register));
  code.byte(has_personality ? 7 : 1);
  if (has_personality) {
    code.byte(kRelative | (common.personality_encoding & DW_EH_PE_indirect));
    relative_to_image(code, common.personality);
    code.byte(kRelative);
  }
  code.byte(kRelative);
  code.append(
      {reinterpret_cast<const uint8_t *>(common.instructions.data()), common.instructions.size()});
  code.align(8, DW_CFA_nop);
  code.put<uint32_t>(begin, code.size() - begin - 4);
  return begin;
}

uint32_t UnwindTables::write(Assembler &code) {
  if (frames_.empty())
    return 0;
  for (Frame &frame : frames_)
    if (frame.data)
      write_data(code, frame);
  code.align(8, 0);
  const uint32_t section = code.size();
  for (Frame &frame : frames_) {
    const uint32_t common = write_common(code, *frame.original->common);
    frame.at = code.size();
    code.word(uint32_t{0});
    code.word(code.size() - common);
    code.word(frame.begin - code.size());
    code.word(frame.end - frame.begin);
    if (frame.original->common->personality) {
      code.byte(4);
      code.word(frame.data ? frame.data_at - code.size() : 0);
    } else {
      code.byte(0);
    }
    code.append(frame.instructions);
    code.align(8, DW_CFA_nop);
    code.put<uint32_t>(frame.at, code.size() - frame.at - 4);
  }
  code.word(uint32_t{0});
  const uint32_t header = code.size();
  code.byte(1);
  code.byte(kRelative);
  code.byte(DW_EH_PE_udata4);
  code.byte(DW_EH_PE_datarel | DW_EH_PE_sdata4);
  code.word(section - code.size());
  code.word(static_cast<uint32_t>(frames_.size()));
  std::sort(frames_.begin(), frames_.end(),
            [](const Frame &a, const Frame &b) { return a.begin < b.begin; });
  for (const Frame &frame : frames_) {
    code.word(frame.begin - header);
    code.word(frame.at - header);
  }
  return header;
}

} // namespace trace
