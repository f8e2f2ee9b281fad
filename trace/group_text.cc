// Groups that are logged by themselves, as C: all values are there, then all accesses follow.
//
// A loop logs its counter at the beginning and all values at the end. So the number of iterations is a
// division, and each value is set back by that many steps before the loop runs. A repeated string
// instruction has its number of repetitions as a value, less a second value where it may have ended
// early.
//
// ROOM asks for room in the output once for several accesses: in each iteration of a loop, and elsewhere
// after every kAccessesAtOnce.

#include "trace/skeleton_expressions.h"
#include "trace/skeleton_text.h"

#include <fmt/format.h>

namespace trace {
namespace {

// An access of a group: of the values v0, v1, …
std::string group_access(const GroupAccess &access, const std::string &more = "") {
  std::string address;
  auto add = [&](const std::string &term) { address += address.empty() ? term : " + " + term; };
  for (uint8_t t = 0; t < access.terms; t++)
    add(access.term[t].shift
            ? fmt::format("v{} * {}", access.term[t].value, 1u << access.term[t].shift)
            : fmt::format("v{}", access.term[t].value));
  if (access.in_image)
    add("bias");
  if (access.thread_local_)
    add("fs");
  if (address.empty())
    address = fmt::format("{:#x}u", static_cast<uint64_t>(access.offset));
  else if (access.offset)
    address += " + " + constant(access.offset);
  return fmt::format("OUT({:#x}, '{}', {}, {}{});\n", access.pc, access.write ? 'W' : 'R',
                     access.size, address, more);
}

} // namespace

std::string group_text(const Group &group, const std::string &name) {
  std::string text = fmt::format("void {}(struct stream *s, int start) {{\n  BEGIN;\n", name);
  text += "  (void)start, (void)full, (void)end;\n";
  for (size_t v = 0; v < group.values.size(); v++)
    text += fmt::format("  {}uint64_t v{} = VALUE({});\n", group.loop ? "" : "const ", v, v);
  if (group.loop) {
    const LoopOfGroup &loop = *group.loop;
    const int64_t step = loop.steps[loop.counter];
    text += fmt::format(
        "  const uint64_t iterations = {};\n",
        step < 0 ? fmt::format("(v0 - v{}) / {}", loop.counter, 0 - static_cast<uint64_t>(step))
                 : fmt::format("(v{} - v0) / {}", loop.counter, step));
    for (size_t v = 1; v < group.values.size(); v++)
      if (loop.steps[v])
        text +=
            fmt::format("  v{} -= iterations * {}u;\n", v, static_cast<uint64_t>(loop.steps[v]));
    text += "  for (uint64_t i = 0; i < iterations; i++) {\n    ROOM;\n";
    for (const GroupAccess &access : group.accesses)
      text += "    " + group_access(access);
    for (size_t v = 1; v < group.values.size(); v++)
      if (loop.steps[v])
        text += fmt::format("    v{} += {}u;\n", v, static_cast<uint64_t>(loop.steps[v]));
    text += "  }\n";
  } else if (!group.accesses.empty() && group.accesses.front().times != GroupAccess::kOnce) {
    const GroupAccess &first = group.accesses.front();
    text += fmt::format("  const uint64_t times = v{}{};\n", first.times,
                        first.left == GroupAccess::kOnce ? "" : fmt::format(" - v{}", first.left));
    text += "  for (uint64_t i = 0; i < times; i++) {\n    ROOM;\n";
    for (const GroupAccess &access : group.accesses)
      text += "    " + group_access(access, fmt::format(" + i * {}", access.size));
    text += "  }\n";
  } else {
    size_t since_room = 0;
    for (const GroupAccess &access : group.accesses) {
      if (since_room++ > kAccessesAtOnce) {
        text += "  ROOM;\n";
        since_room = 0;
      }
      text += "  " + group_access(access);
    }
  }
  return text + fmt::format("  TAKEN({});\n}}\n", group.values.size());
}

} // namespace trace
