// An alternate signal stack for the first thread, so that it can still end the profile when it has
// used up its own stack. The program does not see it: sigaltstack says that there is none, and its
// handlers go on running where they ran (fatal_signals.h).
#pragma once

namespace assay {

// For the thread that calls, and for children of its forks, until it sets one itself. Does nothing
// where there is one, or no memory.
void use_fault_stack();
bool has_fault_stack(); // some thread was given it

} // namespace assay
