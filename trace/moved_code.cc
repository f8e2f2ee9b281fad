// movability.cc says which routines may move, routine_mover.cc moves one; here all routines of a
// file become one piece of code. A reference to another routine is settled at the end, when it is
// known whether that one has moved: it leads to the copy, or by a fix-up to the original. Numbers of
// single accesses begin behind those of groups, so they are settled then, too.
//
// Moved code goes to the runtime through a few slots. So the runtime fills in these addresses, and
// not one for each such jump.
//
// Refused: new jump tables. The code that computes addresses from them would have to be understood,
// not only where they lead (decision 029).

#include "trace/moved_code.h"

#include "abi/container.h"
#include "base/fail.h"
#include "trace/module_code.h"
#include "trace/routine_mover.h"
#include "trace/system_calls.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace trace {
namespace {

using binary::Routine;

class ModuleMover {
public:
  ModuleMover(const binary::Program &program, const MoveSettings &settings)
      : executable_(program.executable()), movability_(program), module_(program, settings) {}

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
    for (const image::CodeRange &range : routine.ranges) {
      function.bytes += static_cast<uint32_t>(range.end - range.begin);
      if (&range != &routine.ranges.front())
        function.apart.push_back({range.begin, range.end - range.begin});
    }
    function.why = try_to_move(routine, function);
    result_.functions.push_back(std::move(function));
  }

  WhyUnmoved try_to_move(const Routine &routine, MovedFunction &function) {
    if (const WhyUnmoved why = movability_.at_first_sight(routine); why != WhyUnmoved::moved)
      return why;
    const bool is_chosen = !module_.settings.chosen || module_.settings.chosen(routine);
    if (!is_chosen && !may_make_threads_or_handlers(routine))
      return WhyUnmoved::not_chosen;
    const binary::FlowGraph graph = binary::flow_graph(module_.program, routine, decoder_);
    MovabilityAnswer answer = movability_.of(routine, graph);
    if (answer.why == WhyUnmoved::not_understood)
      function.detail = binary::why_not_meaning(graph.why_not);
    if (answer.why != WhyUnmoved::moved) {
      for (const binary::Instruction &instruction : graph.code.instructions)
        function.accesses += instruction.accesses;
      return answer.why;
    }
    module_.log = is_chosen ? module_.settings.log : uint32_t{ASSAY_LOG_nothing};
    move_routine(module_, routine, graph, std::move(answer), function);
    return is_chosen ? WhyUnmoved::moved : WhyUnmoved::not_chosen;
  }

  // What begins there, and what interrupts, is seen in moved code alone where nothing can stand in front of libc.
  bool may_make_threads_or_handlers(const Routine &routine) const {
    return module_.settings.log != ASSAY_LOG_nothing && executable_.carries_runtime() &&
           may_call_system(module_.program, routine);
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
  const Movability movability_;
  ModuleCode module_;
  binary::Decoder decoder_;
  MovedModule result_;
};

} // namespace

MovedModule move_code(const binary::Program &program, const MoveSettings &settings) {
  return ModuleMover(program, settings).move();
}

} // namespace trace
