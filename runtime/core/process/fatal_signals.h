// Signals that would end the program without a dump: caught, the profile is finished, and the
// program dies of the same signal with the same core. The program sees its own dispositions, never
// ours.
#pragma once

namespace assay {

// Takes over every signal whose default is to end the program and whose disposition is the default.
void catch_fatal_signals();

// If a shadow is lazy (lazy_shadow.h): the handler of SIGSEGV is and stays one of ours, in front of
// whatever the program sets, and maps what is touched. The program cannot block the signal any
// more.
void map_shadow_in_handler();

// The signal may be blocked for this thread by a mask that it got from its maker: a parent, pthread_attr_setsigmask_np.
void unblock_faults();

// While there is no alternate stack but ours, handlers of the program's that ask for one run on the
// thread's, as they would without us: the kernel is not told what they ask for. When the program
// sets one, it is told of all.
bool hides_fault_stack();
void let_handlers_use_signal_stacks();

} // namespace assay
