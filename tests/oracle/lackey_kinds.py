#!/usr/bin/env python3
"""lackey_kinds.py PROGRAM-THAT-COMPARES WORK NAME…: Valgrind's lackey and our decoder agree on kind and size of the accesses of each instruction
that programs of the machine execute, in their libraries and the loader, too.

Each runs twice under Valgrind, which lays out memory alike: once to learn where files lie, once with lackey. A library in front writes the mappings
when the program ends. Prints a line a program; exit status 1 if any instruction differs.
"""
import os
import pathlib
import shutil
import subprocess
import sys

MAPS = """#include <stdio.h>
#include <stdlib.h>
__attribute__((destructor)) static void write_maps(void) {
  const char *to = getenv("ASSAY_TEST_MAPS");
  FILE *from = fopen("/proc/self/maps", "r"), *out = to ? fopen(to, "w") : NULL;
  for (int c; from && out && (c = getc(from)) != EOF;) putc(c, out);
  if (out) fclose(out);
}
"""
LUA = """local t = {} for i = 1, 900 do t[i] = (i * 7919) % 1007 end table.sort(t)
local x = 0 for i = 1, 900 do x = x + math.sin(i) * t[i] / 3 end
print(string.format('%.10g', x), #table.concat(t, ','), ('the quick brown fox'):gsub('%a+', string.upper))"""
SQL = """create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200) insert into t select i, 'n' || (i * 79 % 19), i * .37 from n;
select b, count(*), sum(c) from t group by b order by 3 desc limit 5;"""
PERL = "my %h; $h{$_ % 37} .= chr(65 + $_ % 26) for 1..900; print join(',', map { length $h{$_} } sort keys %h), sprintf('%.6f', sin(2)), qq(\\n)"
PYTHON = "import json,re\nd={str(i):[i*1.5,'x'*(i%13)] for i in range(60)}\ns=json.dumps(d)\nprint(len(json.loads(s)),len(re.findall(r'\\d+',s)))"
PROGRAMS = {
    "bzip2": ["-k", "-c", "text"], "gzip": ["-9", "-n", "-c", "text"], "xz": ["-0", "-k", "-c", "-T1", "text"], "zstd": ["-c", "-q", "-T1", "text"],
    "lua5.4": ["-e", LUA], "sqlite3": [":memory:", SQL], "perl": ["-e", PERL], "python3": ["-S", "-c", PYTHON], "sed": ["-n", "s/[a-f]\\+/<&>/gp", "text"],
    "grep": ["-E", "-c", "([0-9a-f]{2}){3}x?", "text"], "sort": ["-R", "--random-source=text", "text"], "find": ["/etc", "-maxdepth", "1", "-name", "*s*"],
    "bc": ["-l", "work.bc"], "awk": ["{ n[length($0)]++ } END { for (k in n) print k, n[k], sqrt(k) }", "text"], "openssl": ["sha512", "text"],
    "tar": ["cf", "/dev/null", "text", "other"]}


def make_inputs():
    lines = [f"{i * 2654435761 % 2**32:x} line {i} {'ab' * (i % 7)}" for i in range(400)]
    pathlib.Path("text").write_text("\n".join(lines) + "\n")
    pathlib.Path("other").write_text("\n".join(line for i, line in enumerate(lines) if i % 11) + "\n")
    pathlib.Path("work.bc").write_text("scale=60\na(1)*4\ne(1.5)\n2^200\n")
    pathlib.Path("maps.c").write_text(MAPS)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "maps.c", "-o", "maps.so"], check=True)


def compare(compares, name):
    program = "/usr/bin/python3" if name == "python3" else shutil.which(name)
    command = [program, *PROGRAMS[name]]
    env = {**os.environ, "LD_PRELOAD": os.path.abspath("maps.so"), "PYTHONHASHSEED": "0", "LC_ALL": "C"}
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    maps = [os.path.abspath(f"{name}.maps.{n}") for n in (1, 2)]
    subprocess.run(["valgrind", "-q", "--tool=none", *command], env={**env, "ASSAY_TEST_MAPS": maps[0]}, stderr=subprocess.DEVNULL, check=True, **quiet)
    with subprocess.Popen(["valgrind", "-q", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no",
                           "--vex-iropt-register-updates=allregs-at-each-insn", *command], stderr=subprocess.PIPE,
                          env={**env, "ASSAY_TEST_MAPS": maps[1]}, **quiet) as traced:
        done = subprocess.run([compares, maps[0]], stdin=traced.stderr, stdout=subprocess.PIPE, text=True)
    told = done.stdout.strip().splitlines() or ["nothing was compared"]
    moved = pathlib.Path(maps[0]).read_text().count("r-xp") != pathlib.Path(maps[1]).read_text().count("r-xp")
    failed = done.returncode != 0 or moved or traced.returncode != 0
    for line in told[:-1]:
        print(f"  {line}")
    print(f"{name:10} {told[-1]}" + (", but files lie elsewhere the second time" if moved else ""), flush=True)
    return failed


def main():
    compares, work, names = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)
    make_inputs()
    sys.exit(any([compare(compares, name) for name in names]))


if __name__ == "__main__":
    main()
