#!/usr/bin/env python3
"""touched_lines.py FOLDER [--programs N] [--seed S]: generated loops touch exactly the lines that they must.

The naive instrumentation is no oracle for what an access reaches: both ask the same function. So here the program
itself knows. Each generated program has ten loops over arrays of structs (members of 1 to 16 bytes, bit-fields, _BitInt; any
stride and any offset from a line). Each loop has a twin in a function that is not instrumented, which does
not access the members but writes down where they are: the language says which bytes an iteration reads or writes.
The program is built at some level of optimisation, for some vector width, and Assay's answers must agree:

  - working set: the lines of the profile, within each array, are those of the twin;
  - heap: `touched_bytes` of each array is the sum over the twin's blocks.

Why the optimiser cannot spoil that:

  - Nothing is dead. What is read goes, all its bits, into a sum that is stored to a volatile; what is written is
    published by an empty asm with a memory clobber, which also hides the contents before the loop.
  - Nothing is known. Arrays come from functions that are not inlined, and their place in a line is computed.
  - It may touch bytes that the language does not name: padding where structs are copied, neighbours of a bit-field,
    the unused bytes of a _BitInt, what lies between members that are loaded together, which are at most 64 bytes apart.
    So the twin knows two kinds: `must` and `may`. Only where a line has nothing but the second kind are both answers right; between
    members that is possible for lines of 32 bytes alone.

Processors without AVX-512 skip that width, and say so.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import workingset_lines

LOOPS = 10
PAD = 128  # bytes before and behind each array, so that its lines are nobody else's

PRELUDE = r"""
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define ORACLE __attribute__((noinline, disable_sanitizer_instrumentation)) static
enum { PIECE = 32, MOST = 1 << 13, OBJECTS = 64 };
static struct object {
  char *start;
  size_t bytes;
  unsigned char must[MOST], may[MOST]; // by piece from the start's
} objects[OBJECTS];
ORACLE void mark(unsigned char *pieces, const struct object *o, const void *at, size_t bytes) {
  size_t base = (size_t)o->start / PIECE;
  for (size_t piece = (size_t)at / PIECE; bytes && piece <= ((size_t)at + bytes - 1) / PIECE; piece++)
    pieces[piece - base] = 1;
}
ORACLE void must(int k, const void *at, size_t bytes) { mark(objects[k].must, &objects[k], at, bytes), mark(objects[k].may, &objects[k], at, bytes); }
ORACLE void may(int k, const void *at, size_t bytes) { mark(objects[k].may, &objects[k], at, bytes); }
// A bit-field: the bytes that have bits of it must be touched, those around them may be.
ORACLE void field(int k, const void *at, size_t bytes, const unsigned char *ones) {
  size_t first = bytes, last = 0;
  for (size_t i = 0; i < bytes; i++)
    if (ones[i])
      first = first < i ? first : i, last = i;
  must(k, (const char *)at + first, last - first + 1);
  size_t from = first < 8 ? 0 : first - 8, to = last + 9 < bytes ? last + 9 : bytes;
  may(k, (const char *)at + from, to - from);
}
ORACLE void *place(int k, char *start, size_t bytes, size_t shift) {
  objects[k].start = start, objects[k].bytes = bytes;
  if (bytes > PIECE * (MOST - 2))
    abort();
  memset(start, 0x11, bytes);
  return (char *)(((size_t)start + 64 + 63) / 64 * 64) + shift;
}
ORACLE void print(int k) {
  printf("%d %zu %zu ", k, (size_t)objects[k].start, objects[k].bytes);
  size_t pieces = ((size_t)objects[k].start + objects[k].bytes - 1) / PIECE - (size_t)objects[k].start / PIECE + 1;
  for (size_t i = 0; i < pieces; i++)
    putchar('0' + objects[k].must[i] + objects[k].may[i]);
  putchar('\n');
}
static volatile unsigned long sink;
static volatile double real_sink;
static int where[4096];
static unsigned char chosen[4096];
#define HIDE(p) __asm__ volatile("" : "+r"(p) : : "memory")
"""


class Member:
    """One member of a struct, how C reads and writes it, and which of its bytes that reaches."""

    def __init__(self, rng, name):
        self.name = name
        kind = rng.choice(["scalar"] * 6 + ["bytes", "field", "bitint", "real"])
        self.kind, self.count = kind, 0
        if kind == "scalar":
            self.type = rng.choice(["unsigned char", "short", "int", "long", "int", "long", "__int128"])
            self.text = f"{self.type} {name};"
        elif kind == "real":
            self.type = rng.choice(["float", "double"])
            self.text = f"{self.type} {name};"
        elif kind == "bytes":
            self.count = rng.randint(1, 16)
            self.text = f"unsigned char {name}[{self.count}];"
        elif kind == "field":
            self.type = "unsigned"
            self.text = f"unsigned {name} : {rng.randint(1, 32)};"
        else:
            self.bits = rng.randint(2, 128)
            self.type = f"unsigned _BitInt({self.bits})"
            self.text = f"{self.type} {name};"

    def is_integer(self):
        return self.kind in ("scalar", "field") and self.type != "__int128"

    def read(self, element):
        place = f"{element}.{self.name}"
        if self.kind == "bytes":
            return f"for (int b = 0; b < {self.count}; b++) sum += {place}[b];"
        if self.kind == "real":
            return f"real += {place};"
        if (self.kind == "scalar" and self.type == "__int128") or (self.kind == "bitint" and self.bits > 64):
            return f"{{ __auto_type v = {place}; sum += (unsigned long)v ^ (unsigned long)(v >> 64); }}"
        return f"sum += (unsigned long){place};"

    def write(self, element, value):
        place = f"{element}.{self.name}"
        if self.kind == "bytes":
            return f"for (int b = 0; b < {self.count}; b++) {place}[b] = (unsigned char)({value} + b);"
        return f"{place} = ({self.type})({value});"

    def update(self, element):
        place = f"{element}.{self.name}"
        if self.kind == "bytes":
            return f"for (int b = 0; b < {self.count}; b++) {place}[b]++;"
        return f"{place} += 1;"

    def touch(self, k, struct, element):
        place = f"{element}.{self.name}"
        if self.kind == "field":
            return (f"{{ static union {{ struct {struct} s; unsigned char bytes[sizeof(struct {struct})]; }} ones; "
                    f"ones.s.{self.name} = ~0u; field({k}, &{element}, sizeof(struct {struct}), ones.bytes); }}")
        if self.kind == "bitint":
            return f"must({k}, &{place}, {(self.bits + 7) // 8}), may({k}, &{place}, sizeof {place});"
        return f"must({k}, &{place}, sizeof {place});"


def some(rng, members):
    return rng.sample(members, rng.randint(1, len(members)))


def loop(rng, number):
    """One loop as C: types and functions, and what main does. It uses the objects 2 * number and the one after."""
    k, other, s = 2 * number, 2 * number + 1, f"s{number}"
    members = [Member(rng, f"m{i}") for i in range(rng.randint(1, 9))]
    packed = rng.random() < 0.1
    kinds = ["read", "read", "write", "write", "update", "copy", "exit", "masked_read", "masked_write", "gather", "scatter",
             "byval", "sret", "memory", "reverse"]
    kind = rng.choice(kinds)
    key = next((m for m in members if m.is_integer()), None)
    if kind == "exit" and not key:
        kind = "read"
    n, stride, chosen = rng.randint(20, 400), rng.choice([1, 1, 1, 1, 2, 3, 5]), some(rng, members)
    body, twin, before, extra = [], [], "", ""
    head = f"for (long i = 0; i < n; i += {stride})"
    between = f"if (i + {stride} < n && sizeof p[i] * {stride} <= 64) may({k}, &p[i], sizeof p[i] * {stride});"
    touch_whole = [m.touch(k, s, "p[i]") for m in members] + [f"may({k}, &p[i], sizeof p[i]);"]
    if kind in ("read", "reverse"):
        body, twin = [m.read("p[i]") for m in chosen], [m.touch(k, s, "p[i]") for m in chosen]
        if kind == "reverse":
            head = f"for (long i = n - 1; i >= 0; i -= {stride})"
    elif kind == "write":
        body, twin = [m.write("p[i]", "i * 3") for m in chosen], [m.touch(k, s, "p[i]") for m in chosen]
    elif kind == "update":
        body, twin = [m.update("p[i]") for m in chosen], [m.touch(k, s, "p[i]") for m in chosen]
    elif kind == "exit":
        end = rng.randint(1, n - 1) // stride * stride
        before = f"p[{end}].{key.name} = 0;"
        body = [f"if (p[i].{key.name} == 0) break;", "sum += (unsigned long)i;"] + [m.read("p[i]") for m in chosen if m is not key]
        twin = ([key.touch(k, s, "p[i]"), f"if (i == {end}) break;"] + [m.touch(k, s, "p[i]") for m in chosen])
    elif kind in ("masked_read", "masked_write"):
        act = [m.read("p[i]") if kind == "masked_read" else m.write("p[i]", "i") for m in chosen]
        body, twin = ["if (chosen[i]) {", *act, "}"], ["if (chosen[i]) {", *[m.touch(k, s, "p[i]") for m in chosen], "}"]
    elif kind in ("gather", "scatter"):
        body = [m.read("p[where[i] % n]") if kind == "gather" else m.write("p[where[i] % n]", "i") for m in chosen]
        twin = [m.touch(k, s, "p[where[i] % n]") for m in chosen]
    elif kind == "copy":
        body = ["q[i] = p[i];"]
        twin = touch_whole + [m.touch(other, s, "q[i]") for m in members] + [f"may({other}, &q[i], sizeof q[i]);"]
    elif kind == "memory":
        body = [rng.choice(["memcpy", "memmove"]) + "(&q[i], &p[i], sizeof p[i] * (size_t)where[0]);"]
        twin = [f"must({k}, &p[i], sizeof p[i]), must({other}, &q[i], sizeof p[i]);"]
        before = "where[0] = 1;"
    elif kind == "byval":
        reads = " ".join(m.read("it") for m in members)
        extra = (f"__attribute__((noinline)) static unsigned long take{number}(struct {s} it) "
                 f"{{ unsigned long sum = 0; double real = 0; {reads} return sum + (unsigned long)real; }}\n"
                 f"static unsigned long (*volatile taker{number})(struct {s}) = take{number};\n")
        body, twin = [f"sum += taker{number}(p[i]);"], touch_whole
    elif kind == "sret":
        writes = " ".join(m.write("it", "i") for m in members)
        extra = (f"__attribute__((noinline)) static struct {s} give{number}(long i) {{ struct {s} it; {writes} return it; }}\n"
                 f"static struct {s} (*volatile giver{number})(long) = give{number};\n")
        body, twin = [f"p[i] = giver{number}(i);"], touch_whole
    if kind in ("read", "reverse", "update", "copy", "byval"):
        twin.append(between)
    lines = "\n    ".join
    two = any(f"{other}," in line for line in twin)
    attribute = " __attribute__((packed))" if packed else ""
    text = f"""
