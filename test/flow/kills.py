#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Helper and clients under random kill -9, with leases of a second. usage: kills.py [SECONDS [SEED]]

Watched from outside, by the devices' own log of writes: a limit goes up only to what a client asked for, or to the value
found as often as somebody gave that back; when the helper dies, every GPU that it changed is in its saved state; at the end
every GPU is at its safe value or below, or at the value found. Ends with the line `violations: N`."""
import os, random, signal, sys, time
from capdbox import *

KIND = [BUDGET, BUDGET, FREE, FREE]  # of each GPU's client


def client(box, i, seed):
    """Hold GPU i for ever, in all the ways there are; what is asked is written down before it is asked."""
    rng = random.Random(seed)
    g = box.gpus[i]
    log = open(f"{box.top}/asked.{i}", "a", buffering=1)
    while True:
        try:
            c = box.client()
            while True:
                if c.ask("acquire", g, kind=KIND[i], lease=1.0).status != OK:
                    time.sleep(0.02)
                    continue
                for _ in range(rng.randrange(1, 30)):
                    w = round(rng.uniform(200.0, 690.0), 3)
                    log.write(f"set {w:.3f}\n")
                    c.set(g, w)
                    time.sleep(rng.uniform(0.0, 0.01))
                how = rng.random()
                if how < 0.6:
                    log.write("back 700.000\n")
                    c.ask("release", g)
                elif how < 0.8:
                    c.ask("leave", g)
                    log.write("back 700.000\n")
                    c.ask("allow", g)
                else:
                    time.sleep(1.3)  # silence
        except (Gone, OSError):
            time.sleep(0.01)


def spawn(box, i, seed):
    pid = os.fork()
    if pid == 0:
        try:
            client(box, i, seed)
        finally:
            os._exit(0)
    return pid


def main():
    seconds, seed = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rng = random.Random(seed)
    box = Box(n_gpu=len(KIND))
    violations, kills = [], {"helper": 0, "client": 0}
    try:
        box.start()
        pids = [spawn(box, i, rng.random()) for i in range(len(KIND))]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(rng.uniform(0.0, 0.3))
            if rng.random() < 0.5:
                box.kill()
                kills["helper"] += 1
                for g in box.gpus:
                    if box.cap(g) != FOUND and g not in box.saved():
                        violations.append(f"{g} holds {box.cap(g)} W and is not in the saved state")
                box.start()
            else:
                i = rng.randrange(len(KIND))
                os.kill(pids[i], signal.SIGKILL)
                os.waitpid(pids[i], 0)
                kills["client"] += 1
                pids[i] = spawn(box, i, rng.random())
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        box.kill()
        box.start()
        for g, kind in zip(box.gpus, KIND):
            rest = ("idle", "safe") if kind == BUDGET else ("idle",)
            if not box.until(lambda: box.state(g).state in rest):
                violations.append(f"{g} does not come to rest: {box.state(g)}")
            elif not (box.cap(g) == FOUND if box.state(g).state == "idle" else box.cap(g) <= SAFE):
                violations.append(f"{g} rests at {box.cap(g)} W, {box.state(g).state}")
        raises = 0
        for i, g in enumerate(box.gpus):
            asked, back = set(), 0
            for line in open(f"{box.top}/asked.{i}"):
                what, w = line.split()
                asked.add(float(w)) if what == "set" else None
                back += what == "back"
            for before, w in box.writes(g):
                if w <= before + 0.5:
                    continue
                raises += 1
                if w == FOUND:
                    back -= 1
                    if back < 0 and KIND[i] == BUDGET:
                        violations.append(f"{g} was put back more often than anybody allowed")
                elif w not in asked:
                    violations.append(f"{g} raised from {before} to {w} W, and nobody asked for that")
        if box.run("--audit", box.disk + "/audit.log").returncode:
            violations.append("the audit log does not hold")
        writes = sum(len(box.writes(g)) for g in box.gpus)
    finally:
        box.done()
    for v in violations[:20]:
        print(v)
    print(f"{kills['helper']} kills of the helper, {kills['client']} of clients, {writes} writes, {raises} of them up")
    print(f"violations: {len(violations)}")
    ok = not violations and kills["helper"] > 0 and raises > 0
    print(f"{1 if ok else 0} passed, {0 if ok else 1} failed")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
