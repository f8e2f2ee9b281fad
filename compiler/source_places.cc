// An inlined instruction has a chain of places: its own, that of the call of the function that it was in, and so on,
// up to the function of the program that it lies in now.

#include "compiler/source_places.h"

#include "compiler/library_members.h"
#include "llvm/IR/Instruction.h"

using namespace llvm;

namespace assay::compiler {
namespace {

const DISubprogram *function_of(const DILocation &location) {
  return location.getScope()->getSubprogram();
}

// What the C++ library does for a function of the program is done where that calls it.
const DILocation *out_of_library(const DILocation *location) {
  while (location->getInlinedAt() && is_of_library(function_of(*location)))
    location = location->getInlinedAt();
  return location;
}

// The call in a's chain, or a itself, that lies in a function that b belongs to, too.
const DILocation *in_common(const DILocation *a, const DILocation *b) {
  for (const DILocation *outer = a; outer; outer = outer->getInlinedAt())
    for (const DILocation *other = b; other; other = other->getInlinedAt())
      if (function_of(*outer) == function_of(*other) &&
          outer->getInlinedAt() == other->getInlinedAt())
        return outer;
  return a;
}

} // namespace

void CommonPlace::add(const Instruction &access) {
  const DILocation *location = access.getDebugLoc().get();
  if (!location || !location->getLine())
    return;
  location = out_of_library(location);
  location_ = location_ ? in_common(location_, location) : location;
}

SourcePlace CommonPlace::in(const Function &function) const {
  if (!location_)
    return {function.getName(), 0};
  const DISubprogram *written = function_of(*location_);
  const StringRef name = written->getLinkageName();
  return {!location_->getInlinedAt() ? function.getName()
          : name.empty()             ? written->getName()
                                     : name,
          location_->getLine()};
}

} // namespace assay::compiler
