// From the model to records: what `assay merge` stores, and what tests build profiles with.
//
//   FileHeader (pid 0 when there are several processes)
//   for each process:  Program Machine Options Module… ModuleUnload… Mark… Reset, the records of each tool, End…
//   in the last one, before those of tools: Sites… Event…; behind them Loss…
//   Origin and Context come before the first record that names them
//
// What a tool summed over processes is written among the records of one of them, which must have what the sums refer to
// (ToolRecords::can_carry_sums); the reader sorts processes again. `killed` and `forked_use` are not written:
// they follow from the processes.

#include "base/stable_sort.h"
#include "profile/tool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

namespace profile {
namespace {

uint32_t header_pid(const Profile &profile) {
  return profile.processes.size() == 1 ? static_cast<uint32_t>(profile.processes[0].pid) : 0;
}

uint64_t start_of(const Profile &profile) {
  return profile.processes.empty() ? 0 : profile.processes[0].start_unix_ns;
}

} // namespace

uint32_t RecordSink::module(ModuleId module) const {
  auto known = modules_.find(module);
  return known == modules_.end() ? 0 : known->second;
}

uint32_t RecordSink::context(StackId stack, TypeId type, const Origin &origin) {
  auto [known, is_new] =
      contexts_.try_emplace({stack, type, origin}, static_cast<uint32_t>(contexts_.size()) + 1);
  if (is_new) {
    uint32_t origin_number = this->origin(origin);
    uint32_t short_id = type.known() ? static_cast<uint32_t>(profile_.types[type.v].hash) : 0;
    std::vector<uint64_t> frames;
    for (const CodeLocation &frame : profile_.stack(stack).frames) {
      uint32_t number = frame.module.known() ? module(frame.module) : 0;
      if (number > UINT16_MAX)
        base::fail("{} modules are more than a profile can number; merge fewer runs",
                   modules_.size());
      frames.push_back(assay_frame(number, frame.offset));
    }
    out_.record(ASSAY_RECORD_Context,
                AssayContext{known->second, short_id, profile_.stack(stack).cut, origin_number},
                std::as_bytes(std::span(frames)));
  }
  return known->second;
}

uint32_t RecordSink::origin(const Origin &origin) {
  if (origin.kind == 0)
    return 0;
  auto [known, is_new] = origins_.try_emplace(origin, static_cast<uint32_t>(origins_.size()) + 1);
  if (is_new)
    out_.record(ASSAY_RECORD_Origin, AssayOrigin{known->second, origin.kind},
                std::as_bytes(std::span(origin.name)));
  return known->second;
}

class ProfileWriter {
public:
  ProfileWriter(const Profile &profile, ContainerWriter &out)
      : profile_(profile), out_(out), sink_(profile, out) {}

  void write() {
    std::vector<const Process *> processes;
    for (const Process &process : profile_.processes)
      processes.push_back(&process);
    const Process nobody;
    if (processes.empty())
      processes.push_back(&nobody);
    // Of a run of one program and samples of another, each tool's sums are where its own are.
    auto carrier_of = [&](const ToolRecords *tool) {
      auto last = std::find_if(processes.rbegin(), processes.rend(), [&](const Process *process) {
        return tool->can_carry_sums(*process);
      });
      return last == processes.rend() ? processes.back() : *last;
    };
    for (const Process *process : processes)
      number_modules(*process);
    for (const Process *process : processes) {
      write_process(*process);
      if (process == processes.back()) {
        write_sites();
        for (const Event &event : profile_.events)
          out_.record(ASSAY_RECORD_Event,
                      AssayEvent{sink_.context(event.stack), event.count, event.weight},
                      std::as_bytes(std::span(event.name)));
      }
      for (const ToolRecords *tool : tool_records())
        tool->write(profile_, *process, process == carrier_of(tool), sink_);
      for (const Ending &end : process->ends)
        out_.record(ASSAY_RECORD_End, AssayEnd{end.reason, end.status, end.time_us});
    }
    for (auto [kind, count] : profile_.losses)
      if (kind != ASSAY_LOSS_killed && kind != ASSAY_LOSS_forked_use)
        out_.record(ASSAY_RECORD_Loss, AssayLoss{kind, count});
  }

private:
  // Frames have 16 bits for the number of a module: the first mapping of each module gets a low
  // one.
  void number_modules(const Process &process) {
    for (const Mapping &mapping : process.mappings)
      sink_.modules_.try_emplace(mapping.module, static_cast<uint32_t>(sink_.modules_.size()) + 1);
  }

