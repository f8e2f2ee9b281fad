#!/usr/bin/env python3
"""each_end.py PROGRAM END:STATUS…: runs PROGRAM END for each, and checks status and profile.

STATUS is the exit status, or -N for death by signal N. The program makes 100 objects of type `node`, each
written once, and frees 50 of them before it ends. With ASSAY_TEST_TOOLS=workingset the program is built for the
working set alone: then its profile must have touched lines; and so with the other tools.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

program = pathlib.Path(sys.argv[1])
for case in sys.argv[2:]:
    how, _, status = case.rpartition(":")
    folder = program.parent / ("end-" + how)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    done = subprocess.run([program, how], cwd=folder)
    if done.returncode != int(status):
        sys.exit(f"{how}: exit status {done.returncode}, not {status}")
    tool = os.environ.get("ASSAY_TEST_TOOLS", "heap").split(",")[0]
    has_heap = tool == "heap"
    report = subprocess.run(["assay", tool, "--json"], cwd=folder, capture_output=True, text=True)
    if report.returncode != 0:
        sys.exit(f"{how}: {report.stderr}")
    if list(folder.glob("assay.out/*/*.live")):
        sys.exit(f"{how}: the control page was left behind")
    if not has_heap:
        document = json.loads(report.stdout)
        if tool == "workingset" and document["total_lines"] < 10:
            sys.exit(f"{how}: the working set has fewer lines than the objects")
        if tool == "objects" and sum(g["count"] for g in document["groups"] if g["type"] == "node") < 100:
            sys.exit(f"{how}: not the words of 100 objects")
        if tool == "fields" and sum(s["writes"] for s in document["structs"] if s["name"] == "node") < 100:
            sys.exit(f"{how}: not the writes to 100 objects")
        continue
    nodes = [c for c in json.loads(report.stdout)["contexts"]
             if c["type"] == "node" and any(f["function"] == "main" for f in c["stack"])]
    for key, wanted in [("alloc_count", 100), ("writes", 100), ("live_count", 50)]:
        got = sum(c[key] for c in nodes)
        if got != wanted:
            sys.exit(f"{how}: {key} is {got}, not {wanted}")
