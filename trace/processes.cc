#include "trace/processes.h"

#include "abi/proc_text.h"
#include "abi/trace_ring.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/uio.h>

namespace trace {

uint32_t pid_namespace() {
  std::error_code failed;
  return assay_namespace_in(std::filesystem::read_symlink("/proc/self/ns/pid", failed).c_str());
}

uint32_t own_filters() {
  std::ifstream file("/proc/self/status");
  const std::string status{std::istreambuf_iterator<char>(file), {}};
  return assay_filters_in(status.c_str());
}

// The first page is nobody's.
bool is_without_memory(uint32_t thread) {
  char byte = 0;
  iovec here = {&byte, sizeof byte}, there = {nullptr, sizeof byte};
  return process_vm_readv(static_cast<pid_t>(thread), &here, 1, &there, 1, 0) < 0 && errno == ESRCH;
}

bool has_ended(uint32_t asker) {
  return !(asker & ASSAY_REQUEST_far) && is_without_memory(asker);
}

std::optional<uint64_t> read_word(uint32_t process, uint64_t address) {
  uint64_t word = 0;
  iovec here = {&word, sizeof word}, there = {reinterpret_cast<void *>(address), sizeof word};
  return process_vm_readv(static_cast<pid_t>(process), &here, 1, &there, 1, 0) == sizeof word
             ? std::optional(word)
             : std::nullopt;
}

} // namespace trace
