#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed helper with its NVML back end, unchanged, on the fake driver. What the device holds is read by another
process (tokwatt gpus). 700 W found and power-on default, 400 W safe."""
import json, os, signal, subprocess, sys
import capdbox
from capdbox import *

capdbox.HELPER = BUILD + "/app/tokwatt-capd/tokwatt-capd"
LIB = os.environ.get("TW_FAKE_NVML_DIR", BUILD + "/test/fake/nvml") + "/libnvidia-ml.so.1"


def sure(x, *more):
    assert x, more


class NvmlBox(Box):
    def __init__(self):
        super().__init__(n_gpu=0, more="")
        self.site = self.top + "/site"
        self.gpus = [f"GPU-51a70000-0000-4000-8000-{i:012x}" for i in range(2)]
        me = os.getuid()
        self.write_conf(f"user {me} status,budget,free,allow\nwatch 100ms\n" + "".join(
            f"gpu {g} min 200W max 700W safe {SAFE:g}W\n" for g in self.gpus))
        text = open(self.conf).read().replace(f"filecap:{self.dev}", f"nvml:path={LIB},retry=100ms")
        with open(self.conf, "w") as f:
            f.write(text)
        self.env = {"TW_FAKE_NVML": self.site, "TW_FAKE_NVML_CONF": "gpus=2,jobs=1,seed=1",
                    "LD_PRELOAD": BUILD + "/test/fake/libkeepenv.so", "ASAN_OPTIONS": "verify_asan_link_order=0"}

    def start(self, **more):
        return super().start(env=self.env, **more)

    def faults(self, text):
        with open(self.site + ".new", "w") as f:
            f.write(text)
        os.rename(self.site + ".new", self.site + ".faults")

    def device(self, g):
        env = dict(os.environ, **{k: v for k, v in self.env.items() if k.startswith("TW")})
        out = subprocess.run([os.environ.get("TOKWATT", BUILD + "/app/tokwatt/tokwatt"), "gpus", "--json", "--source",
                              f"nvml:path={LIB}"], env=env, capture_output=True, text=True).stdout
        return next(x for x in json.loads(out)["gpus"] if x["uuid"] == g)

    def cap(self, g):
        return self.device(g)["cap_w"]


def boxed(fn):
    def run():
        box = NvmlBox()
        try:
            return fn(box)
        except Exception:
            print(box.audit()[-3000:])
            raise
        finally:
            box.done()
    return run


@boxed
def test_r08_set_and_read_back(box):
    box.start()
    g = box.gpus[0]
    c = box.client()
    sure(c.hold(g).found == FOUND)
    r = c.set(g, 300.0)
    sure((r.status, r.requested) == (OK, 300.0), r)
    sure(box.until(lambda: box.state(g).state == "confirmed") and box.cap(g) == 300.0, box.state(g))
    sure(c.ask("release", g).status == OK and box.cap(g) == FOUND)


@boxed
def test_r08_permission_denied_by_the_driver(box):
    box.start()
    g, h = box.gpus
    c = box.client()
    c.hold(g)
    c.hold(h)
    box.faults(f"{g} denied\n")
    sure(c.set(g, 300.0).status == EPERM)
    sure(c.set(h, 300.0).status == OK and box.cap(h) == 300.0 and box.cap(g) == FOUND)


@boxed
def test_r09_driver_reload_is_a_drift_that_is_answered(box):
    box.start()
    g = box.gpus[0]
    c = box.client()
    c.hold(g, lease=30.0)
    c.set(g, 300.0)
    sure(box.until(lambda: box.state(g).state == "confirmed"))
    box.faults("* reload 300ms\n")  # limits are back at their default afterwards
    sure(box.until(lambda: "drift: confirmed" in box.audit()), box.state(g))
    sure(box.until(lambda: box.state(g).state == "confirmed") and box.cap(g) == 300.0)


@boxed
def test_r10_killed_client_and_lease_end(box):
    box.start()
    g, h = box.gpus
    c = box.client()
    c.hold(g, lease=2.0)
    c.hold(h, kind=FREE, lease=30.0)
    c.set(g, 600.0)
    c.set(h, 600.0)
    sure(box.until(lambda: box.state(g).state == "safe") and box.cap(g) == SAFE)
    c.close()
    sure(box.until(lambda: box.state(h).state == "idle") and box.cap(h) == FOUND)


@boxed
def test_r11_killed_helper(box):
    box.start()
    g = box.gpus[0]
    c = box.client()
    c.hold(g)
    c.set(g, 600.0)
    box.kill()
    sure(box.cap(g) == 600.0)
    box.start()
    sure(box.until(lambda: box.state(g).state == "safe") and box.cap(g) == SAFE)
    sure(box.client().ask("allow", g).status == OK and box.cap(g) == FOUND)


@boxed
def test_r11_a_lost_gpu_does_not_hold_up_the_other(box):
    box.start()
    g, h = box.gpus
    c = box.client()
    for u in (g, h):
        c.hold(u, lease=30.0)
        c.set(u, 500.0)
    box.faults(f"{g} lost\n")
    sure(c.ask("release", g).status != OK)
    sure(c.ask("release", h).status == OK and box.cap(h) == FOUND)
    box.faults("")
    sure(box.until(lambda: box.state(g).state == "safe", 20.0) and box.cap(g) == SAFE, box.state(g))


if __name__ == "__main__":
    sys.exit(capdbox.main(sys.modules[__name__], sys.argv[1] if len(sys.argv) > 1 else None))
