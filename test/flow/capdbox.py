# SPDX-License-Identifier: Apache-2.0
"""A privileged helper in a box for tests: devices that are files (test/fake/filecap.c), a configuration, and the
protocol of src/capd/wire.h spoken by code that shares nothing with ours."""
import math, os, shutil, signal, socket, struct, subprocess, tempfile, time

BUILD = os.environ["TW_BUILD"]
HELPER = BUILD + "/test/fake/tokwatt-capd-test"
POWERCUT = BUILD + "/test/fake/libpowercut.so"
ASK, REPLY = "=IIHHIdII48s32s", "=IIiHHHHIdddddddqqq48s128s"
MAGIC = 0x31435754
OPS = {n: i for i, n in enumerate("hello status acquire set read renew release leave allow".split())}
STATES = "idle reading found saved written confirmed expired safe restoring restored contested".split()
OK, EIO, EPARSE, ENOENT, ERANGE, EPERM, ELIMIT = 0, -3, -4, -5, -6, -10, -12
BUDGET, FREE = 1, 2
FOUND, SAFE = 700.0, 400.0


class Gone(Exception):
    """The helper hung up."""


class Reply:
    def __init__(self, data):
        (self.magic, self.seq, self.status, state, self.held, self.kind, self.n_gpu, self.left_ms, self.found,
         self.asked, self.requested, self.enforced, self.safe, self.min, self.max, self.begun, self.issued, self.read,
         uuid, text) = struct.unpack(REPLY, data)
        self.state = STATES[state]
        self.uuid, self.text = (b.split(b"\0")[0].decode() for b in (uuid, text))

    def __repr__(self):
        return f"<{self.status} {self.state} asked={self.asked} requested={self.requested} enforced={self.enforced} {self.text!r}>"


class Client:
    def __init__(self, path, timeout=6.0):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(timeout)
        self.s.connect(path)
        self.seq = 0

    def send(self, op, uuid="", watts=0.0, kind=0, lease=0.0, index=0, reason=""):
        self.seq += 1
        self.s.send(struct.pack(ASK, MAGIC, self.seq, OPS[op], kind, round(lease * 1000), watts, index, 0, uuid.encode(),
                                reason.encode()))

    def receive(self):
        data = self.s.recv(1024)
        if not data:
            raise Gone()
        return Reply(data)

    def ask(self, op, uuid="", **more):
        self.send(op, uuid, **more)
        r = self.receive()
        assert r.seq == self.seq, (r.seq, self.seq)
        return r

    def hold(self, uuid, kind=BUDGET, lease=5.0):
        r = self.ask("acquire", uuid, kind=kind, lease=lease)
        assert r.status == OK, r
        return r

    def set(self, uuid, watts, **more):
        return self.ask("set", uuid, watts=watts, **more)

    def close(self):
        self.s.close()


class Box:
    def __init__(self, n_gpu=2, users=("0 status,budget,free,allow",), watch="100ms", lease="100ms 60s", more=""):
        self.top = tempfile.mkdtemp(prefix="capd.")
        os.chmod(self.top, 0o755)
        self.dev, self.disk, self.conf, self.sock = (self.top + "/" + n for n in ("dev", "disk", "capd.conf", "sock"))
        os.mkdir(self.dev)
        os.mkdir(self.disk)
        self.gpus = [f"GPU-{i:08x}-0000-4000-8000-0000000000aa" for i in range(n_gpu)]
        for g in self.gpus:
            self.put(g, FOUND)
        me = os.getuid()
        users = [u if me == 0 or not u.startswith("0 ") else f"{me} {u[2:]}" for u in users]
        self.write_conf("".join(f"user {u}\n" for u in users) + "".join(
            f"gpu {g} min 200W max 700W safe {SAFE:g}W\n" for g in self.gpus) + f"watch {watch}\nlease {lease}\n" + more)
        self.p = None

    def write_conf(self, text):
        with open(self.conf, "w") as f:
            f.write(f"device filecap:{self.dev}\nsocket {self.sock}\nstate {self.disk}/state\naudit {self.disk}/audit.log\n" + text)
        os.chmod(self.conf, 0o644)

    # ---- devices
    def put(self, g, requested, enforced=None):
        with open(f"{self.dev}/{g}.put", "w") as f:
            f.write(f"{requested} {requested if enforced is None else enforced}\n")
        os.rename(f"{self.dev}/{g}.put", f"{self.dev}/{g}")

    def cap(self, g):
        return float(open(f"{self.dev}/{g}").read().split()[0])

    def fault(self, g, word=None):
        path = f"{self.dev}/{g}.fault"
        if word:
            with open(path + ".new", "w") as f:
                f.write(word + "\n")
            os.rename(path + ".new", path)
        elif os.path.exists(path):
            os.unlink(path)

    def writes(self, g):
        """(limit before, limit written) of each write so far."""
        try:
            rows = [line.split() for line in open(self.dev + "/log")]
        except FileNotFoundError:
            return []
        return [(float(a), float(b)) for u, a, b in rows if u == g]

    # ---- the helper
    def start(self, env=None, args=(), wait=True, wrap=(), **popen):
        full = dict(os.environ, **(env or {}))
        self.p = subprocess.Popen([*wrap, HELPER, "--config", self.conf, *args], env=full, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, **popen)
        if wait:
            assert self.until(lambda: self.p.poll() is not None or self.listens()), "the helper does not listen"
        return self.p

    def listens(self):
        try:
            Client(self.sock).close()
            return True
        except OSError:
            return False

    def run(self, *args, env=None, **more):
        return subprocess.run([HELPER, "--config", self.conf, *args], capture_output=True, text=True, timeout=20,
                              env=dict(os.environ, **(env or {})), **more)

    def client(self):
        return Client(self.sock)

    def state(self, g):
        c = self.client()
        r = c.ask("status", g)
        c.close()
        return r

    def kill(self, sig=signal.SIGKILL):
        self.p.send_signal(sig)
        return self.wait()

    def wait(self):
        out, self.err = self.p.communicate(timeout=20)
        return self.p.returncode

    def stop(self):
        return self.kill(signal.SIGTERM)

    def audit(self):
        with open(self.disk + "/audit.log", errors="replace") as f:
            return f.read()

    def saved(self):
        try:
            return open(self.disk + "/state").read()
        except FileNotFoundError:
            return None

    @staticmethod
    def until(test, timeout=8.0):
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if test():
                return True
            time.sleep(0.01)
        return bool(test())

    def done(self):
        if self.p and self.p.poll() is None:
            for g in self.gpus:
                self.fault(g)
            self.kill()
        shutil.rmtree(self.top, ignore_errors=True)


def main(module, only=None):
    """Run every test_ function of a module, each in a box of its own if it takes one."""
    import inspect, sys, traceback
    passed = failed = skipped = 0
    for name, fn in list(vars(module).items()):
        if not name.startswith("test_") or (only and only not in name):
            continue
        box = Box() if inspect.signature(fn).parameters else None
        try:
            why = fn(box) if box else fn()
            if why:
                skipped += 1
                print(f"skipped {name}: {why}")
            else:
                passed += 1
                print(f"ok {name}")
        except Exception:
            failed += 1
            print(f"FAILED {name}")
            traceback.print_exc(file=sys.stdout)
            if box and os.path.exists(box.disk + "/audit.log"):
                print(box.audit()[-3000:])
        finally:
            if box:
                box.done()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0
