#!/usr/bin/env python3
"""same_suite.py NAME [VARIANT…]: a third-party program's own test suite says the same under Assay as natively.

tests/suites/NAME says how to build and run the suite, in bash, and what of its output is a result:
  source_name   in scripts/sources.txt
  variants      builds besides `native` and `heap` (-O2 both): `heap-O0`
  options       ASSAY_OPTIONS of its runs, besides where the profiles go
  at_least      so many tests it must have; a suite that does not run is not a pass
  build         in an empty folder, from $source, with $CC, $CXX and $CFLAGS
  check         runs everything; each command by `try NAME COMMAND…`, which adds its exit status to the output
  results       a filter: the output of `check` in, results out, without times, process ids and addresses
  tests         a filter: results in, one line a test out

The results of every variant must be the bytes of the native ones, so the same tests pass and the same fail, with
the same messages where the suite prints any. Then `assay heap` must read the profiles of all processes of the suite.
Builds are kept until their recipe, or for an instrumented one the plugin or the runtime, changes. Outputs and
results stay in build/tests/suites/NAME/VARIANT/, the durations in build/tests/suites/NAME/durations. ASSAY_OPTIONS of the
environment are added to those of the runs.

Natively means clang 22 with the same flags, not the program's release build: only Assay may make the difference.
"""
import difflib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

root = pathlib.Path(__file__).resolve().parents[2]
FLAGS = {"native": "-O2", "heap": "-O2", "heap-O0": "-O0"}
# Suites test that permissions hold, which they do not for root: a user namespace without its capabilities.
ORDINARY_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
HELPERS = """
try() {
  local name=$1 status=0
  shift
  echo "== $name"
  "$@" || status=$?
  echo "== $name: exit status $status"
}
results() { cat; }
"""


def bash(suite, command, prefix=(), **options):
    return subprocess.run([*prefix, "bash", "-c", f"set -euo pipefail\n{HELPERS}\n. {suite}\n{command}"], **options)


def text_of(suite, command, given=b""):
    done = bash(suite, command, input=given, capture_output=True)
    if done.returncode:
        sys.exit(f"{suite.name}: {command}: {done.stderr.decode(errors='replace')}")
    return done.stdout


# What a build is made from: its recipe, and for an instrumented one the plugin and the runtime.
def made_from(suite, variant):
    files = [] if variant == "native" else [root / "build/lib/assay/libassay_pass.so", root / "build/lib/assay/libassay_rt.a"]
    versions = [f"{file.name} {file.stat().st_mtime_ns}\n" for file in files]
    return "".join([text_of(suite, 'echo "$source_name"; declare -f build').decode(), FLAGS[variant], "\n", *versions])


def environment(variant, work, source, options):
    compilers = {"CC": "clang-22", "CXX": "clang++-22"} if variant == "native" else {"CC": "assay-cc", "CXX": "assay-c++"}
    path = f"{root / 'build/bin'}:{os.environ['PATH']}"
    return {**os.environ, **compilers, "CFLAGS": FLAGS[variant], "CXXFLAGS": FLAGS[variant], "PATH": path, "source": source,
            "LC_ALL": "C.UTF-8", "ASSAY_OPTIONS": f"dir={work / 'profiles'}:run=suite:{options}"}


def build(suite, variant, work, env):
    stamp, recipe = work / "built", made_from(suite, variant)
    if stamp.exists() and stamp.read_text() == recipe:
        return
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    with open(work / "build.log", "wb") as log:
        done = bash(suite, "build", cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    if done.returncode:
        tail = (work / "build.log").read_text(errors="replace")[-3000:]
        sys.exit(f"{suite.name} ({variant}) cannot be built:\n{tail}")
    stamp.write_text(recipe)


def run(suite, variant, work, env):
    shutil.rmtree(work / "profiles", ignore_errors=True)
    with open(work / "output", "wb") as log:
        done = bash(suite, "check", ORDINARY_USER, cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    # Where the folder of the variant is printed, it is the only difference that must be.
    output = (work / "output").read_bytes().replace(os.fsencode(work), b"WORK")
    results = text_of(suite, "results", output) + f"exit status {done.returncode}\n".encode()
    (work / "results").write_bytes(results)
    return results


def read_profiles(work):
    done = subprocess.run([root / "build/bin/assay", "heap", "--json", "-o", work / "heap.json", work / "profiles"],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"assay heap {work / 'profiles'}: exit status {done.returncode}\n{done.stderr}")
    contexts = json.loads((work / "heap.json").read_text())["contexts"]
    if not sum(c["alloc_count"] for c in contexts) or not sum(c["reads"] + c["writes"] for c in contexts):
        sys.exit(f"{work / 'profiles'}: neither allocations nor accesses")
    return len(list((work / "profiles").rglob("*.assay"))), len(contexts)


def main():
    name, chosen = sys.argv[1], sys.argv[2:]
    suite = root / "tests/suites" / name
    folder = root / "build/tests/suites" / name
    source_name = text_of(suite, 'echo "$source_name"').decode().strip()
    options = text_of(suite, 'echo "${options:-}"').decode().strip() + ":" + os.environ.get("ASSAY_OPTIONS", "")
    at_least = int(text_of(suite, 'echo "$at_least"'))
    variants = ["native", "heap", *text_of(suite, 'echo "${variants[@]:-}"').decode().split()]
    source = subprocess.run([root / "scripts/fetch-source", source_name], stdout=subprocess.PIPE, text=True,
                            check=True).stdout.strip()
    results, durations = {}, []
    for variant in chosen or variants:
        work = folder / f"{variant:_<8}"  # of one length: what a suite does may depend on how long paths are
        env = environment(variant, work, source, options)
        began = time.monotonic()
        build(suite, variant, work, env)
        built = time.monotonic()
        results[variant] = run(suite, variant, work, env)
        ran = time.monotonic()
        tests = len(text_of(suite, "tests", results[variant]).splitlines())
        line = f"{name} {variant}: {tests} tests, built in {built - began:.0f} s, run in {ran - built:.0f} s"
        if variant != "native":
            line += ", {} profiles with {} contexts".format(*read_profiles(work))
        print(line, flush=True)
        durations.append(line)
        if tests < at_least:
            sys.exit(f"{name} ({variant}): {tests} tests are too few, {at_least} or more were expected; see {work / 'output'}")
    (folder / "durations").write_text("\n".join(durations) + "\n")
    native = results.pop("native", None)
    for variant, got in results.items() if native is not None else ():
        if got != native:
            lines = difflib.unified_diff(*(t.decode(errors="replace").splitlines() for t in (native, got)), "native", variant, "", "", 1, "")
            sys.exit(f"{name}: {variant} differs from native:\n" + "\n".join(list(lines)[:100]))


if __name__ == "__main__":
    main()
