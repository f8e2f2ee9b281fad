"""Generated programs that know how often they access each member of their structs.

Members are volatile ints, so what the source says is what is executed, at any level of optimisation; beside each access
the program adds to an array of its own, and writes the sums as JSON when it ends. The programs are made to be hard on counters that
follow from others: loops in loops with several ways out, switches, early returns, recursion, calls through pointers; and functions
that are left in the middle, by exit, longjmp or exceptions, or are in the middle when the process forks or what was
measured is dropped.
"""
import random

MEMBERS = [["a", "b", "c", "d", "in.x", "in.y", "e"], ["first", "second", "third"], ["p", "q", "r", "s", "t"]]


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.cxx = self.rng.random() < .4
        self.forks = self.rng.random() < .25
        self.resets = not self.forks and self.rng.random() < .25
        self.functions = self.rng.randint(3, 6)
        self.lines = []

    def put(self, indent, text):
        self.lines.append("  " * indent + text)

    def access(self):
        struct = self.rng.randrange(len(MEMBERS))
        member = self.rng.randrange(len(MEMBERS[struct]))
        kind = self.rng.choice(["READ", "READ", "WRITE", "BOTH"])
        return f"{kind}(s{struct}, {struct}, {member}, {MEMBERS[struct][member]});"

    def accesses(self, indent):
        for _ in range(self.rng.randint(1, 3)):
            self.put(indent, self.access())

    def block(self, indent, depth, in_loop):
        for _ in range(self.rng.randint(1, 4)):
            self.statement(indent, depth, in_loop)

    def condition(self):
        return self.rng.choice(["roll(2)", "roll(3)", "!roll(4)", f"sum % {self.rng.randint(2, 5)}", "roll(7) && roll(2)"])

    def statement(self, indent, depth, in_loop):
        kind = self.rng.choice(["access"] * 5 + ["if", "if", "ifelse", "loop", "loop", "switch", "call", "leave", "sum"])
        if depth > 3 and kind in ("if", "ifelse", "loop", "switch"):
            kind = "access"
        if kind == "access":
            self.accesses(indent)
        elif kind == "sum":
            self.put(indent, f"sum += {self.rng.randint(1, 9)};")
        elif kind in ("if", "ifelse"):
            self.put(indent, f"if ({self.condition()}) {{")
            self.block(indent + 1, depth + 1, in_loop)
            if kind == "ifelse":
                self.put(indent, "} else {")
                self.block(indent + 1, depth + 1, in_loop)
            self.put(indent, "}")
        elif kind == "loop":
            i = f"i{depth}{len(self.lines)}"
            head = self.rng.choice([f"for (int {i} = 0; {i} < {self.rng.randint(1, 9)}; {i}++) {{",
                                    f"for (int {i} = (int)roll(5); {i} > 0; {i}--) {{", "while (roll(4)) {", "do {"])
            self.put(indent, head)
            self.block(indent + 1, depth + 1, True)
            self.put(indent, "} while (roll(3));" if head == "do {" else "}")
        elif kind == "switch":
            self.put(indent, f"switch (roll({self.rng.randint(3, 6)})) {{")
            for case in range(self.rng.randint(2, 4)):
                self.put(indent, f"case {case}:")
                self.block(indent + 1, depth + 1, in_loop)
                if self.rng.random() < .7:
                    self.put(indent + 1, "break;")
            self.put(indent, "default: sum++;")
            self.put(indent, "}")
        elif kind == "call":
            callee = self.rng.randrange(self.functions)
            name = f"pointers[{callee}]" if self.rng.random() < .3 else f"f{callee}"
            self.put(indent, f"if (depth < 5) sum += {name}(s0, s1, s2, depth + 1);")
        else:
            ways = ["return sum;"] * 2 + ["if (!roll(40)) leave();", "if (!roll(3000)) exit(0);"]
            if in_loop:
                ways += ["break;", "continue;"] * 2
            self.put(indent, f"if (!roll({self.rng.randint(3, 12)})) {self.rng.choice(ways)}" if self.rng.random() < .9
                     else "step();")

    def text(self):
        self.put(0, PROLOGUE_CXX if self.cxx else PROLOGUE_C)
        for i in range(self.functions):
            self.put(0, f"int f{i}(struct S0 *s0, struct S1 *s1, struct S2 *s2, int depth);")
        self.put(0, f"static int (*volatile pointers[])(struct S0 *, struct S1 *, struct S2 *, int) = {{{', '.join(f'f{i}' for i in range(self.functions))}}};")
        for i in range(self.functions):
            static = "__attribute__((noinline)) " if self.rng.random() < .5 else ""
            self.put(0, f"{static}int f{i}(struct S0 *s0, struct S1 *s1, struct S2 *s2, int depth) {{")
            self.put(1, "int sum = depth;\n  step();")
            self.block(1, 0, False)
            self.put(1, "return sum;")
            self.put(0, "}")
        self.put(0, MAIN.replace("MIDDLE", "split();" if self.forks else "if (round == 9) drop(s0);" if self.resets else ""))
        return "\n".join(self.lines) + "\n"


