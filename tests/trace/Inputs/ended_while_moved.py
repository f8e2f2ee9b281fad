# Clang's library takes long to move, and the tool says so before it begins.
import json, os, shutil, signal, subprocess
os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
command = ["assay", "trace", "record", "-o", "trace", "--", shutil.which("clang-22"), "--version"]
run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
said = ""
while "libclang-cpp" not in said:
    line = run.stderr.readline()
    assert line, said
    said += line
run.send_signal(signal.SIGTERM)
out, rest = run.communicate()
assert run.returncode == -signal.SIGTERM and out == "", (run.returncode, out, rest)
info = json.loads(subprocess.check_output(["assay", "trace", "info", "--json", "trace"]))
(library,) = [module for module in info["modules"] if "libclang-cpp" in module["path"]]
assert not library["is_traced"] and "ended before its code was moved" in library["why_not"], library