struct{attribute} {s} {{ {" ".join(m.text for m in members)} }};
{extra}__attribute__((noinline)) static char *make_{k}(void) {{ return malloc({n} * sizeof(struct {s}) + {2 * PAD}); }}
__attribute__((noinline)) static char *make_{other}(void) {{ return malloc({n} * sizeof(struct {s}) + {2 * PAD}); }}
// {kind}
__attribute__((noinline)) static void loop_{number}(struct {s} *p, struct {s} *q, long n) {{
  unsigned long sum = 0;
  double real = 0;
  {head} {{
    {lines(body)}
  }}
  sink = sum, real_sink = real, (void)q;
}}
ORACLE void twin_{number}(struct {s} *p, struct {s} *q, long n) {{
  (void)q;
  {head} {{
    {lines(twin)}
  }}
}}
ORACLE void prepare_{number}(struct {s} *p) {{ (void)p; {before} }}
"""
    shift, other_shift = rng.randint(0, 63), rng.randint(0, 63)
    align = f"_Alignof(struct {s})"
    place = lambda object, by: f"place({object}, make_{object}(), {n} * sizeof(struct {s}) + {2 * PAD}, {by} / {align} * {align})"
    main = f"""  {{
    struct {s} *p = {place(k, shift)}, *q = {place(other, other_shift) if two else "p"};
    prepare_{number}(p);
    HIDE(p);
    HIDE(q);
    loop_{number}(p, q, {n});
    HIDE(p);
    HIDE(q);
    twin_{number}(p, q, {n});
    print({k});
    {f"print({other});" if two else ""}
  }}
