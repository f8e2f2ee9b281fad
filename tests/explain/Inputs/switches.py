#!/usr/bin/env python3
"""switches.py JUMP_TABLES GROUP [SEED]: C programs of switches and computed gotos, compiled by gcc and clang in many ways.
Which tables there are, where, how long and with which targets is read from the compiler's assembly, whose labels are
kept through the linker; JUMP_TABLES (tests/oracle/jump_tables.cc) must find the same. GROUP is `checked` (the index is
compared with a constant on the way, or masked) or `hard` (the compiler knows the range of the index without, or checks
it elsewhere; the way to the check is long; parts are moved away in files without symbols). Prints a line for each build; exit 1 if any differs. Works in the current folder."""
import bisect
import collections
import json
import random
import re
import subprocess
import sys

HEAD = """\
#include <stdint.h>
volatile int g[4096];
int h(int);
__attribute__((cold, noreturn, noinline)) void fail(int x) { g[0] = x; for (;;) g[1]++; }
__attribute__((noinline)) int h(int x) { g[2] = x; return x * 3; }
"""


class Source:
    """Functions of one switch or so each. No two cases do the same, and none of them only yields a value, or the
    compiler would make a table of values of it."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.functions = []
        self.number = 0

    def body(self, what="x"):
        self.number += 1
        n = self.number
        return self.random.choice([
            f"g[{n}] += (int){what}; break;", f"r = r * {n} + g[{n}]; break;", f"r ^= h({n}); break;",
            f"for (int i = 0; i < {n % 7 + 2}; i++) g[i + {n}] = r; break;", f"g[{n}] = r; return {n};",
            f"if (g[{n}]) {{ r += {n}; break; }} return r - {n};",
        ])

    def cases(self, values, what="x"):
        lines, values = [], list(values)
        self.random.shuffle(values)
        for value in values:
            fall = "" if self.random.randrange(6) else "g[3]++; /* falls through */"
            lines.append(f"    case {value}{'ll' if abs(value) > 2**31 - 1 else ''}: {fall or self.body(what)}")
        return "\n".join(lines) + f"\n    {self.body(what) if fall else ''}"

    def default(self, kind="some"):
        if kind == "unreachable":
            return "    default: __builtin_unreachable();"
        return "    " + self.random.choice([f"default: {self.body()}", "", "default: return -1;", "default: fail(r);"])

    def add(self, name, type, text):
        self.functions.append((name, f"__attribute__((noinline)) int {name}({type} x, int r) {{\n{text}\n  return r;\n}}\n"))

    def switch(self, values, index="x", default="some"):
        return f"  switch ({index}) {{\n{self.cases(values)}\n{self.default(default)}\n  }}"

    def make_checked(self):
        r = self.random
        for type, low, high in [("int", -(1 << 30), 1 << 30), ("unsigned", 0, 1 << 30), ("long", -(1 << 40), 1 << 40),
                                ("unsigned long", 0, 1 << 40), ("short", -3000, 3000), ("unsigned short", 0, 6000),
                                ("signed char", -100, 60), ("unsigned char", 0, 200)]:
            short = type.replace(" ", "_")
            self.add(f"dense_{short}", type, self.switch(range(0, r.randrange(6, 24))))
            start = r.randrange(low, high)
            self.add(f"offset_{short}", type, self.switch(range(start, start + r.randrange(6, 24))))
            start = r.randrange(low, high)
            self.add(f"sparse_{short}", type, self.switch(r.sample(range(start, start + 40), 25)))
        self.add("big", "int", self.switch(range(7, 307)))
        self.add("masked", "unsigned", self.switch(range(8), "x & 7"))
        self.add("computed", "int", self.switch(range(12), "h(x) - 100"))
        self.add("memory", "long", self.switch(range(9), "g[x]"))
        self.add("checked_before", "unsigned", "  if (x > 11) return h(r);\n" + self.switch(range(12)))
        self.add("one_then_other", "int", "  if (r & 1) {\n" + self.switch(range(3, 13)) + "\n  } else {\n"
                 + self.switch(range(0, 9)) + "\n  }")
        inner = self.switch(range(2, 11), "r & 15")
        self.add("nested", "int", f"  switch (x) {{\n{self.cases(range(5, 12))}\n    case 4: {{ {inner} }} break;\n  }}")
        self.fails()
        names = ", ".join(f"E{i}" for i in range(14))
        self.functions.append(("enumerated", f"enum e {{ {names} }};\n__attribute__((noinline)) int enumerated(enum e x, int r) {{\n"
                               + self.switch(range(14)) + "\n  return r;\n}\n"))
        self.goto("goto_bounded", 6, "*x++", "if (*x > 5) return r; ")
        self.goto("goto_masked", 4, "*x++ & 3", "")
        self.goto("goto_free", 6, "*x++", "")

    def goto(self, name, count, index, bound):
        table = ", ".join(f"&&l{i}" for i in range(count))
        body = "\n".join(f"l{i}: g[{i + 50}] += r; r = r * {i + 3} + 1; {bound}goto *labels[{index}];" for i in range(count - 1))
        self.functions.append((name, f"__attribute__((noinline)) int {name}(const unsigned char *x, int r) {{\n"
                               f"  static const void *const labels[] = {{{table}}};\n  {bound}goto *labels[{index}];\n{body}\n"
                               f"l{count - 1}: return r;\n}}\n"))

    def fails(self):
        self.add("fails", "int", f"  switch (x) {{\n{self.cases(range(0, 8))}\n    case 8: fail(1);\n    case 9: fail(r);\n"
                 "    default: fail(3);\n  }")

    def make_hard(self):
        self.fails()
        self.add("in_loop", "int", "  for (int k = 0; k < x; k++)\n"
                 + self.switch(range(1, 30), "g[k]").replace("break;", "continue;"))
        self.add("whole_char", "unsigned char", self.switch(range(256)))
        self.add("unreachable_default", "unsigned", self.switch(range(9), default="unreachable"))
        self.add("difference", "long", self.switch(range(8), "x - r", default="unreachable"))
        self.add("holes", "unsigned", self.switch([0, 1, 3, 4, 6, 7, 9, 10, 12], default="unreachable"))
        self.add("holes_difference", "long", self.switch([1, 2, 4, 5, 7, 8, 10], "x - r", default="unreachable"))
        self.add("before_a_table_of_values", "long", "  int i = 0;\n  if (r & 1)\n"
                 + self.switch(range(7), "x - r", default="unreachable").replace("r = r *", "i = r *") + "\n  r += g[i & 15];")
        self.add("peeled", "long", "  do\n" + self.switch(range(9), "x - g[8]", default="unreachable").replace("break;", "continue;")
                 + "\n  while (--x > r);")
        self.add("kept_base", "long", "  for (long i = 0; i < x; i++) {\n    r += h(i);\n" + self.switch(range(8), "g[i] & 7") + "\n  }")
        self.add("nested_holes", "long", f"  switch (x - r) {{\n{self.cases([0, 1, 2, 5, 6, 7])}\n    case 4: {{\n"
                 + self.switch([0, 2, 3, 5, 6, 8], "g[5]", default="unreachable") + "\n  } break;\n    default: __builtin_unreachable();\n  }")
        self.add("remainder", "unsigned", self.switch(range(10), "x % 10"))
        self.add("masked_offset", "long", self.switch(range(16), "(x >> 3) & 15"))
        self.add("same_check", "int", self.switch(range(10)) + "\n  r += g[9];\n" + self.switch(range(10)))
        self.add("machine", "const unsigned char *", "  for (;;)\n"
                 + self.switch(range(0, 30), "*x++").replace("break;", "continue;").replace("(int)x", "(int)(intptr_t)x"))

    def text(self):
        calls = "\n".join(f"  r += {name}({'(void *)' if name in ('machine',) or name.startswith('goto') else ''}"
                          f"{'(intptr_t)' if name in ('machine',) or name.startswith('goto') else ''}g[{i}], r);"
                          for i, (name, _) in enumerate(self.functions))
        return HEAD + "".join(text for _, text in self.functions) + f"int main(void) {{\n  int r = g[4];\n{calls}\n  return r;\n}}\n"


def tables_of(assembly):
    """By label: the labels of the entries, of tables of labels that are in code."""
    code, in_code, section, label, tables = set(), [], None, None, collections.OrderedDict()
    for line in assembly.splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        if line.startswith((".section", ".text", ".data", ".bss", ".pushsection")):
            section = line.split()[1].split(",")[0] if " " in line or "\t" in line else line.split()[0]
            label = None
        elif named := re.fullmatch(r'"?([\w.$]+)"?:', line):
            label = named[1]
            if section and section.startswith(".text"):
                code.add(label)
        elif entry := re.match(r"\.(long|quad)\s+(\.L\w+)(-(\.L\w+))?$", line):
            if label and not (section or "").startswith((".text", ".debug", ".eh_frame", ".gcc_except")):
                tables.setdefault(label, []).append(entry[2])
        elif not line.startswith((".p2align", ".align", ".balign", ".type", ".size", ".set")):
            label = None if not (section or "").startswith(".text") else label
    return {name: entries for name, entries in tables.items() if set(entries) <= code}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check(oracle, group, functions, compiler, flags):
    name = re.sub(r"\W+", "_", "_".join([compiler, *flags]))
    shared = "-shared" in flags
    extra = ["-fno-addrsig"] if "clang" in compiler else []
    run(compiler, *(f for f in flags if f != "-shared"), *extra, "-w", "-S", "switches.c", "-o", name + ".s")
    link = ["-shared"] if shared else ["-no-pie"] if "-fno-pie" in flags else ["-pie"]
    run("gcc", "-Wa,-L", name + ".s", *link, "-o", name)
    symbols, places = {}, []
    for line in run("nm", name).splitlines():
        if known := re.fullmatch(r"([0-9a-f]+) \w (.+)", line):
            symbols[known[2]] = int(known[1], 16)
            if not known[2].startswith(".L"):
                places.append((int(known[1], 16), known[2]))
    places.sort()
    with open(name + ".s") as file:
        emitted = {symbols[label]: (label, [symbols[entry] for entry in entries])
                   for label, entries in tables_of(file.read()).items()}
    # clang fills entries that no index leads to with the place of a block that is not there, a function's end.
    ends = {int(begin, 16) + int(size, 16) for begin, size in re.findall(r"^(\w+) (\w+) [tT] ", run("nm", "-S", name), re.M)}
    stripped = name + ".stripped"
    run("strip", "-o", stripped, name)
    problems = []

    def is_cold(address):
        at = bisect.bisect_right(places, (address, "\x7f"))
        return at > 0 and places[at - 1][1].endswith(".cold")

    for path in [name, stripped] if group == "hard" or "-fno-pie" not in flags else [name]:
        found = json.loads(run(oracle, path))["routines"]
        if path == name:
            ours = [r for r in found if r["name"] in functions]
            if not len(ours) == len(functions):
                problems.append(f"{len(functions)} functions, {len(ours)} found")
            starts = {symbols[f] for f in functions}
        else:
            ours = [r for r in found if r["address"] in starts]
            if len(ours) != len(functions):
                problems.append(f"stripped: {len(functions)} functions, {len(ours)} found")
        tables = collections.defaultdict(list)
        for routine in ours:
            if routine["why_not"] != "understood":
                problems.append(f"{path} {routine['name']}: {routine['why_not']} at {routine['where']:#x}")
            for table in routine["tables"]:
                tables[table["address"]].append((routine["name"], table))
        for address, all in tables.items():
            if address not in emitted:
                problems.append(f"{path} {all[0][0]}: a table of {all[0][1]['entries']} entries at {address:#x} that is none")
        reached = {to for r in ours for jump in r["jumps"] for to in jump["to"]}
        for address, (label, entries) in emitted.items():
            is_goto = "labels" in label
            wanted = sorted(set(entries) - ends)
            # Where nothing bounds the index, more may be read than is there.
            loose = is_goto or group == "hard"
            for routine, table in tables.get(address, []):
                same = table["entries"] == len(entries) and table["targets"] in (wanted, sorted(set(entries)))
                more = table["entries"] >= len(entries) and set(table["targets"]) >= set(wanted)
                if not same and not (loose and not table["bounded"] and more):
                    problems.append(f"{path} {routine}: {label} at {address:#x} has {len(entries)} entries, found {table['entries']}"
                                    f"{'' if table['bounded'] else ' (not bounded)'}; targets"
                                    f" {'agree' if table['targets'] == wanted else 'differ'}")
            if address not in tables and not is_goto:
                problems.append(f"{path}: {label} at {address:#x} with {len(entries)} entries is not found")
            # What was moved to .cold and does not jump back is a function of its own.
            if missing := {e for e in wanted if not is_cold(e)} - reached:
                problems.append(f"{path}: {label}: {len(missing)} of its targets are not reached")
    if not emitted:
        problems.append("the compiler made no table")
    print(f"{name}: {len(emitted)} tables, {sum(len(e) for _, e in emitted.values())} entries, {len(problems)} differ")
    for problem in problems[:20]:
        print("  " + problem)
    return not problems


def main():
    oracle, group, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1
    source = Source(seed)
    source.make_checked() if group == "checked" else source.make_hard()
    with open("switches.c", "w") as file:
        file.write(source.text())
    functions = [name for name, _ in source.functions]
    good = True
    builds = [[level, pie] for level in ["-O0", "-O1", "-O2", "-O3"] for pie in ["-fPIE", "-fno-pie"]]
    builds += [["-O0", "-fPIE", "-fcf-protection=full"], ["-O2", "-fPIE", "-fcf-protection=full"],
               ["-O2", "-fno-pie", "-fcf-protection=full"], ["-O2", "-fPIC", "-shared"], ["-Os", "-fPIE"]]
    for compiler in ["gcc", "clang-22"]:
        for flags in builds if group == "checked" else [b for b in builds if b[0] == "-O2"]:
            good &= check(oracle, group, functions, compiler, flags)
    sys.exit(not good)


if __name__ == "__main__":
    main()
