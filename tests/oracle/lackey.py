#!/usr/bin/env python3
"""lackey.py NAME[:LEVEL]…: Valgrind's lackey and Assay agree on the lines of the heap that real programs touch.

Lackey runs the program without Assay, and says of every access its address and, before it, the instruction. The heap
lies elsewhere in both runs, but is laid out alike, because blocks have no headers of ours: lines are counted from
its first. Line by line:

  - each line that the program's own code touches is in Assay's working set;
  - each line of Assay's is one of lackey's: beyond those of its own code the program has lines that libc touches in
    its name, in memcpy and its like, which Assay marks where they are called.

What only lackey has is libc's own: the allocator's headers, buffers of stdio. Not compared: the stack, whose frames
differ, and globals, which lie elsewhere.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import workingset_lines

root = pathlib.Path(__file__).resolve().parents[2]
WHOLE_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0"}  # large blocks, too
WORK = {"bzip2": (["-kf", "input"], ["-O0", "-O2"]),
        "lua5.4": (["script.lua"], ["-O0", "-O2"]),
        "box2d": (["1"], ["-O2"])}  # ten times slower than the others at -O0


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    if done.returncode:
        sys.exit(f"{command}: exit status {done.returncode}\n{done.stdout[-2000:]!r}{done.stderr[-2000:]!r}")
    return done.stdout


def build(name, program, cc, cxx, flags):
    run(root / "bench/build-program", name, program.resolve(), env={**os.environ, "CC": cc, "CXX": cxx, "CFLAGS": flags})
    return program.resolve()


def lackey_lines(program, arguments, folder, filter_program):
    shutil.copy(program, folder / "program")
    symbols = {name: int(value, 16) for value, _, name in
               (line.split() for line in run("nm", program).decode().splitlines() if len(line.split()) == 3)}
    with subprocess.Popen(["valgrind", "--tool=lackey", "--trace-mem=yes", "--trace-syscalls=yes", "./program", *arguments], cwd=folder,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **WHOLE_HEAP}) as traced:
        out = run(filter_program, f"{symbols['_end']:x}", stdin=traced.stderr)
    rows = [line.split() for line in out.decode().splitlines()]
    return {int(line) for line, who in rows if who == "own"}, {int(line) for line, _ in rows}


def assay_lines(program, arguments, folder):
    shutil.rmtree(folder / "profiles", ignore_errors=True)
    shutil.copy(program, folder / "program")  # by the same name: it may be in the heap
    run("setarch", "-R", "./program", *arguments, cwd=folder,
        env={**os.environ, **WHOLE_HEAP, "ASSAY_OPTIONS": "dir=profiles:time=marks"})
    [profile] = (folder / "profiles").glob("*/*.assay")
    records, heap = workingset_lines.dumped(profile), None
    for text in records:
        if found := re.match(r"@\d+ Region start=(\d+) end=(\d+) tick=\d+ kind=3 ", text):
            start = int(found[1]) // 64
            heap = range(start, start + (32 << 20) // 64)  # its end may have been given back
    lines = workingset_lines.first_snapshot(records)
    return {line - heap.start for line in lines if line in heap}


def inputs(folder):
    (folder / "input").write_bytes((root / "LICENSE").read_bytes()[:8000])
    (folder / "script.lua").write_text("""
local function tree(depth) return depth > 0 and { tree(depth - 1), tree(depth - 1), n = depth } or {} end
local words, t = {}, tree(7)
for i = 1, 300 do words[i] = ("word-%d"):format(i * 7919 % 1009) end
table.sort(words)
print(#table.concat(words, ","), t.n)
""")


for wanted in sys.argv[1:]:
    name, _, level = wanted.partition(":")
    work = root / "build/tests/lackey" / name
    arguments, levels = WORK[name]
    levels = [level] if level else levels
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    inputs(work)
    filter_program = work / "lackey_lines"
    run("clang-22", "-O2", root / "tests/oracle/lackey_lines.c", "-o", filter_program)
    for level in levels:
        flags = f"{level} -gdwarf-4 -no-pie"
        native = build(name, work / level / "native", "clang-22", "clang++-22", flags)
        ours = build(name, work / level / "workingset", "assay-cc", "assay-c++", flags + " -fassay=workingset")
        own, all_lines = lackey_lines(native, arguments, work, filter_program)
        lines = assay_lines(ours, arguments, work)
        if missing := own - lines:
            sys.exit(f"{name} {level}: Assay lacks {len(missing)} of {len(own)} lines, the first at {min(missing) * 64:#x} of the heap")
        if more := lines - all_lines:
            sys.exit(f"{name} {level}: Assay has {len(more)} lines that nobody touched, the first at {min(more) * 64:#x} of the heap")
        if len(own) < 100:
            sys.exit(f"{name} {level}: only {len(own)} lines to compare")
        print(f"{name} {level}: lackey has {len(own)} lines of the program and {len(all_lines - own)} of libc alone; "
              f"Assay all of the first and {len(lines - own)} of the second")
