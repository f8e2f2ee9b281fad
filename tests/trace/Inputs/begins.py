"""What begins*.test share: the program, and how it is recorded."""
import json, subprocess

alone = ("--module", "begins")
subprocess.run("gcc -O2 begins.c -o begins -pthread", shell=True, check=True)

def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=300)
    assert done.returncode == 0, (command, done.returncode, done.stdout[-300:], done.stderr)
    return done.stdout

def record(what, before=(), options=()):
    """How many accesses of work() the trace has."""
    output = run("assay", "trace", "record", *options, "-o", "out", "--", *before, "./begins", what)
    assert output == what + "\n", output
    info = json.loads(run("assay", "trace", "info", "--json", "out"))
    [work] = [each["accesses"] for each in info["functions"] if each["name"] == "work"]
    return work

# Four accesses an iteration, and the return.
def of(*calls):
    return sum(times * (4 * n + 1) for times, n in calls)
