// What is said of loops, and of accesses in them.
#pragma once

#include "analyze/explain.h"
#include "binary/forms.h"

#include <span>

namespace analyze {

// The stride of an access whose loop is set, or why there is none.
void explain_course(const binary::FlowGraph &graph, const binary::Ssa &ssa,
                    const binary::Forms &forms, binary::ExprId form, ExplainedAccess &access);

// Of each loop: instructions, accesses.
void count_in_loops(const binary::FlowGraph &graph, const binary::Ssa &ssa,
                    std::span<const AccessInLoops> accesses, ExplainedFunction &function);

// Of each loop exits, iterations and a sentence, and footprints of accesses; once all accesses are there and counted.
void say_of_loops(const binary::FlowGraph &graph, const binary::Ssa &ssa, binary::Forms &forms,
                  ExplainedFunction &function);

} // namespace analyze