  void write_process(const Process &process) {
    std::vector<std::string> strings = {process.executable};
    strings.insert(strings.end(), process.arguments.begin(), process.arguments.end());
    out_.record(ASSAY_RECORD_Program,
                AssayProgram{process.pid, process.parent_pid, process.start_unix_ns, process.tools,
                             process.forked},
                string_tail(strings));
    if (const auto &m = process.machine) {
      std::string names[] = {m->cpu_model, m->kernel, m->host};
      out_.record(ASSAY_RECORD_Machine,
                  AssayMachine{m->cpus, m->page_bytes, m->line_bytes, 0, m->l1d_bytes, m->l2_bytes,
                               m->l3_bytes},
                  string_tail(names));
    }
    if (!process.options.empty())
      out_.record(ASSAY_RECORD_Options, AssayOptions{0}, std::as_bytes(std::span(process.options)));
    for (const Mapping &mapping : process.mappings)
      write_mapping(mapping);
    for (const Mark &mark : process.marks)
      out_.record(ASSAY_RECORD_Mark, AssayMark{mark.time_us}, std::as_bytes(std::span(mark.name)));
    if (process.reset_us)
      out_.record(ASSAY_RECORD_Reset, AssayReset{*process.reset_us});
  }

  void write_mapping(const Mapping &mapping) {
    const Module &module = profile_.modules[mapping.module.v];
    uint32_t primary = sink_.module(mapping.module);
    uint32_t this_number = written_.insert(primary).second
                               ? primary
                               : static_cast<uint32_t>(sink_.modules_.size()) + ++repeated_;
    AssayModule record = {};
    record.module = this_number;
    record.instrumented = module.instrumented;
    record.start = mapping.start;
    record.end = mapping.end;
    record.bias = mapping.bias;
    record.loaded_us = mapping.loaded_us;
    uint64_t words[4] = {};
    record.build_id_size = static_cast<uint32_t>(std::min<size_t>(module.build_id.size(), 32));
    if (record.build_id_size)
      std::memcpy(words, module.build_id.data(), record.build_id_size);
    record.build_id0 = words[0];
    record.build_id1 = words[1];
    record.build_id2 = words[2];
    record.build_id3 = words[3];
    out_.record(ASSAY_RECORD_Module, record, string_tail(std::span(&module.path, 1)));
    if (mapping.unloaded_us)
      out_.record(ASSAY_RECORD_ModuleUnload, AssayModuleUnload{this_number, *mapping.unloaded_us});
  }

  void write_sites() {
    for (const auto &[module, module_number] : sink_.modules_) {
      std::vector<std::byte> tail;
      for (TypeId id : profile_.modules[module.v].types) {
        const Type &type = profile_.types[id.v];
        append_site(tail, ASSAY_SITE_TYPE,
                    AssaySiteType{type.hash, type.size, static_cast<uint32_t>(type.name.size()), 0},
                    {}, type.name);
      }
      for (const Unit &unit : profile_.modules[module.v].units)
        append_site(tail, ASSAY_SITE_UNIT,
                    AssaySiteUnit{unit.tools, static_cast<uint32_t>(unit.modes.size()),
                                  static_cast<uint32_t>(unit.source.size())},
                    unit.modes, unit.source);
      if (!tail.empty())
        out_.record(ASSAY_RECORD_Sites, AssaySites{module_number}, tail);
    }
  }

  // One entry of the SITES section: its fixed part, numbers, a name; each padded to eight bytes.
  template <class Fixed>
  static void append_site(std::vector<std::byte> &to, uint32_t kind, const Fixed &fixed,
                          const std::vector<uint32_t> &numbers, const std::string &name) {
    const size_t begin = to.size();
    auto pad = [&] { to.resize(begin + (to.size() - begin + 7) / 8 * 8); };
    AssaySite site = {kind, 0};
    append(to, std::as_bytes(std::span(&site, 1)));
    append(to, std::as_bytes(std::span(&fixed, 1)));
    append(to, std::as_bytes(std::span(numbers)));
    pad();
    append(to, std::as_bytes(std::span(name)));
    pad();
    site.size = static_cast<uint32_t>(to.size() - begin);
    std::memcpy(to.data() + begin, &site, sizeof site);
  }

  static void append(std::vector<std::byte> &to, std::span<const std::byte> bytes) {
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

  const Profile &profile_;
  ContainerWriter &out_;
  RecordSink sink_;
  std::set<uint32_t> written_; // modules
  uint32_t repeated_ = 0;
};

std::vector<std::byte> write_bytes(const Profile &profile) {
  ContainerWriter out(header_pid(profile), start_of(profile));
  ProfileWriter(profile, out).write();
  return out.bytes();
}

void write(const Profile &profile, const std::string &path) {
  ContainerWriter out(path, header_pid(profile), start_of(profile));
  ProfileWriter(profile, out).write();
  out.commit();
}

} // namespace profile
