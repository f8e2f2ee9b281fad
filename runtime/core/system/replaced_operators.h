// Operators new and delete that a shared library of the program's replaces.
//
// Ours stand before those of all libraries. Behind them lie ordinarily the C++ library's, which
// only call malloc and free, as ours do; but where a library replaces some ([new.delete]), the
// program must get these.
#pragma once

#include <stddef.h>

namespace assay {

struct ReplacedOperators {
#define ASSAY_INTERPOSED(name)
#define ASSAY_INTERPOSED_DYNAMIC(name)
#define ASSAY_INTERPOSED_NEW(name, parameters, arguments) void *(*name)parameters;
#define ASSAY_INTERPOSED_DELETE(name, parameters, arguments) void(*name) parameters;
#include "abi/interposed.def"
};

// Null: not replaced.
extern constinit ReplacedOperators replaced_operators;
// Is any of them?
extern constinit bool operators_are_replaced;

// Those behind ours that throw, and call the handler of new. Null in a program without the C++
// library, and with --wrap.
struct ThrowingOperators {
  void *(*allocate)(size_t size);
  void *(*allocate_aligned)(size_t size, size_t align);
};
extern constinit ThrowingOperators throwing_operators;

// Where the runtime begins, and not by the first operator that is called: the loader takes its lock
// and keeps its last error, which a thread of the program's, or the program itself, may be waiting
// for then. So it knows the libraries that are there from the beginning, none of which can be
// closed. Last there: what is not found makes the loader allocate, and a malloc of the program's
// own may be instrumented.
void look_for_replaced_operators();

} // namespace assay