PROLOGUE = r'''#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "assay/annotate.h"
struct In { volatile int x, y; };
struct S0 { volatile int a, b, c, d; struct In in; volatile int e; };
struct S1 { volatile int first, second, third; };
struct S2 { volatile int p, q, r, s, t; };
enum { kMembers = 8 };
static unsigned long reads[3 * kMembers], writes[3 * kMembers], steps;
#define READ(s, n, m, f) (reads[n * kMembers + m]++, sum += (int)((unsigned)s->f & 3u))
#define WRITE(s, n, m, f) (writes[n * kMembers + m]++, s->f = sum)
#define BOTH(s, n, m, f) (reads[n * kMembers + m]++, writes[n * kMembers + m]++, s->f = (int)((unsigned)s->f + 1u))
static unsigned state = SEED;
__attribute__((noinline)) static unsigned roll(unsigned n) {
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return state % n;
}
__attribute__((noinline)) static void step(void) {
  if (++steps > 20000)
    exit(0);
}
static const char *file_name = "counts";
static void print(void) {
  FILE *file = fopen(file_name, "w");
  for (int i = 0; i < 3 * kMembers; i++)
    fprintf(file, "%lu %lu\n", reads[i], writes[i]);
  fclose(file);
}
__attribute__((noinline)) static void forget(void) {
  memset(reads, 0, sizeof reads);
  memset(writes, 0, sizeof writes);
}
static int is_split;
__attribute__((noinline)) static void split(void) {
  if (is_split++)
    return;
  int status;
  if (fork() == 0) {
    forget();
    file_name = "counts.child";
  } else {
    wait(&status);
  }
}
static int is_dropped;
__attribute__((noinline)) static void drop(struct S0 *s0) {
  (void)s0;
  if (is_dropped++)
    return;
  assay_reset();
  forget();
}
'''
PROLOGUE_C = PROLOGUE + r'''
static jmp_buf back;
__attribute__((noinline)) static void leave(void) { longjmp(back, 1); }
#define TRY if (!setjmp(back))
#define CATCH
'''
PROLOGUE_CXX = PROLOGUE + r'''
struct Thrown { int n; };
__attribute__((noinline)) static void leave(void) { throw Thrown{1}; }
#define TRY try {
#define CATCH } catch (Thrown &) { }
'''
MAIN = r'''
int main(void) {
  atexit(print);
  volatile int sum = 0;
  struct S0 *s0 = (struct S0 *)calloc(1, sizeof *s0);
  struct S1 *s1 = (struct S1 *)calloc(1, sizeof *s1);
  struct S2 *s2 = (struct S2 *)calloc(1, sizeof *s2);
  for (volatile int round = 0; round < 40; round++) {
    WRITE(s1, 1, 0, first);
    TRY
      sum += f0(s0, s1, s2, 0);
    CATCH
    MIDDLE
    READ(s2, 2, 1, q);
  }
  return 0;
}
'''


def program(seed):
    """The text of a program, the end of its file's name, and whether it neither forks nor drops what was measured."""
    maker = Maker(seed)
    text = maker.text().replace("SEED", str(seed * 2654435761 % 4294967295 + 1))
    return text, ".cc" if maker.cxx else ".c", not maker.forks and not maker.resets


def counts(*files):
    """{(struct, member): (reads, writes)} of those that ended with these files."""
    sums = {}
    for file in files:
        with open(file) as lines:
            numbers = [tuple(map(int, line.split())) for line in lines]
        for struct, members in enumerate(MEMBERS):
            for i, member in enumerate(members):
                reads, writes = sums.get((f"S{struct}", member), (0, 0))
                r, w = numbers[struct * 8 + i]
                sums[f"S{struct}", member] = (reads + r, writes + w)
    return sums
