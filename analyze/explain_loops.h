// What is said of loops, and of accesses in them.
#pragma once

#include "analyze/explain.h"
#include "binary/forms.h"

namespace analyze {

// The stride of an access whose loop is set, or why there is none.
void explain_course(const binary::FlowGraph &graph, const binary::Ssa &ssa,
                    const binary::Forms &forms, binary::ExprId form, ExplainedAccess &access);

// Instructions, accesses, exits, iterations and a sentence of each loop, and footprints of accesses; once all
// accesses are there. Without `texts`, only numbers.
void sum_up_loops(const binary::FlowGraph &graph, const binary::Ssa &ssa, binary::Forms &forms,
                  bool texts, ExplainedFunction &function);

} // namespace analyze
