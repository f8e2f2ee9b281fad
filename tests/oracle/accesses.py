"""Accesses of a program's own code in one form, whoever tells them: (instruction, kind, bytes, place, address). The program has no PIE.

Where the stack and the heap begin differs from run to run, so addresses there count from the first access to each.
"""
import re
import subprocess

# What the start-up files bring.
NOT_OWN = {"_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy", "_dl_relocate_static_pie"}
LOWEST_STACK = 0x1000000000  # Valgrind's, too


class OwnCode:
    def __init__(self, program, of=None):
        """`of`: the object file whose functions count; else all but those of the start-up files."""
        own = of and set(re.findall(r" [tT] (\S+)$", subprocess.run(["nm", of], stdout=subprocess.PIPE, text=True, check=True).stdout, re.M))
        symbols = subprocess.run(["nm", "-S", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.ranges = [(int(begin, 16), int(begin, 16) + int(size, 16)) for begin, size, name in
                       re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$", symbols, re.M) if (name in own if of else name not in NOT_OWN)]
        self.image_end = int(re.search(r"^([0-9a-f]+) . _end$", symbols, re.M)[1], 16)

    def accesses(self, told):
        """`told`: (instruction, kind, address, bytes) in order."""
        found, first = [], {}
        for pc, kind, address, size in told:
            if not any(begin <= pc < end for begin, end in self.ranges):
                continue
            place = "image" if address < self.image_end else "stack" if address >= LOWEST_STACK else "heap"
            if place != "image":
                address -= first.setdefault(place, address)
            found.append((f"{pc:x}", kind, size, place, address))
        return found


def of_replay(text):
    """What `assay trace replay` writes."""
    for line in text.splitlines():
        if not line.startswith("#"):
            pc, kind, where = line.split()
            address, size = where.split(",")
            yield int(pc, 16), kind, int(address, 16), int(size)


def of_lackey(text):
    """What Valgrind's lackey writes with --trace-mem=yes."""
    pc = 0
    for kind, address, size in re.findall(r"^(I | L| S| M)\s+([0-9a-f]+),(\d+)$", text, re.M):
        if kind == "I ":
            pc = int(address, 16)
        else:
            yield pc, kind.strip(), int(address, 16), int(size)


def must_agree(what, ours, theirs):
    for i, (a, b) in enumerate(zip(ours, theirs)):
        assert a == b, (*what, i, "ours", a, "theirs", b)
    assert len(ours) == len(theirs), (*what, len(ours), len(theirs))
