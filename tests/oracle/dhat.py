#!/usr/bin/env python3
"""dhat.py NAME…: Valgrind's DHAT and Assay agree on real programs, place by place.

A place is the innermost function of the program itself in the stack of an allocation. For each, exactly equal:
blocks and bytes allocated. DHAT counts bytes read and written where Assay counts accesses, so their ratio is
bounded: an access moves 1 to 16 bytes at -O1 without vectors; libc's own accesses (printf, fread), which Assay
does not see and says so, and what is stored by the kernel, only add to DHAT's side, and places below a
thousand accesses are left out.

realloc: DHAT counts a block again at each realloc, Assay goes on with the same object, so that the blocks of a
place that reallocs differ by the number of reallocs; such places are compared by that rule.
"""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, **options)
    if done.returncode:
        sys.exit(f"{command}: exit status {done.returncode}\n{done.stdout[-2000:]!r}{done.stderr[-2000:]!r}")
    return done.stdout


def functions_of(program):
    out = run("nm", "-C", "--defined-only", program).decode(errors="replace")
    return {line.split(" ", 2)[2].split("(")[0] for line in out.splitlines() if line[17:18] in "tTwW"}


def place(names, functions):
    """The innermost function of the program itself, the C++ library's templates left out."""
    return next((n for n in (name.split("(")[0] for name in names) if n in functions and "std::" not in n), None)


def dhat(program, arguments, folder):
    out = folder / "dhat.json"
    run("valgrind", "--tool=dhat", f"--dhat-out-file={out}", program, *arguments, cwd=folder)
    report = json.loads(out.read_text())
    functions = functions_of(program)
    places = collections.defaultdict(lambda: [0, 0, 0, 0])
    # a frame is "0x1234: function (file.c:12)"
    frames = [frame.partition(": ")[2].split(" (")[0] for frame in report["ftbl"]]
    for point in report["pps"]:
        name = place([frames[i] for i in point["fs"]], functions)
        if name:
            for i, key in enumerate(["tbk", "tb", "rb", "wb"]):
                places[name][i] += point[key]
    return places


def assay(program, arguments, folder):
    run(program, *arguments, cwd=folder, env={**os.environ, "ASSAY_OPTIONS": "dir=profiles:depth=256"})
    report = json.loads(run("assay", "heap", "profiles", "--json", cwd=folder))
    functions = functions_of(program)
    places = collections.defaultdict(lambda: [0, 0, 0, 0, 0])
    for context in report["contexts"]:
        name = place([f["function"] for f in context["stack"]], functions)
        if name:
            for i, value in enumerate([context["alloc_count"], context["size"]["total"], context["reads"],
                                       context["writes"], context["realloc_count"]]):
                places[name][i] += value
    return places


for name in sys.argv[1:]:
    work = root / "build/tests/dhat" / name
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    arguments = run(root / "bench/build-program", "--small-workload", name).decode().splitlines()
    flags = "-O1 -gdwarf-4 -fno-vectorize -fno-slp-vectorize -fno-inline -fno-optimize-sibling-calls"
    build = [root / "bench/build-program", name]
    run(*build, work / "native" / name, env={**os.environ, "CFLAGS": flags})
    run(*build, work / "heap" / name, env={**os.environ, "CFLAGS": flags, "CC": "assay-cc", "CXX": "assay-c++"})
    theirs = dhat(work / "native" / name, arguments, work)
    ours = assay(work / "heap" / name, arguments, work)
    compared = 0
    for where in sorted(set(theirs) | set(ours)):
        blocks, size, read, written = theirs[where]
        our_blocks, our_size, reads, writes, reallocs = ours[where]
        if reallocs == 0 and (blocks, size) != (our_blocks, our_size):
            sys.exit(f"{name}: {where}: DHAT has {blocks} blocks of {size} bytes, Assay {our_blocks} of {our_size}")
        if reallocs and not our_blocks <= blocks <= our_blocks + reallocs:
            sys.exit(f"{name}: {where}: DHAT has {blocks} blocks, Assay {our_blocks} and {reallocs} reallocs")
        for what, theirs_bytes, count in [("read", read, reads), ("written", written, writes)]:
            if count > 1000 and not 1 <= theirs_bytes / count <= 16:
                sys.exit(f"{name}: {where}: {theirs_bytes} bytes {what} by DHAT in {count} accesses by Assay")
        compared += blocks > 0
    if compared < 2:
        sys.exit(f"{name}: only {compared} places to compare: {dict(ours)}")
    print(f"{name}: {compared} places agree")
