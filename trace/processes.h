// What the kernel says of the processes and threads that are recorded, and of the tool's own.
#pragma once

#include <cstdint>
#include <optional>

namespace trace {

// The number of the namespace that our process id is of; 0: it is not known.
uint32_t pid_namespace();
// How many filters of system calls (seccomp) the tool runs under.
uint32_t own_filters();

// Has the thread ended, also where its parent has not waited for it? Its id is of our namespace.
bool is_without_memory(uint32_t thread);
// The same of who asks for moved code (AssayTraceRequest::asker). Of another namespace it is not known: false.
bool has_ended(uint32_t asker);

// Eight bytes of the memory of a process; nothing if they cannot be read.
std::optional<uint64_t> read_word(uint32_t process, uint64_t address);

} // namespace trace
