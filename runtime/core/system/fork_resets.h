// What the child of a fork must put right: a lock that another thread of the parent held, and state that belongs to the
// parent alone. Whoever has one registers a function where the lock is, and the child calls all of them, in no order,
// before anything else of the runtime runs there. Tools do it in Subscriber::on_fork.
#pragma once

namespace assay {

using ForkReset = void (*)();

// The linker gathers the registered functions in one section. No constructor: the runtime starts before those run.
#define ASSAY_RESET_IN_CHILD(function)                                                             \
  __attribute__((used, retain,                                                                     \
                 section("assay_fork_resets"))) constexpr ForkReset registered_##function =        \
      function

} // namespace assay
