// Names for what instructions point at: callees, variables, strings, lines of the source.
#pragma once

#include "analyze/explain.h"
#include "binary/flow_graph.h"
#include "image/executable.h"
#include "image/symbols.h"

#include <cstdint>
#include <string>

namespace analyze {

class ExplainNames {
public:
  // The executable must outlive it. Without `lines` nothing is read, and everything is without a name.
  ExplainNames(const image::Executable &executable, bool lines);

  // "counts", "counts+16" of the variable that covers the address; empty if there is none.
  std::string object_at(uint64_t address) const;
  // Says of an instruction where it goes, what it mentions and where its source is. `ends` is the block whose last
  // instruction it is, or nullptr.
  void name(const binary::FlowGraph &graph, const binary::Instruction &instruction,
            const binary::Block *ends, ExplainedLine &line);

private:
  std::string function_at(uint64_t address) const;
  std::string string_at(uint64_t address) const;
  std::string callee_of(const binary::FlowGraph &graph,
                        const binary::Instruction &instruction) const;
  std::string mentioned_by(const binary::FlowGraph &graph,
                           const binary::Instruction &instruction) const;

  const image::Executable &executable_;
  bool lines_;
  image::Data data_;
  image::Symbols symbols_;
};

} // namespace analyze
