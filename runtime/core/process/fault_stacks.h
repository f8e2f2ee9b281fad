// An alternate signal stack for each thread that has none, so that a thread which has used up its own stack can still end the
// profile. The program does not see it: to sigaltstack there is none, and its handlers go on running where they ran.
#pragma once

namespace assay {

// From now on for threads that call give_fault_stack(), each for itself, until the program sets one itself, for any thread: from then
// on its handlers may ask for one. Does nothing where there is no memory.
void use_fault_stacks();
void give_fault_stack();
bool has_program_signal_stack();

} // namespace assay
