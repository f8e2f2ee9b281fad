"""Which lines a profile of the working set has, read a second time, without Assay's reader of abi/lines.h."""
import ast
import re
import subprocess


def numbers(data):
    """The numbers of the lines in the bytes of a record: groups of 64 lines."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    group = 0
    while at < len(data):
        group += number()
        repeats, planes = number(), data[at]
        at += 1
        lines = set()
        for _ in range(bin(planes).count("1")):
            word = int.from_bytes(data[at:at + 8], "little")
            at += 8
            lines |= {bit for bit in range(64) if word >> bit & 1}
        for group in range(group, group + repeats + 1):
            for line in lines:
                yield group * 64 + line


def dumped(profile):
    """The records of the profile, as text."""
    return subprocess.run(["assay", "dump", str(profile)], text=True, capture_output=True, check=True).stdout.splitlines()


def first_snapshot(records):
    """The numbers of all lines that the only snapshot has."""
    lines = set()
    for text in records:
        if found := re.match(r"@\d+ WorkingSetLines tick=1 ticks=1 count=1 \w+=(.*)", text):
            lines |= set(numbers(ast.literal_eval("b" + found[1])))
    return lines
