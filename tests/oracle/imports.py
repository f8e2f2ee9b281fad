#!/usr/bin/env python3
"""imports.py ALLOWED ARCHIVE [--wrapped]: what the archive leaves undefined must be in the list, and all of the list
be needed. --wrapped: the archive for the linker's --wrap, which refers to __real_NAME where the other asks dlsym."""
import re
import subprocess
import sys


def symbols(*flags):
    out = subprocess.run(["llvm-nm", *flags, sys.argv[2]], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1] for line in out.splitlines() if re.match(r"^[0-9a-f ]* [A-Za-z] \S+$", line)}


allowed = {line.split("#")[0].strip() for line in open(sys.argv[1])} - {""}
needed = symbols("-u") - symbols("--defined-only")
if "--wrapped" in sys.argv:
    needed = {name for name in needed if not name.startswith("__real_")} | {"dlsym", "dladdr1"}
    wrapped = {"__assay_own_malloc", "_start"}  # weak: from -fassay-wrap; what a static executable goes on with
    allowed |= wrapped
    needed |= wrapped
if needed - allowed:
    sys.exit("not in runtime/imports.txt: " + " ".join(sorted(needed - allowed)))
if allowed - needed:
    sys.exit("no longer needed, remove from runtime/imports.txt: " + " ".join(sorted(allowed - needed)))
