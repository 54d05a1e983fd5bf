#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""last and mean60 on real recordings against figures that an independent program computed (point 30, point 60, mean 30,
mean 60, W per GPU), and the numbers of windows. usage: forecast.py TOKWATT"""
import json, os, subprocess, sys

data = os.path.join(os.environ.get("TW_DATA", ""), "power")
if not os.path.isfile(os.path.join(data, "splits.csv")):
    print("skipped: TW_DATA has no power/splits.csv")
    sys.exit(77)
want = {  # windows; then the four figures of each model, and how far they may be off
    "nvsmi-llm-infer": (5812, 0.02, (14.9, 19.1, 10.7, 12.5), (17.2, 21.6, 10.6, 12.5)),
    "smc-h100-train/gpt3-64n": (105305, 0.02, (86.6, 90.6, 62.1, 61.0), (64.7, 69.0, 23.6, 24.1)),
    "smc-h100-train/lora70b-1n": (1680, 0.02, (46.8, 55.7, 35.1, 38.7), (41.7, 51.6, 27.9, 30.0)),
    "nvsmi-h100-train/h100x8": (9232, 0.02, (172.1, 142.9, 111.7, 139.9), (153.9, 192.3, 111.2, 93.2)),
}
out = subprocess.run([sys.argv[1], "evaluate", data, "--set", ",".join(want), "--models", "last,mean60", "--json"],
                     capture_output=True, text=True)
if out.returncode != 0:
    sys.exit(f"exit {out.returncode}: {out.stderr}")
bad = 0
for s in json.loads(out.stdout)["sets"]:
    windows, tol, *figures = want[s["set"]]
    for model, figure in zip(s["models"], figures):
        for score in model["scores"]:
            key = {"point": 0, "mean": 2}.get(score["target"])
            if key is None:
                continue
            expect = figure[key + (score["horizon_s"] == 60)]
            ok = abs(score["mae_w"] - expect) <= tol * expect and score["windows"] == windows
            bad += not ok
            print(f"{'ok  ' if ok else 'FAIL'} {s['set']} {model['model']} {score['target']} {score['horizon_s']}: "
                  f"{score['mae_w']:.2f} W on {score['windows']} windows; {expect} on {windows}")
sys.exit(1 if bad else 0)
