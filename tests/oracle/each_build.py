#!/usr/bin/env python3
"""each_build.py NAME SOURCE FACTS -- LEVEL…: one program, the same facts for every build.

Builds SOURCE (.c or .cc) at each level (flags, in one word), coalesced and naive, runs it, and checks the facts (facts.py, one a
line) on the report of each. Then the reports of naive and coalesced must agree on every count of every
context: that is the oracle of the optimised instrumentation.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

COUNTS = ["alloc_count", "reads", "writes", "access_count", "size", "used_percent", "touched_bytes", "live_count"]


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nexit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def profile(source, flags, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    compiler = "assay-c++" if source.suffix == ".cc" else "assay-cc"
    program = folder / "program"
    run(compiler, *flags, source, "-o", program, "-lpthread")
    # The same addresses each time: which 64-byte blocks an object spans depends on where it lies.
    run("assay", "run", "--no-aslr", "-o", "out", "--", "./program", cwd=folder, env={**os.environ, "PWD": "/"})
    report = folder / "report.json"
    run("assay", "heap", folder / "out", "--json", "-o", report)
    return report


def counts(report):
    table = {}
    for context in json.loads(report.read_text())["contexts"]:
        place = tuple((f["function"], f["line"]) for f in context["stack"] if "source" not in f)
        table[(context["type"], place)] = [context.get(key) for key in COUNTS]
    return table


def main():
    name, source, facts = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    levels = sys.argv[sys.argv.index("--") + 1:]
    lines = [line for line in facts.read_text().splitlines() if line.strip()]
    here = pathlib.Path(__file__).parent
    for level in levels:
        folder = (pathlib.Path(os.path.dirname(source)) / (name + level.replace(" ", "_"))).absolute()
        ordinary = profile(source, level.split(), folder / "coalesced")
        naive = profile(source, [*level.split(), "-fassay-naive"], folder / "naive")
        for report in (ordinary, naive):
            done = subprocess.run([sys.executable, here / "facts.py", report, *lines], text=True, capture_output=True)
            if done.returncode:
                sys.exit(f"{level}, {report.parent.name}:\n{done.stdout}{done.stderr}")
        a, b = counts(ordinary), counts(naive)
        for key in sorted(set(a) | set(b), key=str):
            if a.get(key) != b.get(key):
                sys.exit(f"{level}: coalesced and naive differ at {key}:\n{a.get(key)}\n{b.get(key)}")


if __name__ == "__main__":
    main()
