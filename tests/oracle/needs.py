#!/usr/bin/env python3
"""needs.py NEED… -- COMMAND…: runs COMMAND if this machine has what it needs: `ptrace`, `bpf`, or programs by name. Otherwise
says what is missing and exits with 77, which ctest takes for a skip, or with 1 where ASSAY_REQUIRE=all."""
import ctypes
import os
import shutil
import sys

PTRACE_TRACEME = 0


def may_trace():
    """Whether a process may let itself be traced; in a child, because it cannot be taken back."""
    child = os.fork()
    if child == 0:
        os._exit(0 if ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 else 1)
    return os.waitpid(child, 0)[1] == 0


def may_run_bpf():
    """Whether the kernel tells its types and takes programs from this user."""
    return os.geteuid() == 0 and os.access("/sys/kernel/btf/vmlinux", os.R_OK)


def main():
    split = sys.argv.index("--")
    needs, command = sys.argv[1:split], sys.argv[split + 1:]
    special = {"ptrace": may_trace, "bpf": may_run_bpf}
    missing = [need for need in needs if not (special[need]() if need in special else shutil.which(need))]
    if missing:
        required = os.environ.get("ASSAY_REQUIRE") == "all"
        print(f"{'failed' if required else 'skipped'}: this machine lacks what the test needs: {', '.join(missing)}")
        sys.exit(1 if required else 77)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
