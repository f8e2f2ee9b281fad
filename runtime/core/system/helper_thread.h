// The one helper thread: flushes, snapshots and requests happen there.
#pragma once

#include <stdint.h>

namespace assay {

// Starts it; `work` is called on the helper, at once and again after as many microseconds as it says (and
// when woken), until stop_helper_thread(). When all threads of the program have ended by the system call exit, so that
// only the helper keeps the process, `program_ended` is called there, and the helper ends, too. A failure is
// counted as loss no_sideline.
void start_helper_thread(uint64_t (*work)(), void (*program_ended)());

// Asks for a snapshot by the helper, soon: in any context, also in a signal handler. `work` takes the
// wish, once.
void request_dump();
bool take_dump_request();

// Asks it to end and waits until it has left `work`. Does nothing on the helper itself.
void stop_helper_thread();

} // namespace assay
