// routine_mover.cc moves one routine; here all routines of a file become one piece of code. Whether
// a routine may move is asked from cheap to dear: what symbols and unwind tables say, then its flow
// graph, then whether its tables can be written again. A reference to another routine is settled at
// the end, when it is known whether that one has moved: it leads to the copy, or by a fix-up to the
// original. Numbers of single accesses begin behind those of groups, so they are settled then, too.
//
// Moved code goes to the runtime through a few slots. So the runtime fills in these addresses, and
// not one for each such jump.
//
// Refused: new jump tables. The code that computes addresses from them would have to be understood,
// not only where they lead (decision 029).

#include "trace/moved_code.h"

#include "abi/container.h"
#include "base/fail.h"
#include "binary/eligibility.h"
#include "trace/module_code.h"
#include "trace/own_frames.h"
#include "trace/routine_mover.h"
#include "trace/system_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace trace {
namespace {

using binary::Flow;
using binary::FlowGraph;
using binary::Instruction;
using binary::Routine;

class ModuleMover {
public:
  ModuleMover(const binary::Program &program, const MoveSettings &settings)
      : executable_(program.executable()), own_frames_(executable_), module_(program, settings) {}

  MovedModule move() {
    find_image();
    module_.r11 = R11(module_.program, module_.decoder);
    begin_code();
    for (const Routine &routine : module_.program.routines()) {
      if (result_.functions.size() % kFunctionsAtOnce == 0 && !is_wanted())
        base::fail("who asked for it ended before its code was moved");
      this->routine(routine);
    }
    settle();
    result_.singles = static_cast<uint32_t>(module_.singles.size());
    result_.groups = std::move(module_.groups);
    result_.skeletons = std::move(module_.skeletons);
    result_.groups.insert(result_.groups.end(), std::make_move_iterator(module_.singles.begin()),
                          std::make_move_iterator(module_.singles.end()));
    if (!module_.entries.empty())
      write_file();
    return std::move(result_);
  }

private:
  static constexpr size_t kFunctionsAtOnce = 64; // of a millisecond each, or less

  bool is_wanted() const { return !module_.settings.is_wanted || module_.settings.is_wanted(); }

  void find_image() {
    constexpr uint64_t kPage = 4096;
    const auto &segments = executable_.segments();
    module_.image_begin = segments.front().address & ~(kPage - 1);
    module_.image_end = (segments.back().address + segments.back().size + kPage - 1) & ~(kPage - 1);
  }

  void begin_code() {
    for (int i = 0; i < ASSAY_MOVED_SLOTS; i++)
      module_.code.word(uint64_t{0});
  }

  void routine(const Routine &routine) {
    MovedFunction function;
    function.name = routine.name();
    function.address = routine.address();
    for (const image::CodeRange &range : routine.ranges)
      function.bytes += static_cast<uint32_t>(range.end - range.begin);
    function.why = try_to_move(routine, function);
    result_.functions.push_back(std::move(function));
  }

  WhyUnmoved try_to_move(const Routine &routine, MovedFunction &function) {
    for (const image::CodeRange &range : routine.ranges)
      if (range.found_by == image::FoundBy::plt)
        return WhyUnmoved::stub;
    for (const image::CodeRange &range : routine.ranges)
      if (range.has_guessed_end())
        return WhyUnmoved::guessed_limits;
    const bool is_chosen = !module_.settings.chosen || module_.settings.chosen(routine);
    if (!is_chosen && !may_make_threads_or_handlers(routine))
      return WhyUnmoved::not_chosen;
    const std::vector<const image::UnwindRange *> frames = frames_of(routine);
    for (const image::UnwindRange *frame : frames)
      if (frame->common->is_signal)
        return WhyUnmoved::signal_return;
    const FlowGraph graph = binary::flow_graph(module_.program, routine, decoder_);
    if (const WhyUnmoved why = why_unmovable(routine, graph, function); why != WhyUnmoved::moved) {
      for (const Instruction &instruction : graph.code.instructions)
        function.accesses += instruction.accesses;
      return why;
    }
    if (own_frames_.are_of(routine, graph, !frames.empty()))
      return WhyUnmoved::own_frames;
    for (const image::UnwindRange *frame : frames)
      if (!UnwindTables::can_move(executable_, *frame))
        return WhyUnmoved::unwind_table;
    module_.log = is_chosen ? module_.settings.log : uint32_t{ASSAY_LOG_nothing};
    const WhyUnmoved why = move_routine(module_, routine, graph, frames, function);
    return is_chosen ? why : WhyUnmoved::not_chosen;
  }

  // What begins there, and what interrupts, is seen in moved code alone where nothing can stand in front of libc.
  bool may_make_threads_or_handlers(const Routine &routine) const {
    return module_.settings.log != ASSAY_LOG_nothing && executable_.carries_runtime() &&
           may_call_system(module_.program, routine);
  }

