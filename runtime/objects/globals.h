// Words of global variables. Nothing is kept for them but the shadow: whose they are is found
// afterwards, with the symbol table.
#pragma once

#include <stdint.h>

#include "runtime/core/ids.h"

namespace assay::objects {

void note_globals(); // those of every module that is instrumented are to be sampled
// Writes the words that were accessed, as of this walk.
void write_globals(uint64_t walk);
// The globals of a module that is gone: what they have is written, for good.
void end_globals(ModuleId module);
void clear_globals();

} // namespace assay::objects
