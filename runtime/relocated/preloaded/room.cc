// Room for moved code is mapped below the original, or above with room for the heap that grows behind an executable.

#include "runtime/relocated/relocated.h"

#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay::relocated {
namespace {

constexpr uint64_t kReach = (2ULL << 30) - (64ULL << 20);
constexpr uint64_t kBreakRoom = 1ULL << 30;
constexpr uint64_t kStep = 2ULL << 20;
constexpr uint64_t kLowest = 1ULL << 20;

char *try_at(uint64_t address, uint64_t size) {
  const long at = sys::map((void *)address, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
  if (sys::failed(at))
    return nullptr;
  if ((uint64_t)at != address) { // a kernel that takes the address for a hint
    sys::unmap((void *)at, size);
    return nullptr;
  }
  return (char *)at;
}

char *map_near(uint64_t begin, uint64_t end, uint64_t size) {
  const uint64_t lowest = end > kReach + kLowest ? end - kReach : kLowest;
  for (uint64_t at = page_down(begin - size - kStep); begin > size + kStep && at >= lowest;
       at -= kStep) {
    if (char *found = try_at(at, size))
      return found;
    if (at < kStep)
      break;
  }
  const uint64_t rooms[] = {kBreakRoom, kStep};
  for (uint64_t room : rooms)
    for (uint64_t at = page_up(end) + room; at + size < begin + kReach; at += kStep)
      if (char *found = try_at(at, size))
        return found;
  return nullptr;
}

} // namespace

char *room_for_code(const AssayMovedHeader &moved, uint64_t bias) {
  char *room =
      map_near(bias + moved.image_begin, bias + moved.image_end, page_up(moved.code_bytes));
  if (!room && moved.image_end - moved.image_begin > kReach)
    say("a file takes more than 1.9 GiB of addresses, beyond which moved code does not reach, so "
        "it "
        "is not traced");
  else if (!room)
    say("there is no room for moved code near a file, so it is not traced; run it without `ulimit "
        "-v` and `setarch -L`");
  return room;
}

} // namespace assay::relocated
