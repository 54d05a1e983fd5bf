# SPDX-License-Identifier: Apache-2.0
"""What the tests here share: a daemon to talk to, and cases that are counted."""
import http.client, json, os, re, signal, subprocess, sys, tempfile, time, traceback

BUILD = os.environ.get("TW_BUILD", "build")
TOKWATTD = os.environ.get("TOKWATTD", os.path.join(BUILD, "app/tokwattd/tokwattd"))
FAKE = os.path.join(BUILD, "test/browser/fake_daemon")


class Daemon:
    """A program that says where it serves, `listening on PORT` or `page at http://127.0.0.1:PORT`, until told to end.
    What it writes goes to a file, so that it never waits for us."""

    def __init__(self, *args, program=FAKE):
        self.log = tempfile.NamedTemporaryFile("w+", prefix="tokwatt-daemon-", suffix=".log")
        self.proc = subprocess.Popen([program, *args], stdout=self.log, stderr=subprocess.STDOUT)

        def address():
            text = self.said()
            m = re.search(r"(?:listening on |page at http://127\.0\.0\.1:)(\d+)\b", text)
            if not m and self.proc.poll() is not None:
                raise RuntimeError(f"{program} ended: {text}")
            return m and int(m.group(1))

        self.port = until(address)
        self.url = f"http://127.0.0.1:{self.port}"
        until(lambda: self.ask("GET", "/v1/snapshot")[0] == 200)  # the first turn is over

    def said(self):
        with open(self.log.name) as f:
            return f.read()

    def ask(self, method, path, body=None, headers=None):
        """status, headers, body of one request."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        h = {"Content-Type": "application/json"} if body is not None else {}
        h.update(headers or {})
        c.request(method, path, body, h)
        r = c.getresponse()
        data = r.read()
        c.close()
        return r.status, r.headers, data

    def get(self, path):
        status, _, data = self.ask("GET", path)
        assert status == 200, (path, status, data[:200])
        return strict_json(data)

    def pause(self):
        self.proc.send_signal(signal.SIGUSR1)

    def rss_kb(self):
        """Memory in use; 0 under a sanitizer, whose own memory says nothing."""
        with open(f"/proc/{self.proc.pid}/maps") as f:
            if "libasan" in f.read():
                return 0
        with open(f"/proc/{self.proc.pid}/status") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def end(self):
        """Ask it to end; its exit status."""
        if self.proc.poll() is None:
            self.proc.terminate()
        try:
            return self.proc.wait(20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            raise AssertionError("it did not end within 20 s of SIGTERM") from None

    def __enter__(self):
        return self

    def __exit__(self, *why):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()


class Skip(Exception):
    """This machine or build cannot run the case; why is the text."""


def strict_json(data):
    def refuse(word):
        raise ValueError(f"{word} is not JSON")
    return json.loads(data.decode("utf-8"), parse_constant=refuse)


def until(what, seconds=20):
    """The first true value of what(); an error when there was none in time."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


def main(cases):
    """Run the functions whose name holds the word in argv, and end as the test runner expects."""
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    passed = failed = skipped = 0
    for case in cases:
        if only not in case.__name__:
            continue
        try:
            case()
            passed += 1
            print(f"ok      {case.__name__}", flush=True)
        except Skip as why:
            skipped += 1
            print(f"skipped {case.__name__}: {why}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {case.__name__}")
            traceback.print_exc()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or not passed else 0)
