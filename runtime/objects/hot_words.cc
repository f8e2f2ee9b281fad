// A page of counters, 16 bits for each word, for each page of program that has a hot word: half the
// memory of what is hot. Pages are found by an array over all page numbers, in reserved address
// space, of which only what is used costs memory.
//
// Refused: scaling, where all counts of an object are halved when one is full. Words that were used
// seldom would look unused.

#include "runtime/objects/hot_words.h"

#include "abi/shadow.h"
#include "abi/word_encoding.h"
#include "runtime/core/system/arena.h"
#include "runtime/core/system/pages.h"

namespace assay::objects {
namespace {

constexpr uint64_t kPages = ASSAY_HIGH_END / kPage;
constexpr uint32_t kMaxHotPages = 1 << 17; // 512 MiB of program

struct HotPage {
  uint16_t units[kPage / ASSAY_WORD_BYTES];
};

struct {
  uint32_t *index; // by page of program: number of its counters, from 1; 0 for none
  GrowingArray<HotPage, kMaxHotPages> pages;
  GrowingArray<uint64_t, kMaxHotPages> addresses; // of the program's pages, by number
  uint32_t used;
} constinit hot = {};

uint16_t *units_of(uint64_t address) {
  uint32_t number = hot.index ? __atomic_load_n(&hot.index[address / kPage], __ATOMIC_ACQUIRE) : 0;
  return number ? &hot.pages[number].units[address % kPage / ASSAY_WORD_BYTES] : nullptr;
}

uint16_t *get_or_make(uint64_t address) {
  if (uint16_t *units = units_of(address))
    return units;
  const uint32_t number = hot.used + 1;
  if (number == kMaxHotPages)
    return nullptr;
  hot.addresses[number] = page_down(address);
  __atomic_store_n(&hot.used, number, __ATOMIC_RELEASE);
  __atomic_store_n(&hot.index[address / kPage], number, __ATOMIC_RELEASE);
  return units_of(address);
}

} // namespace

constinit SpinLock hot_lock;

bool create_hot_words() {
  hot.index = (uint32_t *)reserve(kPages * sizeof(uint32_t));
  return hot.index && hot.pages.create() && hot.addresses.create();
}

void reset_hot_words_in_child() {
  hot_lock.reset();
  empty_span(hot.index, kPages * sizeof(uint32_t));
  hot.pages.clear();
  hot.addresses.clear();
  hot.used = 0;
}

void for_each_hot_page(uint64_t begin, uint64_t end, void (*f)(void *context, uint64_t page),
                       void *context) {
  const uint32_t used = __atomic_load_n(&hot.used, __ATOMIC_ACQUIRE);
  if (!used || begin >= end)
    return;
  if ((end - begin) / kPage <= used) {
    for (uint64_t page = page_down(begin); page < end; page += kPage)
      if (is_hot_page(page))
        f(context, page);
    return;
  }
  for (uint32_t number = 1; number <= used; number++) // of a range of terabytes
    if (const uint64_t page = hot.addresses[number]; page + kPage > begin && page < end)
      f(context, page);
}

bool is_hot_page(uint64_t address) {
  return hot.used && units_of(address);
}

uint64_t hot_units(uint64_t address) {
  const uint16_t *units = units_of(address);
  return units ? *units : 0;
}

bool set_hot_units(uint64_t address, uint64_t value) {
  uint16_t *units = value ? get_or_make(address) : units_of(address);
  if (units)
    *units = (uint16_t)(value < UINT16_MAX ? value : UINT16_MAX);
  return units || !value;
}

bool add_hot_unit(uint64_t address) {
  uint16_t *units = get_or_make(address);
  if (!units || *units == UINT16_MAX)
    return false;
  ++*units;
  return true;
}

} // namespace assay::objects
