// The beginning, before all other constructors (-z initfirst): no code of the program has run, none
// of its threads exists, and the only frames on the stack are the loader's, which is never moved.

#include "runtime/relocated/relocated.h"

#include <pthread.h>

namespace assay::relocated {

void find_real_functions();
void find_beginning_functions();
void find_sandbox_functions();
void take_over_profiler();

namespace {

[[gnu::constructor]] void begin(int, char **, char **environment) {
  find_sandbox_functions();
  if (!open_ring(environment))
    return;
  find_real_functions();
  find_beginning_functions();
  begin_streams();
  take_over_profiler();
  pthread_atfork(before_fork, after_fork, in_child);
  move_modules();
  follow_loader();
}

} // namespace
} // namespace assay::relocated
