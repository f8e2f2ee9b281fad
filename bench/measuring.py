"""Interleaved measuring of programs, and tables of what came out; for the scripts of this folder."""
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measure_program():
    source, program = ROOT / "bench/measure.c", ROOT / "build/bench/measure"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["clang-22", "-O1", source, "-o", program], check=True)
    return program


class Usage(typing.NamedTuple):
    """What a command took: seconds of all its threads and of the children it waited for; the largest resident set of
    one of these processes, without what this process holds."""
    user: float
    system: float
    kib: int

    @property
    def cpu(self):
        return self.user + self.system


def usage_of(words, environment=None, folder=None, attach=None):
    """Runs a command, which must succeed, and throws its output away. attach(pid) is called before it begins, with the
    id of its parent, and returns a descriptor, which stays open until the command has ended."""
    wait, go = os.pipe() if attach else (-1, -1)
    command = [measure_program(), str(wait), *map(str, words)]
    with subprocess.Popen(command, env={**os.environ, **(environment or {})}, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, pass_fds=[wait] if attach else []) as run:
        attached = attach(run.pid) if attach else -1
        for descriptor in (wait, go):
            if descriptor >= 0:
                os.close(descriptor)
        output, errors = run.communicate()
    if attached >= 0:
        os.close(attached)
    if run.returncode:
        sys.exit(f"bench: cannot run {words[0]}: {errors}")
    user, system, kib, status = output.split()
    if int(status):
        sys.exit(f"bench: {shlex.join(map(str, words))}: wait status {status}\n{errors}")
    return Usage(float(user), float(system), int(kib))


def measure(variants, rounds, folder=None, after_each=None):
    """variants: {name: (words, environment)}. Returns {name: {cpu_s, cpu_s_low, cpu_s_high, rss_kib}}."""
    seconds, kib = {name: [] for name in variants}, {name: [] for name in variants}
    for _ in range(rounds):
        for name, (words, environment) in variants.items():
            usage = usage_of(words, environment, folder)
            seconds[name].append(usage.cpu)
            kib[name].append(usage.kib)
            if after_each:
                after_each()
    return {name: {"cpu_s": statistics.median(seconds[name]), "cpu_s_low": min(seconds[name]),
                   "cpu_s_high": max(seconds[name]), "rss_kib": statistics.median(kib[name])}
            for name in variants}


def text_bytes(program):
    """Bytes of the .text section."""
    lines = subprocess.run(["size", "-A", program], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(".text "))


def geomean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    load = os.getloadavg()
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": os.uname().release,
            "load_average": [round(value, 2) for value in load]}


def machine_text(facts):
    return (f"{facts['cpus']} cpus, {facts['cpu']}, Linux {facts['kernel']}; "
            f"load average at the end {facts['load_average'][0]:.2f}")


def table(rows):
    """Rows of strings, the first the heading; first column to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))).rstrip())
