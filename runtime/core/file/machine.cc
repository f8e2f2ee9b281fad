// Caches from /sys, or from cpuid where a virtual machine's /sys has none; the cpu's name from
// cpuid: neither needs libc or a parser of /proc/cpuinfo.

#include "runtime/core/file/machine.h"

#include <cpuid.h>
#include <sys/utsname.h>

#include "runtime/core/system/pages.h"
#include "runtime/core/system/syscall.h"

namespace assay {
namespace {

size_t read_file(const char *path, char *out, size_t size) {
  long fd = sys::open(path, O_RDONLY);
  if (fd < 0)
    return 0;
  long n = sys::read(fd, out, size - 1);
  sys::close(fd);
  out[n > 0 ? n : 0] = 0;
  return n > 0 ? (size_t)n : 0;
}

// "48K", "2048K", "64"
uint64_t read_size(const char *text) {
  uint64_t n = 0;
  for (; *text >= '0' && *text <= '9'; text++)
    n = n * 10 + (uint64_t)(*text - '0');
  return *text == 'K' ? n << 10 : *text == 'M' ? n << 20 : n;
}

uint64_t cache_value(int index, const char *file, char *text, size_t size) {
  Text path;
  path.add("/sys/devices/system/cpu/cpu0/cache/index")
      .add_number((uint64_t)index)
      .add('/')
      .add(file);
  text[0] = 0;
  return read_file(path.c_str(), text, size) ? read_size(text) : 0;
}

void note_cache(AssayMachine &m, uint64_t level, uint64_t bytes) {
  if (level == 1)
    m.l1d_bytes = bytes;
  else if (level == 2)
    m.l2_bytes = bytes;
  else if (level == 3)
    m.l3_bytes = bytes;
}

bool ask_sys(AssayMachine &m) {
  for (int i = 0; i < 8; i++) {
    char text[64];
    uint64_t size = cache_value(i, "size", text, sizeof text);
    if (!size)
      return i > 0;
    uint64_t level = cache_value(i, "level", text, sizeof text);
    cache_value(i, "type", text, sizeof text);
    if (text[0] != 'I')
      note_cache(m, level, size);
  }
  return true;
}

// Deterministic cache parameters: the manuals of Intel (leaf 4) and AMD (leaf 0x8000001D) define the same fields.
bool ask_cpuid(AssayMachine &m, unsigned leaf) {
  constexpr unsigned kInstructions = 2;
  for (unsigned i = 0; i < 8; i++) {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(leaf, i, &a, &b, &c, &d) || (a & 31) == 0)
      return i > 0;
    const uint64_t ways = (b >> 22) + 1, partitions = (b >> 12 & 0x3ff) + 1, line = (b & 0xfff) + 1,
                   sets = uint64_t(c) + 1;
    if ((a & 31) != kInstructions)
      note_cache(m, a >> 5 & 7, ways * partitions * line * sets);
  }
  return true;
}

// AMD's leaves before those, which hypervisors leave where they hide the others.
void ask_older_cpuid(AssayMachine &m) {
  unsigned a, b, c, d;
  if (__get_cpuid(0x80000005, &a, &b, &c, &d))
    m.l1d_bytes = uint64_t(c >> 24) << 10;
  if (__get_cpuid(0x80000006, &a, &b, &c, &d)) {
    m.l2_bytes = uint64_t(c >> 16) << 10;
    m.l3_bytes = uint64_t(d >> 18) << 19;
  }
}

uint32_t online_cpus() {
  uint64_t mask[128] = {};
  long bytes = sys::call(SYS_sched_getaffinity, 0, sizeof mask, (long)mask);
  uint32_t count = 0;
  for (long i = 0; i < bytes / 8; i++)
    count += (uint32_t)__builtin_popcountll(mask[i]);
  return count;
}

void add_cpu_name(Text &out) {
  unsigned words[12], *w = words;
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; leaf++, w += 4)
    if (!__get_cpuid(leaf, &w[0], &w[1], &w[2], &w[3]))
      return;
  constexpr size_t kBytes = sizeof words;
  const char *name = (const char *)words;
  size_t n = 0;
  while (n < kBytes && name[n])
    n++;
  while (n && name[n - 1] == ' ')
    n--;
  out.add(name, n);
}

} // namespace

namespace {

// Asked once: children of forks run on the same machine, and a virtual one takes long to answer.
struct {
  bool known;
  AssayMachine machine;
  Text names;
} constinit found = {};

void ask() {
  AssayMachine &m = found.machine;
  m.cpus = online_cpus();
  m.page_bytes = kPage;
  m.line_bytes = 64;
  if (!ask_sys(m) && !ask_cpuid(m, 4) && !ask_cpuid(m, 0x8000001d))
    ask_older_cpuid(m);
  utsname names;
  sys::call(SYS_uname, (long)&names);
  Text cpu;
  add_cpu_name(cpu);
  found.names.add(cpu.c_str(), cpu.size())
      .add('\0')
      .add(names.release)
      .add('\0')
      .add(names.nodename)
      .add('\0');
  found.known = true;
}

} // namespace

void write_machine(ProfileFile &file) {
  if (!found.known)
    ask();
  file.append(ASSAY_RECORD_Machine, found.machine, found.names.c_str(), found.names.size());
}

} // namespace assay
