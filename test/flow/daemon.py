#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon and its command line: an event from asking to return, limits put back, kill -9, ports that are taken."""
import json, os, signal, socket, subprocess, sys, tempfile, time, urllib.error, urllib.request

build = os.environ["TW_BUILD"]
TOKWATT, TOKWATTD = os.path.join(build, "tokwatt"), os.path.join(build, "tokwattd")
passed, failed = 0, 0


def check(what, ok, more=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"failed: {what} {more}")


class Daemon:
    def __init__(self, *args):
        self.log = tempfile.TemporaryFile("w+")
        self.p = subprocess.Popen([TOKWATTD, "--listen", "127.0.0.1:0", *args], stderr=self.log)
        self.at = None
        end = time.monotonic() + 30
        while time.monotonic() < end and self.p.poll() is None and not self.at:
            for line in self.lines():
                if "page at http://" in line:
                    self.at = line.split("http://")[1].strip()
            time.sleep(0.02)
        if not self.at:
            raise SystemExit(f"the daemon did not come up: {self.lines()}")

    def lines(self):
        self.log.flush()
        with os.fdopen(os.dup(self.log.fileno()), "r") as f:
            f.seek(0)
            return f.read().splitlines()

    def snap(self):
        return json.load(urllib.request.urlopen(f"http://{self.at}/v1/snapshot", timeout=5))

    def until(self, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            s = self.snap()
            if what(s):
                return s
            time.sleep(0.05)
        return None

    def stop(self, sig=signal.SIGTERM):
        self.p.send_signal(sig)
        return self.p.wait(timeout=20)


def tokwatt(*args):
    return subprocess.run([TOKWATT, *args], capture_output=True, text=True, timeout=60)


def whole_event():
    d = Daemon("--source", "sim:seed=3,gpus=16,jobs=4", "--speed", "100", "--no-twins")
    check("references are learnt", d.until(lambda s: s["now_s"] > 330))
    r = tokwatt("event", "add", "--cut", "25%", "--for", "60s", "--in", "5s", "--at", d.at)
    check("event add", r.returncode == 0 and r.stdout.startswith("event 1:"), r.stdout + r.stderr)
    r = tokwatt("event", "add", "--cut", "25%", "--for", "60s", "--at", d.at)
    check("an overlap is bad news", r.returncode == 1 and "overlaps event 1" in r.stderr, r.stderr)
    r = tokwatt("event", "add", "--cut", "99%", "--for", "60s", "--at", d.at)
    check("too deep is bad news with the nearest", r.returncode == 1 and "the nearest is" in r.stderr, r.stderr)
    s = d.until(lambda s: s["event"]["state"] == "hold")
    check("the event holds", s is not None)
    if s:
        target = s["event"]["target_w"]
        check("the target is the cut of the baseline", abs(target - 0.75 * s["event"]["baseline_w"]) < 1)
        check("limits bind", all(g["cap_w"] < 700 for g in s["gpus"]), s["gpus"][0])
        check("the sum of limits stays near the target", s["site"]["cap_sum_w"] <= 1.15 * target + 1)
        r = tokwatt("explain", s["gpus"][0]["uuid"], "--at", d.at)
        check("explain gives a reason", r.returncode == 0 and "event:" in r.stdout, r.stdout)
    s = d.until(lambda s: s["event"]["state"] == "done")
    check("power returns", s is not None)
    r = tokwatt("event", "list", "--json", "--at", d.at)
    check("the list has it", r.returncode == 0 and json.loads(r.stdout)["events"][0]["state"] == "done", r.stdout)
    r = tokwatt("status", "--at", d.at)
    check("status says simulated", r.returncode == 0 and r.stdout.startswith("simulated site: 16 GPUs"), r.stdout)
    check("ends with 0", d.stop() == 0)


def ended_in_the_middle():
    d = Daemon("--source", "sim:seed=3,gpus=16,jobs=4", "--speed", "100", "--no-twins")
    d.until(lambda s: s["now_s"] > 120)
    tokwatt("event", "add", "--cut", "30%", "--for", "10m", "--at", d.at)
    check("capped", d.until(lambda s: s["event"]["state"] == "hold"))
    check("SIGTERM in a hold ends with 0", d.stop() == 0)
    check("limits are put back", any("limits are as they were found" in l for l in d.lines()) and
          not any("could not be put back" in l for l in d.lines()), d.lines()[-3:])


def killed():
    d = Daemon("--source", "sim:seed=3,gpus=16,jobs=4", "--speed", "100")
    d.until(lambda s: s["now_s"] > 20)
    check("kill -9 ends it", d.stop(signal.SIGKILL) == -9)
    r = tokwatt("status", "--at", d.at)
    check("status says that nobody answers", r.returncode == 2 and "no daemon at" in r.stderr and r.stderr.count("\n") == 1, r.stderr)


def ports():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    port = str(s.getsockname()[1])
    r = subprocess.run([TOKWATTD, "--listen", "127.0.0.1:" + port], capture_output=True, text=True, timeout=20)
    check("daemon: a port that is taken", r.returncode == 2 and port in r.stderr, r.stderr)
    r = tokwatt("demo", "--port", port, "--for", "5s")
    check("demo: a port that is taken, one line", r.returncode == 2 and port in r.stderr and r.stderr.count("\n") == 1, r.stderr)
    s.close()


def demo():
    r = tokwatt("demo", "--port", "0", "--for", "8s", "--gpus", "16")
    lines = r.stdout.splitlines()
    check("demo ends with 0", r.returncode == 0, r.stderr)
    check("demo gives the address first", lines[0].startswith("page: http://127.0.0.1:"), lines[:1])
    for word in ("forecast skill", "gap recovered", "tokens saved"):
        check(f"demo: {word}, said to be simulated", any(word in l and "simulated" in l for l in lines), lines[-6:])
    check("demo gives the address last", lines[-1].startswith("page: http://127.0.0.1:"), lines[-1:])


def cannot_put_back():
    """A hard limit under what was found: nothing may be put back over it, and nobody may be told that it was."""
    d = Daemon("--source", "sim:seed=3,gpus=16,jobs=4", "--speed", "100", "--no-twins", "--limit", "6kW")
    check("limits are lowered", d.until(lambda s: s["site"]["cap_sum_w"] < 7000))
    check("limits that stay lowered are bad news", d.stop() == 1)
    check("and it is said", any("could not be put back" in l for l in d.lines()) and
          not any("as they were found" in l for l in d.lines()), d.lines()[-3:])


def disobedient():
    """GPUs that cannot be read, or take limits and do not hold them: said in words, never as nan."""
    uuid = "GPU-51a70000-0000-4000-8000-00000000000"
    d = Daemon("--source", f"sim:seed=3,gpus=16,jobs=4,ignore={uuid}3,stuck={uuid}9", "--speed", "100", "--no-twins")
    early = tokwatt("status", "--at", d.at).stdout
    check("no nan before anything is known", "nan" not in early and " - " in early, early)
    d.until(lambda s: s["now_s"] > 60)
    tokwatt("event", "add", "--cut", "30%", "--for", "10m", "--at", d.at)
    check("holds all the same", d.until(lambda s: s["event"]["state"] == "hold"))
    r = tokwatt("status", "--at", d.at)
    check("status names who does not hold its limit", f"hold a higher limit than was asked for, the first being {uuid}3" in r.stdout, r.stdout)
    check("status counts who cannot be read", "1 GPUs have no fresh reading" in r.stdout, r.stdout)
    said = r.stdout + "".join(tokwatt("explain", f"{uuid}{k}", "--at", d.at).stdout for k in (3, 9))
    check("no nan for what is not known", "nan" not in said, said)
    d.stop()


def short_ways():
    r = subprocess.run([TOKWATTD, "--check", "--source", "sim:gpus=16,jobs=4"], capture_output=True, text=True, timeout=20)
    check("--check", r.returncode == 0 and "16 simulated GPUs, 4 jobs" in r.stderr, r.stderr)
    r = subprocess.run([TOKWATTD, "--once", "--listen", "none"], capture_output=True, text=True, timeout=20)
    check("--once", r.returncode == 0, r.stderr)
    for gpus in (512, 8192):
        r = subprocess.run([TOKWATTD, "--once", "--listen", "none", "--source", f"sim:gpus={gpus}"], capture_output=True, text=True, timeout=60)
        check(f"a site of {gpus} GPUs with its twins", r.returncode == 0, r.stderr)
    r = subprocess.run([TOKWATTD, "--once", "--listen", "none", "--limit", "1kW"], capture_output=True, text=True, timeout=20)
    check("a hard limit that no device can keep", r.returncode == 2 and "a hard limit of 1000 W is below 12800 W" in r.stderr, r.stderr)
    r = subprocess.run([TOKWATTD, "--listen", "nowhere"], capture_output=True, text=True, timeout=20)
    check("nothing is told to stop that did not begin", r.returncode == 2 and "nan" not in r.stderr and "STOP" not in r.stderr, r.stderr)
    for args in (["--speed", "0"], ["--speed", "nan"], ["--source", "sim:gpus=x"], ["--source", "nothing"], ["--listen", "0.0.0.0:1"], ["what"]):
        r = subprocess.run([TOKWATTD, *args], capture_output=True, text=True, timeout=20)
        check(f"{args} is unusable", r.returncode == 2 and r.stderr.strip(), r.stderr)


for part in (short_ways, ports, whole_event, ended_in_the_middle, cannot_put_back, disobedient, killed, demo):
    part()
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
