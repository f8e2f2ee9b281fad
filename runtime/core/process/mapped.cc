// A program may unmap any part of what it mapped, or map anew over it. So mappings are a list of
// ranges, and each change is first an unmapping of what lies there: an object that loses an end
// shrinks, one that loses its middle becomes two of one context, one that loses everything ends.
//
// A plain list under a lock: mmap costs a system call anyhow, and programs that map thousands of
// regions are rare. The C library maps for itself without coming through here.

#include "runtime/core/process/mapped.h"

#include <errno.h>
#include <stdarg.h>

#include "abi/shadow.h"
#include "runtime/core/objects/allocate.h"
#include "runtime/core/objects/objects.h"
#include "runtime/core/objects/origins.h"
#include "runtime/core/process/interpose.h"
#include "runtime/core/runtime.h"
#include "runtime/core/shadow/shadow_map.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/fork_resets.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/pages.h"
#include "runtime/core/system/proc_maps.h"
#include "runtime/core/system/thread.h"

namespace assay {
namespace {

struct Mapped {
  uint64_t start; // 0: the slot is free
  ChunkHeader header;
  uint64_t end() const { return start + header.size; }
};

constexpr size_t kMax = 1 << 18;

struct {
  SpinLock lock;
  GrowingArray<Mapped, kMax> list;
  size_t used; // slots below
} constinit state = {};

Mapped *free_slot() {
  for (size_t i = 0; i < state.used; i++)
    if (!state.list[i].start)
      return &state.list[i];
  return state.used < kMax ? &state.list[state.used++] : nullptr;
}

void add(uint64_t start, ChunkHeader header) {
  header.check = chunk_check((void *)start, header);
  if (Mapped *slot = free_slot())
    *slot = {start, header};
  else
    count_loss(ASSAY_LOSS_no_memory, 1);
}

// The object now has another extent; moved: its contents went along.
void change(Mapped &m, uint64_t start, uint64_t size, bool moved = false) {
  uint64_t old_start = m.start, old_size = m.header.size;
  m.start = start;
  m.header.size = size;
  m.header.check = chunk_check((void *)start, m.header);
  publish_realloc({(void *)start, m.header, (void *)old_start, old_size, moved, false});
}

// The object loses what lies from `start` to `end`, in its middle.
void split(Mapped &m, uint64_t start, uint64_t end) {
  const uint64_t old_size = m.header.size;
  ChunkHeader rest = m.header;
  rest.size = m.end() - end;
  m.header.size = start - m.start;
  m.header.check = chunk_check((void *)m.start, m.header);
  publish_split({(void *)m.start, m.header, (void *)end, rest, old_size});
  add(end, rest);
}

// What happens to objects in [start, end) when it is no longer theirs.
void end_range(uint64_t start, uint64_t end, const void *frame) {
  for (size_t i = 0, used = state.used; i < used; i++) {
    Mapped &m = state.list[i];
    if (!m.start || end <= m.start || m.end() <= start)
      continue;
    if (start <= m.start && m.end() <= end) {
      end_object((void *)m.start, m.header, frame);
      m.start = 0;
    } else if (start <= m.start) {
      change(m, end, m.end() - end);
    } else if (m.end() <= end) {
      change(m, m.start, start - m.start);
    } else {
      split(m, start, end);
    }
  }
}

// A tool that asks for allocations, and not for objects, wants to know of mappings, too: there they are no
// objects that a report would count.
bool mappings_observed() {
  bool wanted = runtime.options.mmap || (runtime.wants_allocations && !runtime.wants_objects);
  return wanted && may_record();
}

uint64_t pages(uint64_t size) {
  return page_up(size);
}

void note_map(uint64_t start, uint64_t size, bool anonymous, const void *frame) {
  ReentrancyGuard busy;
  ContextId context =
      anonymous ? context_of(frame, kNoType, origin_number(ASSAY_ORIGIN_MMAP, "mmap")) : kNoContext;
  Locked locked(state.lock);
  if (!state.list.exists() && !state.list.create()) {
    count_loss(ASSAY_LOSS_no_memory, 1);
    return;
  }
  end_range(start, start + pages(size), frame);
  if (!anonymous)
    return;
  ChunkHeader header = new_header(pages(size), context);
  header.flags = kMapped;
  publish_allocation({(void *)start, header});
  add(start, header);
}

void note_unmap(uint64_t start, uint64_t size, const void *frame) {
  ReentrancyGuard busy;
  Locked locked(state.lock);
  end_range(start, start + pages(size), frame);
}

// A whole object moves or changes size; of others, only what is left behind is known.
void note_remap(uint64_t from, uint64_t old_size, uint64_t to, uint64_t size, const void *frame) {
  ReentrancyGuard busy;
  Locked locked(state.lock);
  Mapped *whole = nullptr;
  for (size_t i = 0; i < state.used && !whole; i++)
    if (state.list[i].start == from && state.list[i].header.size == pages(old_size))
      whole = &state.list[i];
  if (!whole) {
    if (from != to)
      end_range(from, from + pages(old_size), frame);
    return;
  }
  if (from != to) {
    Mapped moving = *whole;
    whole->start = 0; // or it would lose what the target covers
    end_range(to, to + pages(size), frame);
    *whole = moving;
  }
  change(*whole, to, pages(size), from != to);
}

} // namespace

void for_each_mapped(void (*f)(const void *block, const ChunkHeader &header)) {
  Locked locked(state.lock);
  for (size_t i = 0; i < state.used; i++)
    if (state.list[i].start)
      f((void *)state.list[i].start, state.list[i].header);
}

static void reset_mapped_in_child() {
  state.lock.reset();
}
ASSAY_RESET_IN_CHILD(reset_mapped_in_child);

} // namespace assay

