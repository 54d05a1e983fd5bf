#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Equal weight, the best split and PFI of public sweeps, computed here from the points alone, with no code of the library.

usage: alloc_oracle.py CURVES.CSV            print the table
       alloc_oracle.py CURVES.CSV TOKWATT    and hold the program against it: within 0.1 point in every row

Every job is put at P_0 = T_0 = 1; the two scaled copies of the emerald inference job and jobs whose lowest point lies above
70 % of P_0 are left out. Equal: one share of its own power for all, those at their lowest point made up by the others.
Best: a dynamic programme over caps in steps of 1/STEP, straight lines between measured points. The table of the
specification is kept below: both programs must agree with it."""
import csv
import json
import subprocess
import sys

STEP = 200
DROP = ("infer_llama_8b_32g", "infer_llama_8b_48g")
FLEETS = {  # name: jobs, then (equal, oracle) at 10, 20 and 30 %
    "emerald": (4, (95.56, 96.91), (91.17, 92.16), (86.02, 86.30)),
    "perseus_a100": (4, (95.34, 95.54), (86.64, 86.94), (72.82, 73.04)),
    "perseus_a40": (4, (96.90, 97.21), (91.64, 91.87), (81.41, 81.63)),
    "emerald,perseus_a100": (8, (95.45, 96.44), (88.91, 90.99), (79.42, 83.29)),
    "emerald,perseus_a100,perseus_a40": (12, (95.93, 96.71), (89.82, 91.34), (80.08, 82.83)),
    "zeus_v100": (37, (97.85, 98.62), (94.52, 95.35), (89.96, 90.95)),
    "zeus_a40": (29, (97.84, 99.10), (94.42, 95.89), (83.54, 86.75)),
}
PFI = {  # mean of ratios, ratio of sums
    "ft_llama_8b_dolly": (2.657, 1.500), "infer_llama_8b": (2.578, 1.530), "pt_mpt_13b_lg": (1.403, 1.190),
    "pt_mpt_7b_fast": (1.512, 1.213), "bert-huge": (1.556, 1.159), "bloom-3b": (1.688, 1.259), "gpt3-xl": (1.579, 1.163),
    "wide-resnet101": (1.362, 1.095),
}


def load(path):
    jobs = {}
    for row in csv.DictReader(open(path, newline="")):
        first, _, second = row["setting"].partition("@")
        key = (row["set"], row["gpu"], row["job"], second)
        jobs.setdefault(key, []).append((float(first), float(row["power_w"]), float(row["throughput"])))
    relative = {}
    for key, points in jobs.items():
        top = max(points)
        relative[key] = sorted((p / top[1], t / top[2]) for _, p, t in points)
    return relative


def at(points, x):
    if x <= points[0][0]:
        return points[0][1]
    for (x0, t0), (x1, t1) in zip(points, points[1:]):
        if x <= x1:
            return t1 if x1 <= x0 else t0 + (t1 - t0) * (x - x0) / (x1 - x0)
    return points[-1][1]


def equal(fleet, cut):
    low, high = 0.0, 1.0
    for _ in range(60):
        level = (low + high) / 2
        if sum(max(level, c[0][0]) for c in fleet) > len(fleet) * (1 - cut):
            high = level
        else:
            low = level
    return sum(at(c, max(low, c[0][0])) for c in fleet) / len(fleet)


def best(fleet, cut):
    steps = round(len(fleet) * (1 - cut) * STEP)
    table = [0.0] * (steps + 1)
    for c in fleet:
        first = -int(-c[0][0] * STEP // 1)  # rounded up: a cap below the lowest point is none
        value, top = [], 0.0
        for k in range(first, STEP + 1):
            top = max(top, at(c, k / STEP))  # a cap may be left unused
            value.append(top)
        new = [-1e9] * (steps + 1)
        for used in range(steps + 1 - first):
            base = table[used]
            if base < -1e8:
                continue
            for k in range(min(len(value), steps + 1 - first - used)):
                if base + value[k] > new[used + first + k]:
                    new[used + first + k] = base + value[k]
        table = new
    return max(table) / len(fleet)


def ours(tokwatt, path, sets, cut):
    out = subprocess.run([tokwatt, "allocate", path, "--scale", "unit", "--sets", sets, "--drop", ",".join(DROP), "--cut",
                          f"{cut}%", "--policy", "all", "--json"], capture_output=True, text=True, check=True).stdout
    d = json.loads(out)
    return d["n_jobs"], {p["policy"]: p for p in d["policies"]}


def check_pfi(tokwatt, path, jobs):
    out = subprocess.run([tokwatt, "pfi", path, "--json"], capture_output=True, text=True, check=True).stdout
    got = {(j["set"], j["job"]): j for j in json.loads(out)["jobs"]}
    ok = bad = 0
    for name, (mean, ros) in PFI.items():
        (key,) = [k for k in jobs if (k[0], k[2]) == ("emerald", name) or k[0] == "perseus_a100" and k[2].startswith(name)]
        points = [(1 - x, 1 - t) for x, t in jobs[key] if x < 1]
        here = (sum(d / l for d, l in points) / len(points), sum(d for d, _ in points) / sum(l for _, l in points))
        j = got[key[0], key[2]]
        fine = all(abs(a - b) < 0.0006 and abs(c - b) < 0.0006 for a, b, c in zip(here, (mean, ros), (j["pfi"], j["pfi_ros"])))
        ok, bad = ok + fine, bad + (not fine)
        print(f"PFI {key[2]:38s} here {here[0]:.3f} / {here[1]:.3f}  tokwatt {j['pfi']:.3f} / {j['pfi_ros']:.3f}  "
              f"[{j['pfi_low']:.2f}, {j['pfi_high']:.2f}]{'' if fine else '  WRONG'}")
    plain = got["gridpilot_v100", "inference_memory_bound@1380"]["pfi_unguarded"]
    fine = abs(plain - 12.06) < 0.005
    print(f"gridpilot inference at 1380 MHz without guards: {plain:.2f}, expected 12.06{'' if fine else '  WRONG'}")
    return ok + fine, bad + (not fine)


def main():
    path, tokwatt = sys.argv[1], (sys.argv[2:] or [None])[0]
    jobs = load(path)
    passed = failed = 0
    for sets, (n_want, *rows) in FLEETS.items():
        fleet = [c for k, c in jobs.items() if k[0] in sets.split(",") and k[2] not in DROP and len(c) > 1 and c[0][0] <= 0.7]
        for cut, (equal_want, best_want) in zip((10, 20, 30), rows):
            e, b = 100 * equal(fleet, cut / 100), 100 * best(fleet, cut / 100)
            line = f"{sets:34s} {len(fleet):2d} {cut}%  here {e:.2f} / {b:.2f}  table {equal_want:.2f} / {best_want:.2f}"
            fine = len(fleet) == n_want and abs(e - equal_want) <= 0.1 and abs(b - best_want) <= 0.1
            if tokwatt:
                n, p = ours(tokwatt, path, sets, cut)
                te, to, tc = (100 * p[k]["throughput_frac"] for k in ("equal", "oracle", "curve"))
                fine = fine and n == n_want and abs(te - equal_want) <= 0.1 and abs(to - best_want) <= 0.1
                fine = fine and abs(te - e) <= 0.1 and abs(to - b) <= 0.1
                fine = fine and tc >= te - 0.1 and tc <= to + 1e-6  # never below equal minus 0.1, never above the best
                gap = p["curve"]["gap_recovered"]
                fine = fine and (gap is None) == (to - te < 0.3)
                line += f"  tokwatt {te:.2f} / {to:.2f}  curve {tc:.2f} ({'little to win' if gap is None else f'{gap:.2f} of the gap'})"
            passed, failed = passed + fine, failed + (not fine)
            print(line + ("" if fine else "  WRONG"), flush=True)
    if tokwatt:
        ok, bad = check_pfi(tokwatt, path, jobs)
        passed, failed = passed + ok, failed + bad
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    open(sys.argv[1]).close()
except OSError as e:
    print(f"skipped: {e}")
    sys.exit(77)
sys.exit(main())
