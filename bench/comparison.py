"""One bench set, built and run in several ways: what a tool costs at run time on real programs."""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys

import measuring

ROOT, OUT = measuring.ROOT, measuring.ROOT / "build/bench"
BIN, LIB = ROOT / "build/bin", ROOT / "build/lib/assay"
PROGRAMS = ["sqlite3", "lua5.4", "bzip2", "zstd", "pugixml", "box2d"]
NATIVE_FLAGS = "-O2 -g"
PROFILES = OUT / "profiles"


@dataclasses.dataclass
class Variant:
    """A way to build and run every program."""
    name: str
    flags: str = NATIVE_FLAGS
    ours: bool = False  # built by assay-cc
    environment: dict = dataclasses.field(default_factory=dict)

    def folder(self):
        return "".join(c if c.isalnum() else "-" for c in ("assay " if self.ours else "") + self.flags)


NATIVE = Variant("native")


def assay(name, tool_flags="", options=""):
    return Variant(name, f"{NATIVE_FLAGS} {tool_flags}".rstrip(), True,
                   {"ASSAY_OPTIONS": f"dir={PROFILES}" + (f":{options}" if options else "")})


def newest(*paths):
    return max(path.stat().st_mtime for path in paths)


def build(name, variant):
    program = OUT / variant.folder() / name
    runtime = newest(LIB / "libassay_rt.a", LIB / "libassay_pass.so", BIN / "assay-cc") if variant.ours else 0
    if program.exists() and program.stat().st_mtime < runtime:
        program.unlink()
    compilers = (BIN / "assay-cc", BIN / "assay-c++") if variant.ours else ("clang-22", "clang++-22")
    run = subprocess.run([ROOT / "bench/build-program", name, program],
                         env={**os.environ, "CC": str(compilers[0]), "CXX": str(compilers[1]), "CFLAGS": variant.flags},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode:
        sys.exit(f"bench: {name} ({variant.name}) does not build:\n{run.stdout[-3000:]}")
    return program


def build_all(names, variants):
    for name in names:  # one at a time: the first build of a program also fetches and prepares its sources
        build(name, NATIVE)
    builds = {variant.folder(): variant for variant in variants}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        done = {(name, folder): pool.submit(build, name, variant) for folder, variant in builds.items() for name in names}
        built = {key: job.result() for key, job in done.items()}
    return {(name, variant.name): built[name, variant.folder()] for name in names for variant in variants}


def empty_profiles():
    shutil.rmtree(PROFILES, ignore_errors=True)
    PROFILES.mkdir(parents=True)


def workload(name):
    return subprocess.run([ROOT / "bench/build-program", "--workload", name], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.split("\n")[:-1]


def compare(names, variants, rounds):
    """{program: {variant: {cpu_s, rss_kib, text_bytes, …}}}, each program's variants interleaved."""
    programs, results = build_all(names, variants), {}
    for name in names:
        words = workload(name)
        empty_profiles()
        results[name] = measuring.measure({v.name: ([programs[name, v.name], *words], v.environment) for v in variants},
                                          rounds, folder=PROFILES, after_each=empty_profiles)
        for variant in variants:
            results[name][variant.name]["text_bytes"] = measuring.text_bytes(programs[name, variant.name])
    shutil.rmtree(PROFILES, ignore_errors=True)
    return results


COLUMNS = [("cpu_s", "CPU s", 1, 2), ("rss_kib", "RSS MiB", 1024, 1), ("text_bytes", "code KiB", 1024, 0)]


def print_ratios(results, variants):
    """A table for each resource: native in its unit, the others as ratios to it."""
    others = [variant.name for variant in variants[1:]]
    first = variants[0].name
    for key, title, unit, digits in COLUMNS:
        rows = [[title, first, *others]]
        for name, r in results.items():
            rows.append([name, f"{r[first][key] / unit:.{digits}f}", *(f"{r[v][key] / r[first][key]:.2f}" for v in others)])
        for label, pick in [("geomean", measuring.geomean), ("worst", max)]:
            rows.append([label, ""] + [f"{pick([r[v][key] / r[first][key] for r in results.values()]):.2f}" for v in others])
        measuring.table(rows)
        print()


def arguments_of(doc):
    arguments = argparse.ArgumentParser(usage=doc.splitlines()[0], description=doc.split("\n\n", 1)[1])
    arguments.add_argument("--programs", default=",".join(PROGRAMS))
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--tool-flags", default="", metavar="FLAGS", help="for assay-cc, for example --tool-flags=-fassay-naive")
    arguments.add_argument("--json", metavar="FILE")
    return arguments


def run_variants(doc, variants, usual=None):
    """Parses, measures, prints, for a script whose --variants names some of `variants`: {name: (flags, options)}."""
    def variants_of(given):
        chosen = given.variants.split(",")
        for name in chosen:
            if name not in variants:
                arguments.error(f"{name}: no such variant; there is {', '.join(variants)}")
        return [NATIVE] + [assay(name, f"{variants[name][0]} {given.tool_flags}".rstrip(), variants[name][1])
                           for name in chosen]

    arguments = arguments_of(doc)
    arguments.add_argument("--variants", default=usual or ",".join(variants))
    run(arguments, variants_of)


def run(arguments, variants_of):
    """Parses, measures, prints. variants_of(given) are the variants, the first the one to compare with."""
    given = arguments.parse_args()
    names = given.programs.split(",")
    for name in names:
        if name not in PROGRAMS:
            arguments.error(f"{name}: no such program; there is {', '.join(PROGRAMS)}")
    variants = variants_of(given)
    results = compare(names, variants, given.rounds)
    print_ratios(results, variants)
    facts = measuring.machine()
    print(f"ratios to {variants[0].name}; medians of {given.rounds} interleaved rounds; {NATIVE_FLAGS} {given.tool_flags}".rstrip())
    print(measuring.machine_text(facts))
    if given.json:
        pathlib.Path(given.json).write_text(json.dumps(
            {"machine": facts, "rounds": given.rounds,
             "flags": {variant.name: variant.flags for variant in variants}, "programs": results}, indent=2) + "\n")