"""
    return text, main


def program(rng):
    texts, mains = zip(*(loop(rng, number) for number in range(LOOPS)))
    seed = rng.randrange(1 << 30)
    start = f"""ORACLE void start(void) {{
  unsigned x = {seed}u;
  for (int i = 0; i < 4096; i++)
    x = x * 1664525u + 1013904223u, where[i] = (int)(x >> 16), chosen[i] = (x >> 8 & 3) == 0;
}}
"""
    return PRELUDE + "".join(texts) + start + "int main(void) {\n  start();\n" + "".join(mains) + "  return 0;\n}\n"


def run(command, **options):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Truth:
    """What one object's twin says, for lines of some size: absolute numbers."""

    def __init__(self, row, line_bytes):
        number, start, size, pieces = row.split()
        self.number, self.start, self.size = int(number), int(start), int(size)
        first = self.start // 32
        fold = lambda least: {(first + i) * 32 // line_bytes for i, c in enumerate(pieces) if int(c) >= least}
        self.must, self.may, self.line_bytes = fold(2), fold(1), line_bytes

    def bytes_of(self, lines):
        return sum(max(0, min(self.start + self.size, (line + 1) * self.line_bytes) - max(self.start, line * self.line_bytes)) for line in lines)


def wrong(where, truth, what):
    sys.exit(f"{where}, object {truth.number} ({truth.size} bytes at {truth.start:#x}): {what}")


def check_heap(where, truths, folder):
    report = json.loads(run(["assay", "heap", folder / "out", "--json"]))
    found = {}
    for context in report["contexts"]:
        for frame in context["stack"]:
            if name := re.fullmatch(r"make_(\d+)", frame["function"]):
                found[int(name[1])] = context["touched_bytes"]
    for truth in truths:
        least, most, got = truth.bytes_of(truth.must), truth.bytes_of(truth.may), found.get(truth.number)
        if got is None or not least <= got <= most:
            wrong(where, truth, f"touched_bytes is {got}, not {least}" + (f" to {most}" if most != least else ""))


def check_workingset(where, truths, folder):
    [profile] = (folder / "out").glob("*/*.assay")
    lines = workingset_lines.first_snapshot(workingset_lines.dumped(profile))
    for truth in truths:
        own = range(truth.start // truth.line_bytes + 1, (truth.start + truth.size) // truth.line_bytes)
        got = {line for line in lines if line in own}
        if missing := truth.must - got:
            wrong(where, truth, f"{len(missing)} of {len(truth.must)} lines are missing, the first at {min(missing) * truth.line_bytes - truth.start:#x}")
        if more := got - truth.may:
            wrong(where, truth, f"{len(more)} lines were not touched, the first at {min(more) * truth.line_bytes - truth.start:#x}")


WAYS = [(["-fassay=heap"], 64, check_heap), (["-fassay=heap", "-fassay-heap=fine"], 32, check_heap),
        (["-fassay=workingset"], 64, check_workingset), (["-fassay=workingset", "-fassay-workingset=half"], 32, check_workingset),
        (["-fassay=heap", "-fassay-naive"], 64, check_heap), (["-fassay=workingset", "-fassay-naive"], 64, check_workingset),
        (["-fassay=heap", "-fassay-shadow=dynamic"], 64, check_heap),
        (["-fassay=workingset", "-fassay-workingset=bit"], 64, check_workingset)]


def widths():
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)[1].split()
    all_widths = [("x86-64", []), ("x86-64-v2", ["sse4_2", "ssse3", "popcnt"]), ("x86-64-v3", ["avx2", "bmi2", "fma", "movbe"]),
                  ("x86-64-v4", ["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])]
    have = [name for name, needs in all_widths if set(needs) <= set(flags)]
    for name, needs in all_widths:
        if name not in have:
            print(f"skipped: {name}, this processor has no {', '.join(sorted(set(needs) - set(flags)))}")
    return have


def main():
    arguments = argparse.ArgumentParser(usage=__doc__.splitlines()[0], description=__doc__.split("\n\n", 1)[1])
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--programs", type=int, default=4)
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    machine, builds, lines = widths(), 0, 0
    for number in range(given.programs):
        rng = random.Random(f"{given.seed} {number}")
        folder = (given.folder / str(number)).resolve()
        folder.mkdir(parents=True)
        (folder / "loops.c").write_text(program(rng))
        levels = [f"{level} -march={width}" for level in ("-O2", "-O3") for width in machine] + ["-O0", "-O1", "-Os"]
        wide = f"-O3 -march={machine[-1]} -mprefer-vector-width=512"
        for level in [*rng.sample(levels, 2), wide]:
            fast = ["-ffast-math"] if rng.random() < 0.5 else []
            for tool, line_bytes, check in [*WAYS[:3], *rng.sample(WAYS[3:], 1)]:
                flags = [*level.split(), *fast, *tool]
                run(["assay-cc", "-w", *flags, "loops.c", "-o", "loops"], cwd=folder)
                shutil.rmtree(folder / "out", ignore_errors=True)
                rows = run(["./loops"], cwd=folder, env={**os.environ, "ASSAY_OPTIONS": "dir=out:time=marks"})
                truths = [Truth(row, line_bytes) for row in rows.splitlines()]
                check(f"{folder}/loops.c, {' '.join(flags)}", truths, folder)
                builds, lines = builds + 1, lines + sum(len(t.must) for t in truths)
    print(f"{given.programs * LOOPS} loops, {builds} builds: {lines} lines, all as they must be")


if __name__ == "__main__":
    main()