  std::vector<const image::UnwindRange *> frames_of(const Routine &routine) const {
    const auto &all = executable_.unwind_ranges();
    std::vector<const image::UnwindRange *> found;
    for (const image::CodeRange &range : routine.ranges) {
      auto at = std::lower_bound(all.begin(), all.end(), range.end,
                                 [](const auto &each, uint64_t end) { return each.begin < end; });
      constexpr int kOverlapping = 8; // entries that begin before the range are few
      for (int i = 0;
           i < kOverlapping || (at != all.begin() && std::prev(at)->begin >= range.begin); i++) {
        if (at == all.begin())
          break;
        --at;
        if (at->end > range.begin && std::find(found.begin(), found.end(), &*at) == found.end())
          found.push_back(&*at);
      }
    }
    return found;
  }

  WhyUnmoved why_unmovable(const Routine &routine, const FlowGraph &graph,
                           MovedFunction &function) {
    if (graph.why_not != binary::WhyNot::understood) {
      function.detail = binary::why_not_meaning(graph.why_not);
      return WhyUnmoved::not_understood;
    }
    if (binary::has_shared_table(routine, graph))
      return WhyUnmoved::shared_table;
    if (binary::has_overlaps(graph))
      return WhyUnmoved::overlaps;
    if (binary::changes_segments(graph))
      return WhyUnmoved::changes_segments;
    if (goes_on_behind_trap(routine, graph))
      return WhyUnmoved::goes_on_behind_trap;
    for (const Instruction &instruction : graph.code.instructions) {
      if (instruction.flow == Flow::next && has_relative_target(instruction))
        return WhyUnmoved::relative_operand;
      if (asks_caller(instruction, graph))
        return WhyUnmoved::asks_caller;
      if (has_computed_address(instruction))
        return WhyUnmoved::computed_address;
    }
    return WhyUnmoved::moved;
  }

  // A bit of a string of bits in memory whose number is in a register; xlat, which adds al. No lea computes that.
  bool has_computed_address(const Instruction &instruction) {
    const auto bytes = executable_.bytes_from(instruction.address);
    const auto own = bytes.first(std::min<size_t>(bytes.size(), instruction.length));
    const bool may = std::any_of(own.begin(), own.end(), [](std::byte each) {
      const auto opcode = std::to_integer<unsigned>(each);
      return opcode == 0xd7 || (opcode & 0xe7) == 0xa3; // decoding takes longer
    });
    DecodedInstruction decoded;
    if (!may || !module_.decoder.decode(bytes, decoded))
      return false;
    switch (decoded.info.mnemonic) {
    case ZYDIS_MNEMONIC_XLAT: return true;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
      return decoded.operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
             decoded.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
    default: return false;
    }
  }

  // Control comes back behind a breakpoint, whose handler just returns. Behind other traps handlers
  // go on who skip them: that is looked at where nothing else leads there.
  bool goes_on_behind_trap(const Routine &routine, const FlowGraph &graph) const {
    std::vector<uint64_t> reached;
    for (const binary::Block &block : graph.blocks)
      if (!block.is_dispatch())
        reached.push_back(graph.instructions_of(block).front().address);
    std::ranges::sort(reached);
    for (const binary::Block &block : graph.blocks) {
      if (block.is_dispatch() || graph.last_of(block).flow != binary::Flow::stop)
        continue;
      const Instruction &trap = graph.last_of(block);
      const bool is_breakpoint = trap.mnemonic == ZYDIS_MNEMONIC_INT3;
      DecodedInstruction decoded;
      for (uint64_t at = trap.end(); routine.contains(at); at += decoded.info.length) {
        const bool is_reached = std::ranges::binary_search(reached, at);
        if (is_reached && !is_breakpoint)
          break;
        if (is_reached || !module_.decoder.decode(executable_.bytes_from(at), decoded))
          return true;
        if (decoded.info.mnemonic != ZYDIS_MNEMONIC_NOP &&
            decoded.info.mnemonic != ZYDIS_MNEMONIC_INT3)
          return true;
      }
    }
    return false;
  }

  bool has_relative_target(const Instruction &instruction) const {
    DecodedInstruction decoded;
    if (!module_.decoder.decode(executable_.bytes_from(instruction.address), decoded))
      return true;
    for (unsigned i = 0; i < decoded.info.operand_count; i++) {
      const ZydisDecodedOperand &operand = decoded.operands[i];
      if ((operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative) ||
          (operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.base == ZYDIS_REGISTER_EIP))
        return true;
    }
    return false;
  }

  // dlsym and dlopen look up whose code called them.
  bool asks_caller(const Instruction &instruction, const FlowGraph &graph) const {
    std::string_view name;
    if (instruction.flow == Flow::call || instruction.flow == Flow::jump) {
      name = executable_.import_of_stub(instruction.target());
    } else if (instruction.flow == Flow::indirect_call || instruction.flow == Flow::indirect_jump) {
      for (const assay_uop &uop : graph.code.uops_of(instruction))
        if (uop.op == ASSAY_UOP_load && uop.a == ASSAY_REG_BIAS && uop.b == ASSAY_REG_ZERO)
          name = executable_.import_of_slot(static_cast<uint64_t>(int64_t{uop.i}));
    }
    return name == "dlsym" || name == "dlvsym" || name == "dlopen" || name == "dlmopen";
  }

