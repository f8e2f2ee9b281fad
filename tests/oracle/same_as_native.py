#!/usr/bin/env python3
"""same_as_native.py NAME [-O0] [--without-naive]: a program of bench/programs behaves the same under Assay, and is counted the same twice.

Builds it natively, with assay-cc and with -fassay-naive; runs its small workload; standard output, standard
error and exit status must be the same bytes. Then the totals of the two profiles must be equal: allocations
and bytes always, reads and writes as well. Lines with times (they end in a number and `s`) are left out.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

name = sys.argv[1]
source = pathlib.Path(__file__).resolve().parents[2]
work = source / "build" / "tests" / "programs" / name
shutil.rmtree(work / "runs", ignore_errors=True)
(work / "runs").mkdir(parents=True)
flags = ("-O0" if "-O0" in sys.argv else "-O1") + " -g"
arguments = subprocess.run([source / "bench/build-program", "--small-workload", name],
                           capture_output=True, text=True, check=True).stdout.splitlines()


def build(kind, **compilers):
    program = work / kind / name
    if not os.environ.get("ASSAY_KEEP_BUILDS"):
        program.unlink(missing_ok=True)
    done = subprocess.run([source / "bench/build-program", name, program], capture_output=True, text=True,
                          env={**os.environ, **compilers})
    if done.returncode:
        sys.exit(f"building {name} ({kind}): {done.stdout}{done.stderr}")
    return program


def without_times(text):
    return re.sub(rb"(?m)^.*\d\.\d+s$", b"", text)


def run(kind, program, fixed=("setarch", "-R")):
    # The same name and the same addresses each time: programs hash both.
    done = subprocess.run([*fixed, f"./{name}", *arguments], capture_output=True, cwd=program.parent,
                          stdin=subprocess.DEVNULL, env={**os.environ, "ASSAY_OPTIONS": f"dir=../runs/{kind}"})
    return done.returncode, without_times(done.stdout), without_times(done.stderr)


def totals(kind):
    out = subprocess.run(["assay", "heap", work / "runs" / kind, "--json"], capture_output=True, text=True)
    if out.returncode:
        sys.exit(out.stderr)
    report = json.loads(out.stdout)
    keys = ["alloc_count", "reads", "writes", "touched_bytes"]
    return {key: sum(c[key] for c in report["contexts"]) for key in keys} | {
        "size": sum(c["size"]["total"] for c in report["contexts"])}


native = run("native", build("native", CFLAGS="-O0")) # what it says does not depend on that
counts = {}
builds = {"heap": "", "naive": " -fassay-naive"}
if "--without-naive" in sys.argv:
    del builds["naive"]
for kind, more in builds.items():
    program = build(kind, CFLAGS=flags + more, CC="assay-cc", CXX="assay-c++")
    got = run(kind, program)
    for what, a, b in zip(["exit status", "standard output", "standard error"], native, got):
        if a != b:
            sys.exit(f"{name} ({kind}): {what} differs from native:\n{a!r}\n{b!r}"[:2000])
    counts[kind] = totals(kind)
# Programs that hash pointers do other work at other addresses, and the two builds differ in size: then one of a
# few runs at random addresses must be the same.
if counts["heap"] != counts.get("naive", counts["heap"]):
    seen = {"heap": [counts["heap"]], "naive": [counts["naive"]]}
    for kind, known in seen.items():
        for _ in range(6):
            run(kind, work / kind / name, ())
            known.append(totals(kind))
    if not any(a in seen["naive"] for a in seen["heap"]):
        sys.exit(f"{name}: coalesced and naive counts differ:\n{seen['heap']}\n{seen['naive']}")
print(f"{name}: {counts['heap']}")
