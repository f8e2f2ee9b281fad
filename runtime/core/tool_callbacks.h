// What happens to the program, told to every tool: core/ interposes once, tools subscribe, and no
// tool interposes a libc function itself. A new tool adds its line to abi/tools.def and a
// Subscriber in its own folder.
#pragma once

#include <stddef.h>

#include "abi/records.h"
#include "runtime/core/ids.h"
#include "runtime/core/objects/chunk.h"
#include "runtime/core/system/clock.h"

namespace assay {

// A block has been handed out; its header is complete, its bytes are not yet the program's.
struct Allocation {
  void *block;
  const ChunkHeader &header;
};

// A block is about to be given back; its bytes are still there.
struct Free {
  void *block;
  const ChunkHeader &header;
  ContextId context; // where it was freed; kNoContext if that is not recorded
  bool temporary;    // freed before the same thread's next allocation
};

// A block was resized. Its header holds the new size; old_block is gone if moved.
struct Realloc {
  void *block;
  const ChunkHeader &header;
  void *old_block;
  uint64_t old_size;
  bool moved;
  bool was_watched; // in the chunk map
};

// A mapping has lost its middle: what lies behind is an object of its own now, of the same context, with what was
// counted in its bytes.
struct Split {
  void *block;
  const ChunkHeader &header; // of what lies before
  void *rest;
  const ChunkHeader &rest_header;
  uint64_t old_size;
};

// A block has become the memory of a pool, and is no object any more.
struct PoolMemory {
  void *block;
  const ChunkHeader &header;
};

// What the compiler knew of a module that has come: its section `assay_sites` (abi/sites.h).
struct ModuleSites {
  ModuleId module; // kNoModule if it has no number
  const void *sites;
  uint64_t size;
};

enum class FlushKind {
  kFlush, // periodic: append what changed, walk the live objects if the budget allows
  kFull,  // everything, live objects included
};

struct Compactor; // core/file/compaction.h

// How a tool was compiled into the units of a program, as far as it has a shadow: its mode (abi/sites.h), of which all
// units must agree on the bits of the layout.
struct UnitMode {
  uint32_t mode = 0;
  bool is_known = false;
  bool has_fixed_base = false; // some code expects the shadow at its fixed base

  // Takes over the mode of one more unit. False if its layout is another than that of those before.
  bool take(uint32_t more, uint32_t layout, uint32_t dynamic_bit) {
    bool agrees = !is_known || ((mode ^ more) & layout) == 0;
    mode |= is_known ? more & ~layout : more;
    has_fixed_base |= !(more & dynamic_bit);
    is_known = true;
    return agrees;
  }
};

// A tool of abi/tools.def. What it leaves out does nothing.
struct Subscriber {
  const char *name;
  // A unit of the program was compiled for it, in this mode; before start() for those of the program itself. False if
  // the unit's shadow is laid out otherwise than that of those before.
  bool (*on_unit)(uint32_t mode) = [](uint32_t) { return true; };
  // Before its first event. False: the tool is off (the reason was said), its events are not
  // delivered.
  bool (*start)();
  // A new file has its first records.
  void (*on_begin)() = [] {};
  // Whether it wants to hear of allocations, and of the ends of objects too.
  bool (*wants_allocations)() = [] { return false; };
  bool (*wants_objects)() = [] { return false; };
  void (*on_allocation)(const Allocation &) = [](const Allocation &) {};
  void (*on_realloc)(const Realloc &) = [](const Realloc &) {};
  void (*on_split)(const Split &) = [](const Split &) {};
  void (*on_free)(const Free &) = [](const Free &) {};
  void (*on_pool_memory)(const PoolMemory &) = [](const PoolMemory &) {};
  void (*on_flush)(FlushKind) = [](FlushKind) {};
  void (*on_reset)() = [] {};
  void (*on_mark)(const char *name) = [](const char *) {};
  // On the helper thread: something may be due. Returns the microseconds until it wants to be asked
  // again.
  uint64_t (*on_poll)() = []() -> uint64_t { return ~0ULL; };
  // The first instrumented module came into a program that was not rebuilt.
  void (*on_instrumented)() = [] {};
  // A thread has begun; on that thread, before it runs anything of the program's.
  void (*on_thread_start)() = [] {};
  // The units of one more instrumented module were read, and the file is open.
  void (*on_module)(const ModuleSites &) = [](const ModuleSites &) {};
  // The last destructor of such a module runs: its memory may be gone at any time from now on. Any
  // thread; not under the lock of flush().
  void (*on_module_end)(const ModuleSites &) = [](const ModuleSites &) {};
  // A module was unloaded.
  void (*on_unload)(ModuleId module) = [](ModuleId) {};
  // The program ends: the last events are past, and the file is still open.
  void (*on_end)() = [] {};
  // In the child of a fork, before anything else runs there.
  void (*on_fork)() = [] {};
  // The program dies of a fault. One sentence if the tool can be the cause, else null.
  const char *(*why_fault)() = []() -> const char * { return nullptr; };
  const Compactor *compactor = nullptr; // of its records
};

// Starts those of a set of tools (bits of abi/tools.def) that do not run yet. Returns the set of those
// that run.
uint64_t start_tools(uint64_t tools);
// The running tools, from 0 on; null behind the last one.
const Subscriber *running_tool(size_t number);
// Tells the tool with that bit the mode of a unit, whether it runs or not.
bool take_unit(uint32_t bit, uint32_t mode);

void publish_begin();
void publish_allocation(const Allocation &event);
// Not of inherited objects (core/objects/objects.h), whose contexts the child of a fork does not know.
void publish_realloc(const Realloc &event);
void publish_split(const Split &event);
void publish_free(const Free &event);
void publish_pool_memory(const PoolMemory &event);
void publish_flush(FlushKind kind);
void publish_reset();
void publish_mark(const char *name);
uint64_t publish_poll(); // the least of the answers
void publish_end();
void publish_instrumented();
void publish_thread_start();
void publish_module(const ModuleSites &event);
void publish_module_end(const ModuleSites &event);
void publish_unload(ModuleId module);
void publish_fork();

} // namespace assay