  void settle() {
    Assembler &code = module_.code;
    for (const auto &[at, target] : module_.references) {
      if (auto entry = module_.entries.find(target); entry != module_.entries.end()) {
        code.put<uint32_t>(at, entry->second - (at + 4));
      } else {
        code.put<uint32_t>(at, static_cast<uint32_t>(target - (at + 4)));
        module_.fixups.push_back({at, ASSAY_FIXUP_image});
      }
    }
    for (uint32_t at : module_.group_fixups)
      module_.fixups.push_back({at, ASSAY_FIXUP_id});
    for (uint32_t at : module_.single_fixups) {
      code.put<uint32_t>(at, code.get<uint32_t>(at) + static_cast<uint32_t>(module_.groups.size()));
      module_.fixups.push_back({at, ASSAY_FIXUP_id});
    }
  }

  void write_file() {
    Assembler &code = module_.code;
    AssayMovedHeader header = {};
    std::memcpy(header.magic, ASSAY_MOVED_MAGIC, sizeof header.magic);
    header.version = ASSAY_MOVED_VERSION;
    header.image_begin = module_.image_begin;
    header.image_end = module_.image_end;
    header.instructions_end = code.size();
    code.align(4096, 0xcc);
    header.unwind_header = module_.unwind.write(code);
    header.fixups = static_cast<uint32_t>(module_.fixups.size());
    header.jumps = static_cast<uint32_t>(module_.jumps.size());
    header.returns = static_cast<uint32_t>(module_.returns.size());
    header.code_bytes = code.size();
    header.ids = static_cast<uint32_t>(result_.groups.size());
    auto &file = result_.file;
    auto append = [&](const void *data, size_t size) {
      const auto *bytes = static_cast<const std::byte *>(data);
      file.insert(file.end(), bytes, bytes + size);
    };
    append(&header, sizeof header);
    append(module_.fixups.data(), module_.fixups.size() * sizeof(AssayMovedFixup));
    append(module_.jumps.data(), module_.jumps.size() * sizeof(AssayMovedJump));
    append(module_.returns.data(), module_.returns.size() * sizeof(AssayMovedReturn));
    file.resize((file.size() + 4095) & ~size_t{4095});
    header.code_offset = static_cast<uint32_t>(file.size());
    append(code.bytes().data(), code.size());
    header.file_bytes = file.size();
    const size_t checked = offsetof(AssayMovedHeader, image_begin);
    std::memcpy(file.data(), &header, sizeof header);
    header.checksum = assay_checksum(file.data() + checked, file.size() - checked, 0);
    std::memcpy(file.data(), &header, sizeof header);
  }

  const image::Executable &executable_;
  const OwnFrames own_frames_;
  ModuleCode module_;
  binary::Decoder decoder_;
  MovedModule result_;
};

} // namespace

const char *why_unmoved_meaning(WhyUnmoved why) {
  switch (why) {
  case WhyUnmoved::moved: return "it was moved";
  case WhyUnmoved::not_chosen: return "it was not asked for";
  case WhyUnmoved::stub: return "it is a stub that jumps into another file";
  case WhyUnmoved::not_understood: return "its control flow is not known";
  case WhyUnmoved::overlaps: return "one of its instructions begins within another";
  case WhyUnmoved::shared_table: return "a jump table leads out of it";
  case WhyUnmoved::changes_segments: return "it sets the base of thread-local storage";
  case WhyUnmoved::no_room: return "there is no room for jumps to the moved code";
  case WhyUnmoved::signal_return: return "the kernel returns to it";
  case WhyUnmoved::unwind_table: return "its unwind table cannot be written again";
  case WhyUnmoved::relative_operand: return "an instruction works only where it lies";
  case WhyUnmoved::asks_caller:
    return "it calls dlopen or dlsym, which look up whose code calls them";
  case WhyUnmoved::own_frames:
    return "it calls others and is in no unwind table: it may find its frames by their return "
           "addresses (as Go, OCaml, V8 do)";
  case WhyUnmoved::guessed_limits:
    return "neither a symbol nor an unwind table says where it begins and ends";
  case WhyUnmoved::goes_on_behind_trap:
    return "a handler may go on behind one of its traps (int3, ud2)";
  case WhyUnmoved::computed_address:
    return "an instruction computes its address from more than a sum (bt, bts, btr, btc with a "
           "register, xlat)";
  case WhyUnmoved::count: break;
  }
  return "";
}

MovedModule move_code(const binary::Program &program, const MoveSettings &settings) {
  return ModuleMover(program, settings).move();
}

} // namespace trace
