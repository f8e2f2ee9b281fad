// The file is opened for each piece that is written, at the end: a program that closes descriptors
// which it did not open does no harm, and the children of a fork write lines of their own. Lines are
// never torn within a piece.

#include "runtime/heap/text.h"

#include "runtime/core/runtime.h"
#include "runtime/core/system/losses.h"
#include "runtime/core/system/own_files.h"
#include "runtime/core/system/thread.h"

namespace assay::heap {
namespace {

struct {
  SpinLock lock;
  uint32_t modules, contexts; // printed so far
  size_t used;
  char buffer[32 << 10];
} constinit text = {};

bool wanted() {
  return !runtime.options.text.empty();
}

// Under the lock.
void write_out() {
  if (!text.used)
    return;
  Text path;
  expand_pattern(runtime.options.text, "program", path);
  bool to_stderr = path.size() == 6 && equal(path.c_str(), "stderr", 6);
  bool borrowed = to_stderr && this_thread.has_own_table;
  long fd = borrowed    ? borrow_from_program(2)
            : to_stderr ? 2
                        : sys::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0666);
  bool good = !sys::failed(fd);
  for (size_t done = 0; good && done < text.used;) {
    long n = sys::write(fd, text.buffer + done, text.used - done);
    good = n > 0;
    done += good ? (size_t)n : 0;
  }
  if (!good)
    count_loss(ASSAY_LOSS_text_failed, 1);
  if ((!to_stderr || borrowed) && !sys::failed(fd))
    sys::close(fd);
  text.used = 0;
}

void add_line(const Text &line) {
  if (text.used + line.size() + 1 > sizeof text.buffer)
    write_out();
  __builtin_memcpy(text.buffer + text.used, line.c_str(), line.size());
  text.used += line.size();
  text.buffer[text.used++] = '\n';
}

void add_hex(Text &line, uint64_t value) {
  line.add("0x");
  for (int shift = 60; shift >= 0; shift -= 4)
    if (value >> shift || shift == 0)
      line.add("0123456789abcdef"[value >> shift & 15]);
}

void print_map() {
  for (uint32_t end = runtime.modules.count(); text.modules < end;) {
    const Module &m = runtime.modules.get(ModuleId{++text.modules});
    Text line;
    line.add("module ").add_number(text.modules).add(' ');
    add_hex(line, m.start);
    line.add('-');
    add_hex(line, m.end);
    line.add(' ').add(m.path);
    add_line(line);
  }
}

} // namespace

void print_hib(const HibEntry &entry, bool live) {
  if (!wanted())
    return;
  Text line;
  line.add(live ? "live" : "hib").add(" context=").add_number((uint32_t)entry.context);
#define ASSAY_HIB(type, name, merge, unit) line.add(" " #name "=").add_number(entry.hib.name);
#include "abi/hib.def"
  Locked locked(text.lock);
  print_map();
  add_line(line);
}

void print_contexts() {
  if (!wanted())
    return;
  Locked locked(text.lock);
  print_map();
  for (uint32_t end = runtime.depot.end(); text.contexts + 1 < end; text.contexts++) {
    const Context *c = runtime.depot.get(ContextId{text.contexts + 1});
    if (!c) // another thread is adding it: next time
      break;
    Text line;
    line.add("context ").add_number(text.contexts + 1);
    for (uint32_t i = 0; i < c->depth; i++) {
      line.add(' ');
      add_hex(line, c->pcs[i]);
    }
    add_line(line);
  }
  write_out();
}

void reset_text_in_child() {
  text.lock.reset();
  text.used = 0;
  text.modules = text.contexts = 0;
}

} // namespace assay::heap
