// Signals that would end the program without a dump: caught, the profile is finished, and the
// program dies of the same signal with the same core. The program sees its own dispositions, never
// ours.
#pragma once

namespace assay {

// Takes over every signal whose default is to end the program and whose disposition is the default.
void catch_fatal_signals();

// The program has set an alternate stack: its handlers that asked for one run there from now on.
void let_handlers_use_signal_stacks();

} // namespace assay
