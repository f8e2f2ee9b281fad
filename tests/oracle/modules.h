// The executables and libraries of a process, with the graphs, forms and conditions of their routines.
#pragma once

#include "base/fail.h"
#include "binary/forms.h"
#include "binary/trip_counts.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace oracle {

using namespace binary;

// A routine with all that is to be checked.
struct Analyzed {
  FlowGraph graph;
  Ssa ssa;
  std::unique_ptr<Forms> forms;                     // none: not understood
  std::unordered_set<uint64_t> listed;              // addresses of its instructions
  std::vector<ExprId> addresses;                    // by place in Ssa::uops
  std::vector<std::optional<Condition>> conditions; // the same
  std::vector<TripCount> trips;                     // by loop
  std::unordered_map<uint64_t, std::vector<ValueId>>
      left; // node and instruction -> by calls, opaque
};

struct Module {
  std::string path;
  uint64_t begin = 0, end = 0, bias = 0;
  std::unique_ptr<Program> program;
  std::unordered_map<const Routine *, std::unique_ptr<Analyzed>> routines;
};

class Modules {
public:
  // The one at an address; null if none is known.
  Module *at(uint64_t address) {
    for (auto &module : modules_)
      if (address >= module->begin && address < module->end)
        return module.get();
    return nullptr;
  }

  // Adds those that a process has mapped and that are not known.
  void read(pid_t process) {
    std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
    std::map<std::string, std::pair<uint64_t, uint64_t>> found; // first and last address
    for (std::string line; std::getline(maps, line);) {
      std::istringstream words(line);
      std::string range, rights, offset, device, inode, path;
      words >> range >> rights >> offset >> device >> inode >> path;
      uint64_t begin = std::strtoull(range.c_str(), nullptr, 16);
      uint64_t end = std::strtoull(range.c_str() + range.find('-') + 1, nullptr, 16);
      if (path.empty() || path[0] != '/')
        continue;
      if (std::strtoull(offset.c_str(), nullptr, 16) == 0 && !found.contains(path))
        found[path] = {begin, end};
      else if (auto at = found.find(path); at != found.end())
        at->second.second = std::max(at->second.second, end);
    }
    for (const auto &[path, range] : found) {
      bool known = std::any_of(modules_.begin(), modules_.end(),
                               [&](const auto &module) { return module->begin == range.first; });
      if (known)
        continue;
      auto module = std::make_unique<Module>();
      module->path = path;
      module->begin = range.first;
      module->end = range.second;
      try {
        module->program = std::make_unique<Program>(image::Executable(path));
      } catch (const base::Failure &) {
        continue; // a data file
      }
      uint64_t linked = module->program->executable().segments().front().address & ~0xfffULL;
      module->bias = range.first - linked;
      modules_.push_back(std::move(module));
    }
  }

  // What its graph and forms are, made when it is first asked for.
  Analyzed *analyzed(Module &module, const Routine &routine) {
    auto &made = module.routines[&routine];
    if (made)
      return made.get();
    made = std::make_unique<Analyzed>();
    made->graph = flow_graph(*module.program, routine, decoder_);
    if (made->graph.why_not != WhyNot::understood)
      return made.get();
    for (const Instruction &instruction : made->graph.code.instructions)
      made->listed.insert(instruction.address);
    made->ssa = single_assignment(made->graph);
    made->forms = std::make_unique<Forms>(made->graph, made->ssa);
    const Ssa &ssa = made->ssa;
    made->addresses.resize(ssa.uops.size());
    made->conditions.resize(ssa.uops.size());
    for (uint32_t node : ssa.dominators.order) {
      if (ssa.nodes[node].block == Node::kNoBlock)
        continue;
      uint32_t at = ssa.nodes[node].first_uop;
      for (const Instruction &instruction :
           made->graph.instructions_of(made->graph.blocks[ssa.nodes[node].block])) {
        for (const Access &access : made->graph.code.accesses_of(instruction)) {
          if (!access.has_address())
            continue;
          uint32_t place = at + access.uop - instruction.uop;
          made->addresses[place] =
              made->forms->address(node, place, made->graph.code.uops[access.uop]);
        }
        for (uint32_t i = 0; i < instruction.uops; i++)
          if (made->graph.code.uops[instruction.uop + i].op == ASSAY_UOP_branch)
            made->conditions[at + i] = made->forms->condition(node, at + i);
        at += instruction.uops;
      }
    }
    for (uint32_t loop = 0; loop < ssa.loops.all.size(); loop++)
      made->trips.push_back(trip_count(made->graph, ssa, *made->forms, loop));
    for (uint32_t value = 0; value < ssa.values.size(); value++)
      if (ssa.values[value].kind == ValueKind::call || ssa.values[value].kind == ValueKind::opaque)
        made->left[key(ssa.values[value].node, ssa.values[value].instruction)].push_back({value});
    return made.get();
  }
  void clear() { modules_.clear(); }

  static uint64_t key(uint32_t node, uint32_t instruction) {
    return uint64_t{node} << 32 | instruction;
  }

private:
  Decoder decoder_;
  std::vector<std::unique_ptr<Module>> modules_;
};

} // namespace oracle