using namespace assay;

namespace {

// Is a mapping at a fixed address refused because it would lie over a shadow? Native programs get it; here the
// program's bytes would be counters.
bool may_map_at(const void *at, size_t size, bool fixed) {
  if (!fixed || this_thread.busy)
    return true;
  ReentrancyGuard busy;
  if (give_way((uint64_t)at, (uint64_t)at + pages(size)))
    return true;
  count_loss(ASSAY_LOSS_fixed_mapping, 1);
  errno = ENOMEM;
  return false;
}

// Something is there: may it be only what is ours, and makes room?
bool may_take(const void *at, size_t size) {
  if (this_thread.busy)
    return false;
  ReentrancyGuard busy;
  const uint64_t begin = (uint64_t)at, end = begin + pages(size);
  if (!is_reserved(begin, end))
    return false;
  if (make_room(begin, end))
    return true;
  count_loss(ASSAY_LOSS_fixed_mapping, 1);
  return false;
}

bool has_shadow(uint64_t start, size_t size) {
  if (assay_in_program_window(start, start + size) || this_thread.busy)
    return true;
  ReentrancyGuard busy;
  if (cover_mapping(start, start + pages(size)))
    return true;
  count_loss(ASSAY_LOSS_fixed_mapping, 1);
  return false;
}

void *map(void *at, size_t size, int protection, int flags, int fd, off_t offset,
          const void *frame) {
  constexpr int kNoReplace = 0x100000; // MAP_FIXED_NOREPLACE
  const bool fixed = flags & MAP_FIXED && !(flags & kNoReplace);
  if (!may_map_at(at, size, fixed))
    return MAP_FAILED;
  long got = sys::call(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset);
  if (got == -EEXIST && flags & kNoReplace && may_take(at, size))
    got = sys::call(SYS_mmap, (long)at, (long)size, protection, flags, fd, offset);
  if (sys::failed(got)) {
    errno = (int)-got;
    return MAP_FAILED;
  }
  if (!has_shadow((uint64_t)got, size)) {
    sys::unmap((void *)got, size);
    if (!fixed && !(flags & kNoReplace)) // the address was a hint: somewhere else, then
      return map(nullptr, size, protection, flags, fd, offset, frame);
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (mappings_observed())
    note_map((uint64_t)got, size, flags & MAP_ANONYMOUS, frame);
  return (void *)got;
}

} // namespace

ASSAY_EXPORT void *ASSAY_NAME(mmap)(void *at, size_t size, int protection, int flags, int fd,
                                    off_t offset) {
  return map(at, size, protection, flags, fd, offset, ASSAY_FRAME);
}

ASSAY_EXPORT void *ASSAY_NAME(mmap64)(void *at, size_t size, int protection, int flags, int fd,
                                      off_t offset) {
  return map(at, size, protection, flags, fd, offset, ASSAY_FRAME);
}

ASSAY_EXPORT int ASSAY_NAME(munmap)(void *at, size_t size) {
  if (mappings_observed() &&
      (uint64_t)at % kPage == 0) // before another thread can get the same place
    note_unmap((uint64_t)at, size, ASSAY_FRAME);
  long result = sys::unmap(at, size);
  if (sys::failed(result)) {
    errno = (int)-result;
    return -1;
  }
  return 0;
}

ASSAY_EXPORT void *ASSAY_NAME(mremap)(void *at, size_t old_size, size_t size, int flags, ...) {
  void *wanted = nullptr;
  if (flags & MREMAP_FIXED) {
    va_list arguments;
    va_start(arguments, flags);
    wanted = va_arg(arguments, void *);
    va_end(arguments);
  }
  if (!may_map_at(wanted, size, flags & MREMAP_FIXED))
    return MAP_FAILED;
  long got = sys::call(SYS_mremap, (long)at, (long)old_size, (long)size, flags, (long)wanted);
  if (sys::failed(got)) {
    errno = (int)-got;
    return MAP_FAILED;
  }
  if (mappings_observed())
    note_remap((uint64_t)at, old_size, (uint64_t)got, size, ASSAY_FRAME);
  return (void *)got;
}

// To lock and fill all pages would fill our terabytes of address space, too: these are locked as they are touched, and
// the program's own mappings are filled one by one.
ASSAY_EXPORT int ASSAY_NAME(mlockall)(int flags) {
  constexpr int kNoMemory = -12;
  long result = sys::call(SYS_mlockall, flags | MCL_ONFAULT);
  // Without the right to lock everything, our address space counts against the limit: what is the program's may
  // still fit.
  bool counts_too_much = result == kNoMemory;
  if (sys::failed(result) && !counts_too_much) {
    errno = (int)-result;
    return -1;
  }
  if (!(flags & MCL_CURRENT) || (flags & MCL_ONFAULT && !counts_too_much))
    return 0;
  ReentrancyGuard busy;
  MapsReader maps;
  for (MapsLine line; maps.next(line);)
    if (!is_reserved(line.start, line.end))
      sys::call(SYS_mlock, (long)line.start, (long)(line.end - line.start));
  return 0;
}
