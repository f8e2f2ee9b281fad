// Which frame of a call stack owns an allocation: the line that a person would change.
#pragma once

#include "image/frame.h"

#include <cstddef>

namespace analyze {

// The index of the innermost frame that is not machinery of allocation:
//   - allocation functions (malloc family, operator new and delete), and frames of this profiler
//     and of assay/annotate.h
//   - the C and C++ standard libraries: code in their shared objects, and functions of std:: and
//     __gnu_cxx:: (containers, allocators, smart pointers), inlined or not
//   - thin wrappers by the names that the field gives them (xmalloc, mallocWithAlarm,
//   pcache1Alloc),
//     and members of allocator classes; the rule is at the head of ownership.cc
// Where all frames are machinery, or only main's callers remain, the outermost frame that has a
// name and is no allocation function; 0 for lack of any. `frames` innermost first, not empty.
size_t owner(const image::CallStack &frames);

// Whether the program's own wrapper makes the innermost call: then a scalar type that the compiler
// saw there is the wrapper's, not the object's.
bool through_wrapper(const image::CallStack &frames);

// Whether a function is machinery of allocation, by its names and module.
bool is_allocation_machinery(const image::Frame &frame);

} // namespace analyze
