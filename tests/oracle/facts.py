#!/usr/bin/env python3
"""facts.py REPORT.json FACT…: every fact must hold, or the ones that do not are printed with their values.
Without a FACT, they are read from standard input, one a line.

A fact is PATH OP VALUE, or PATH alone (it must exist). PATH walks the JSON: `totals.alloc_count`,
`contexts[type=Node].reads`, `contexts[type=Node&stack~make_node].size.min`. A selector keeps the elements
whose key equals (=) or whose JSON text contains (~) the word; a number is summed over what was selected.
`len(PATH)` counts. OP is one of == != < <= > >= and ~ (contains).
"""
import json
import operator
import re
import sys

OPS = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt,
       ">": operator.gt, "~": lambda a, b: str(b) in json.dumps(a)}


def select(items, condition):
    for part in condition.split("&"):
        key, op, word = re.fullmatch(r"([\w.]+)(=|~)(.*)", part).groups()
        items = [i for i in items if (str(i.get(key)) == word if op == "=" else word in json.dumps(i.get(key)))]
    return items


def walk(value, path):
    """All values that the path leads to."""
    found = [value]
    for name, condition in re.findall(r"([\w]+)(?:\[([^\]]*)\])?", path):
        step = []
        for v in found:
            v = v[name] if isinstance(v, dict) and name in v else None
            if v is None:
                continue
            step += select(v, condition) if condition else [v]
        found = step
    return found


def evaluate(report, path):
    counting = re.fullmatch(r"len\((.*)\)", path)
    found = walk(report, counting.group(1) if counting else path)
    if counting:
        return len(found[0]) if len(found) == 1 and isinstance(found[0], list) else len(found)
    if not found:
        raise KeyError(path)
    if len(found) > 1 and all(isinstance(v, (int, float)) for v in found):
        return sum(found)
    return found[0] if len(found) == 1 else found


def main():
    with open(sys.argv[1]) as file:
        report = json.load(file)
    failed = False
    facts = sys.argv[2:] or [line.strip() for line in sys.stdin if line.strip()]
    for fact in facts:
        match = re.fullmatch(r"(.+?)\s*(==|!=|<=|>=|<|>|~)\s*([^=<>~]+)", fact) if " " in fact else None
        path = match.group(1) if match else fact
        try:
            value = evaluate(report, path)
        except KeyError:
            print(f"not there: {fact}")
            failed = True
            continue
        if match:
            wanted = match.group(3)
            try:
                wanted = json.loads(wanted)
            except ValueError:
                pass
            if not OPS[match.group(2)](value, wanted):
                print(f"does not hold: {fact} (it is {json.dumps(value)[:400]})")
                failed = True
    sys.exit(failed)


if __name__ == "__main__":
    main()
