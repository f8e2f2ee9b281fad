// The address space of the shadows (abi/shadow.h): those of several tools overlap where no program
// address has its shadow, so each asks here for its span and gets what is not there yet.
//
// Half a gigabyte below 2 GiB stays the program's own, for MAP_32BIT. There lies the shadow of addresses just above
// 2 GiB only, where programs have memory when they ask for these addresses: it is mapped then.
#pragma once

#include <stdint.h>

namespace assay {

// Maps the shadow of all addresses below ASSAY_HIGH_END: (address >> shift) + base. False if the kernel refuses a part,
// or something else lies there.
bool reserve_shadow(unsigned shift, uint64_t base);

// Back to zeros, in the child of a fork. What the program has mapped between the spans stays.
void empty_shadow(unsigned shift, uint64_t base);

// Maps what is not mapped of a span that lies among the shadows. False if the kernel refuses, or
// something else lies there.
bool reserve_span(uint64_t begin, uint64_t end);

// Maps what lies around an address that no program has, for code that counts before a tool has its shadow. False if the
// address may be a program's, or the kernel refuses. While there is one thread.
bool map_before_start(uint64_t address);

// Notes a span that was mapped for another purpose, and that the program may not map over.
void note_own_span(uint64_t begin, uint64_t end);
// The same of one that it may map over, but for own spans in it.
void note_spare_span(uint64_t begin, uint64_t end);

// The program is about to map over whatever lies in [begin, end). False if that would be a shadow that is in use:
// then it may not. A shadow of addresses that nobody has makes room.
bool give_way(uint64_t begin, uint64_t end);

// The same of a program that maps there only if nothing is there (MAP_FIXED_NOREPLACE): what makes room is unmapped.
bool make_room(uint64_t begin, uint64_t end);

// The program has got memory at [begin, end). False if code may not access it, because its shadow has no room.
bool cover_mapping(uint64_t begin, uint64_t end);

} // namespace assay
