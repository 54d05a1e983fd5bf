#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokwatt sweep puts every GPU back, however it ends. A real command on two GPUs of the fake NVML driver, limits through the
installed helper; what the devices hold is read by another process. The cases wait for the clock (a reference takes half a
minute), so they run beside each other. And a simulated job in process, interrupted."""
import json, os, signal, socket, subprocess, sys, threading, time, traceback
import capd_nvml
from capd_nvml import NvmlBox, LIB, sure
from capdbox import BUILD, FOUND

TOKWATT = os.environ.get("TOKWATT", BUILD + "/app/tokwatt/tokwatt")
STEPS = "import sys,time\nf=open(sys.argv[1],'w')\nend=time.monotonic()+float(sys.argv[2])\nn=0\n" \
        "while time.monotonic()<end:\n  n+=1; f.write(f'step {n} loss 2.1\\n'); f.flush(); time.sleep(0.1)\n"
# The two lines of docs/guide/sweep.md: s is made once, then one message for each step.
MESSAGES = "import socket,sys,time\ns=socket.socket(socket.AF_UNIX,socket.SOCK_DGRAM); s.connect(sys.argv[1])\nn=0\n" \
           "while True:\n  n+=512; s.send(b'total %d' % n); time.sleep(0.1)\n"


class Sweep:
    """A helper, two GPUs, and a sweep of a command; or, with pid, of a process that runs already and holds the first GPU."""

    def __init__(self, job_s=400, caps="600W", more=(), progress=None, cmd=None, pid=False):
        self.box = NvmlBox()
        self.box.start()
        self.job = None
        env = dict(os.environ, **{k: v for k, v in self.box.env.items() if k.startswith("TW")})
        self.log, self.out = self.box.top + "/train.log", self.box.top + "/curve.csv"
        progress = progress or ["--progress-log", self.log, "--pattern", "step ([0-9]+)"]
        cmd = cmd or [sys.executable, "-c", STEPS, self.log, str(job_s)]
        target = ["--", *cmd]
        if pid:
            self.job = subprocess.Popen(cmd)
            self.box.faults(f"{self.box.gpus[0]} pid {self.job.pid}\n")
            target = ["--pid", str(self.job.pid)]
        self.p = subprocess.Popen([TOKWATT, "sweep", "--source", f"nvml:path={LIB}", "--cap", f"capd:{self.box.sock},free",
                                   "--caps", caps, "--for", "160s", "--out", self.out, "--json", *progress, *more, *target],
                                  env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def caps(self):
        return [self.box.cap(g) for g in self.box.gpus]

    def until_capped(self, caps=(600.0, 600.0)):
        sure(self.box.until(lambda: self.caps() == list(caps) or self.p.poll() is not None, 90.0))
        sure(self.p.poll() is None, self.p.returncode, self.p.stderr.read() if self.p.poll() is not None else "")

    def end(self, timeout=60):
        out, self.err = self.p.communicate(timeout=timeout)
        return self.p.returncode, json.loads(out) if out.strip() else None

    def sure_back(self):
        sure(self.box.until(lambda: self.caps() == [FOUND, FOUND]), self.caps(), self.box.audit()[-2000:])

    def done(self):
        for p in (self.p, self.job):
            if p and p.poll() is None:
                p.kill()
                p.wait()
        self.box.done()


def signalled(sig):
    def case(s):
        s.until_capped()
        s.p.send_signal(sig)
        rc, r = s.end()
        s.sure_back()
        sure(rc == 1 and r["put_back"] == 2 and r["ended_early"], rc, r, s.err)
    return case


def killed(s):
    s.until_capped()
    s.p.kill()
    s.p.wait()
    s.sure_back()


def job_ends(s):
    s.until_capped()
    rc, r = s.end()
    s.sure_back()
    sure(rc == 1 and r["put_back"] == 2 and "ended before" in s.err, rc, r, s.err)


def process_ends(s):
    s.until_capped((600.0, FOUND))  # the other GPU is not the job's
    s.job.kill()
    s.job.wait()
    rc, r = s.end()
    s.sure_back()
    sure(rc == 1 and r["n_gpus"] == 1 and r["put_back"] == 1 and "ended before" in s.err, rc, r, s.err)


def gpu_fails(s):
    s.until_capped()
    g, h = s.box.gpus
    s.box.faults(f"{g} lost\n")
    rc, r = s.end()
    sure(rc in (1, 2) and r["put_back"] <= 2, rc, r, s.err)
    sure(s.box.until(lambda: s.box.cap(h) == FOUND), s.err)
    s.box.faults("")
    sure(s.box.until(lambda: s.box.until(lambda: s.box.state(g).state == "idle", 1.0) and s.box.cap(g) == FOUND, 40.0), s.err, s.box.audit()[-3000:])


def whole(s):
    rc, r = s.end(300)
    s.sure_back()
    sure(rc == 0 and r["put_back"] == 2 and not r["ended_early"] and not r["simulated"], rc, r, s.err)
    sure([p["cap_w"] for p in r["points"]] == [400.0], r)
    sure(abs(r["t0"] / (10 * 512) - 1) < 0.05, r)  # ten messages of 512 in a second
    rows = open(s.out).read().splitlines()
    sure(len(rows) == 3 and ",700," in rows[1] and ",400," in rows[2], rows)
    pfi = subprocess.run([TOKWATT, "pfi", s.out, "--json"], capture_output=True, text=True)
    sure(pfi.returncode == 0 and json.loads(pfi.stdout)["jobs"][0]["points_capped"] == 1, pfi)


def socket_sweep():
    path = f"/tmp/sweep.{os.getpid()}.sock"
    s = Sweep(caps="400W", more=["--unit", "tokens/s", "--stop"], progress=["--progress-socket", path],
              cmd=[sys.executable, "-c", MESSAGES, path])
    return s


def simulated(sig):
    def case(_):
        p = subprocess.Popen([TOKWATT, "sweep", "--source", "sim:seed=3,gpus=2048,jobs=1000", "--job", "ft-dense-70b", "--json",
                              "--for", "10h", "--precision", "1.17%", "--points", "20"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        sure(p.poll() is None, "it was done too soon for this test")
        p.send_signal(sig)
        out, err = p.communicate(timeout=30)
        r = json.loads(out)
        sure(p.returncode == 1 and r["simulated"] and r["ended_early"] and r["put_back"] == r["n_gpus"], r, err)
        sure("interrupted" in err, err)
    return case


CASES = {
    "interrupt": (Sweep, signalled(signal.SIGINT)),
    "terminate": (Sweep, signalled(signal.SIGTERM)),
    "kill -9, put back by the helper": (Sweep, killed),
    "the job ends early": (lambda: Sweep(job_s=55), job_ends),
    "a process by its number, which ends": (lambda: Sweep(pid=True), process_ends),
    "a GPU is lost": (Sweep, gpu_fails),
    "a whole sweep, progress by socket": (socket_sweep, whole),
    "simulated, interrupt": (lambda: None, simulated(signal.SIGINT)),
    "simulated, terminate": (lambda: None, simulated(signal.SIGTERM)),
}
results = {}


def run(name, make, case):
    s = None
    try:
        s = make()
        case(s)
        results[name] = None
    except Exception:
        results[name] = traceback.format_exc()
    finally:
        if s:
            s.done()


only = sys.argv[1] if len(sys.argv) > 1 else ""
threads = [threading.Thread(target=run, args=(n, *c)) for n, c in CASES.items() if only in n]
for t in threads:
    t.start()
for t in threads:
    t.join()
for name, why in results.items():
    print(f"FAILED {name}\n{why}" if why else f"ok {name}")
failed = sum(1 for w in results.values() if w)
print(f"{len(results) - failed} passed, {failed} failed")
sys.exit(1 if failed or not results else 0)
