// Members of the program's records whose types are the C++ library's: `std::atomic<long> hits`,
// `std::unique_ptr<T> next`, `std::vector<T> list`. The code that accesses them is the library's;
// it gets the address of the member, and does not say what that lies in.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Module.h"

namespace assay::compiler {

// Puts the code of the library in the place of its calls with addresses of such members, at every
// level of optimisation: then its accesses are to members of the program's records.
// leads_to_member: whether an address is computed from that of a record of the program's, by naming
// a member. Before anything is optimised.
void open_library_calls(llvm::Module &module,
                        llvm::function_ref<bool(const llvm::Value &)> leads_to_member);

// Whether the C++ library declares what has this scope.
bool is_of_library(const llvm::DIScope *scope);

} // namespace assay::compiler
