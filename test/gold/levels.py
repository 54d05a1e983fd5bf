#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is promised of the levels of knowledge on public sweeps, and that nothing of a left-out model leaks in.

usage: levels.py CURVES.CSV TOKWATT

Aims are those of the specification; one that is known to be missed has a floor here beside it, so that it gets no worse."""
import csv
import json
import os
import subprocess
import sys
import tempfile

DROP = "infer_llama_8b_32g,infer_llama_8b_48g"
MIXED = ("emerald,perseus_a100", "emerald,perseus_a100,perseus_a40")
AIM = {"telemetry": 0.65, "probe1": 0.75, "probe2": 0.85, "curve": 0.92}
FLOOR = {"probe2": 0.76}  # the aim is missed: docs/benchmarks/allocation.md says by how much and why
TABLE = ("emerald", "perseus_a100", "perseus_a40") + MIXED + ("zeus_v100", "zeus_a40")
NOTHING_TO_WIN = {("emerald", 30), ("perseus_a100", 10), ("perseus_a100", 20), ("perseus_a100", 30), ("perseus_a40", 20),
                  ("perseus_a40", 30)}  # oracle minus equal under 0.3 point in the table
SIBLING = "bert-huge-uncased|dp1tp1pp8|mbs8x32"  # on perseus_a40, of the model of a job on perseus_a100
passed = failed = 0


def check(ok, text):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(text + ("" if ok else "  WRONG"), flush=True)


def bench(tokwatt, path, sets, cut):
    out = subprocess.run([tokwatt, "bench", "allocation", "--public", path, "--scale", "unit", "--sets", sets, "--drop", DROP,
                          "--cut", f"{cut}%", "--seeds", "2", "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def promises(tokwatt, path):
    for sets in MIXED:
        gap = {l["level"]: l["gap_recovered"] for l in bench(tokwatt, path, sets, 30)["levels"]}
        for level, aim in AIM.items():
            missed = "" if gap[level] >= aim else f"  (aim {aim} missed)"
            check(gap[level] >= FLOOR.get(level, aim), f"{sets} {level} {gap[level]:.3f}{missed}")
        check(gap["telemetry"] >= gap["board"], f"{sets} telemetry {gap['telemetry']:.3f} at least board {gap['board']:.3f}")
    for sets in TABLE:
        for cut in (10, 20, 30):
            d = bench(tokwatt, path, sets, cut)
            kept = {p["policy"]: p["throughput_frac"] for p in d["policies"]}
            curve = next(l["throughput_frac"] for l in d["levels"] if l["level"] == "curve")
            check(curve >= kept["equal"] - 0.001, f"{sets} {cut}% curve {100 * curve:.2f} equal {100 * kept['equal']:.2f}")
            near = abs(d["gap_points"] - 0.3) < 0.01  # the table has two digits
            check(near or d["nothing_to_win"] == ((sets, cut) in NOTHING_TO_WIN), f"{sets} {cut}% gap {d['gap_points']:.2f} points")


def said(tokwatt, path, level):
    return {j["job"].split("|")[0]: j["loss_at_30"][level] for j in bench(tokwatt, path, "perseus_a100", 30)["jobs"]}


def leaks(tokwatt, path):
    """Plant wild numbers in a sibling on another board: its model must not notice, another model must."""
    before = said(tokwatt, path, "telemetry")
    with tempfile.TemporaryDirectory() as folder:
        marked = os.path.join(folder, "curves.csv")
        with open(path, newline="") as f, open(marked, "w", newline="") as g:
            rows = csv.DictReader(f)
            w = csv.DictWriter(g, rows.fieldnames)
            w.writeheader()
            for r in rows:
                if r["job"] == SIBLING and r["setting"] != "300":
                    r["throughput"] = str(float(r["throughput"]) * 0.3)
                w.writerow(r)
        after = said(tokwatt, marked, "telemetry")
    check(before["bert-huge-uncased"] == after["bert-huge-uncased"], "a marked sibling is not seen by its model")
    check(before["bloom-3b"] != after["bloom-3b"], "and is seen by another model")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if not os.path.exists(sys.argv[1]):
        print(f"skipped: no {sys.argv[1]}")
        return 77
    promises(sys.argv[2], sys.argv[1])
    leaks(sys.argv[2], sys.argv[1])
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
