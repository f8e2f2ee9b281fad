// A stack of our own for long work on the program's threads: a signal handler may run on an alternate stack of a
// few kilobytes, and end the program there.
#pragma once

namespace assay {

// Reserves the stack; without it the work runs where it is called.
void create_own_stack();

// Calls work(argument) on that stack, with all signals blocked but those of faults. One thread at a time; a
// call from work itself runs where it is. Inside a ReentrancyGuard section.
void run_on_own_stack(void (*work)(void *argument), void *argument);

template <typename F> void on_own_stack(F f) {
  run_on_own_stack([](void *given) { (*(F *)given)(); }, &f);
}

void reset_own_stack_in_child();

} // namespace assay
