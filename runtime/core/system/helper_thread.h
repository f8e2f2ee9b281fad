// The one helper thread: flushes, snapshots and requests happen there.
#pragma once

#include <stdint.h>

namespace assay {

// Starts it; `work` is called on the helper, first after so many microseconds, again after as many as it says (and
// when woken), until stop_helper_thread(). When all threads of the program have ended by the system call exit, so that
// only the helper keeps the process, `program_ended` is called there, and the helper ends, too. A failure is
// counted as loss no_sideline.
void start_helper_thread(uint64_t (*work)(), void (*program_ended)(), uint64_t first_wait_us);

// Asks for a snapshot by the helper, soon: in any context, also in a signal handler. `work` takes the
// wish, once.
void request_dump();
bool take_dump_request();
// Asks for one and waits for its end, but no longer than that: the helper may wait for a lock that
// this thread holds. In any context.
void dump_by_helper(uint64_t longest_ms);

// Afterwards it is not in `work`, and does not enter it any more. Does nothing on the helper itself.
void stop_helper_thread();
// Stops it, and waits until the thread is gone: a thread that ends by the system call exit then is
// the process's last one, if it was the program's.
void end_helper_thread();

// Instead: it does this and ends, and the calling thread waits. False if there is no helper.
bool end_on_helper_thread(void (*work)());

} // namespace assay
