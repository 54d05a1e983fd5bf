# SPDX-License-Identifier: Apache-2.0
"""A browser to test with: headless Chromium through chromedriver's WebDriver protocol, standard library only."""
import base64, json, os, shutil, subprocess, tempfile, time, urllib.error, urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
QUIET = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars",
         "--no-default-browser-check", "--password-store=basic", "--disable-dev-shm-usage"]


class Missing(Exception):
    """No browser on this machine."""


class Browser:
    def __init__(self, width=1360, height=900, dark=False):
        driver = shutil.which("chromedriver")
        self.binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not driver or not self.binary:
            raise Missing("chromium and chromedriver are not installed (tools/deps browser)")
        self.folder = tempfile.mkdtemp(prefix="tokwatt-browser-")
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = None
        for line in self.driver.stdout:
            if "successfully on port" in line:
                port = int(line.rsplit(" ", 1)[1].strip(".\n "))
                break
        self.base = f"http://127.0.0.1:{port}"
        flags = QUIET + [f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")
        session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags, "binary": self.binary},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.base += f"/session/{session['sessionId']}"
        if dark:
            self.prefer(dark=True)

    def _call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        req = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(req, timeout=60) as r:
                return json.load(r)["value"]
        except urllib.error.HTTPError as e:
            raise RuntimeError(json.load(e)["value"]["message"].split("\n")[0]) from None

    def cdp(self, cmd, **params):
        return self._call("POST", "/goog/cdp/execute", {"cmd": cmd, "params": params})

    def prefer(self, dark=False, still=False):
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])

    def size(self, width, height, scale=1, mobile=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def open(self, url):
        self._call("POST", "/url", {"url": url})

    def js(self, script, *args):
        """The value of a JavaScript expression, or of a body with its own return."""
        body = script if "return " in script else f"return ({script})"
        return self._call("POST", "/execute/sync", {"script": body, "args": list(args)})

    def wait(self, script, seconds=15, *args):
        """The first true value of an expression; raises when none came."""
        end = time.monotonic() + seconds
        while True:
            value = self.js(script, *args)
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"after {seconds} s still not: {script}")
            time.sleep(0.1)

    def find(self, css):
        return self._call("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css, tries=20):
        """Click what css names now; the page may have drawn it anew between finding and clicking."""
        try:
            self._call("POST", f"/element/{self.find(css)}/click", {})
        except RuntimeError as e:
            if tries == 0 or "stale element" not in str(e):
                raise
            time.sleep(0.05)
            self.click(css, tries - 1)

    def type(self, css, text):
        element = self.find(css)
        self._call("POST", f"/element/{element}/clear", {})
        self._call("POST", f"/element/{element}/value", {"text": text})

    def keys(self, text):
        """Key presses to whatever has the focus."""
        actions = [a for c in text for a in ({"type": "keyDown", "value": c}, {"type": "keyUp", "value": c})]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def console(self):
        return self._call("POST", "/se/log", {"type": "browser"})

    def requests(self):
        """The addresses that the page asked for since the last call."""
        out = []
        for entry in self._call("POST", "/se/log", {"type": "performance"}):
            m = json.loads(entry["message"])["message"]
            if m["method"] == "Network.requestWillBeSent":
                out.append(m["params"]["request"]["url"])
        return out

    def shot(self, path, whole=True):
        params = {"format": "png"}
        if whole:
            box = self.js("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            params.update(captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": box[0], "height": box[1], "scale": 1})
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.cdp("Page.captureScreenshot", **params)["data"]))

    def close(self):
        try:
            self._call("DELETE", "")
        except Exception:  # the browser may be gone already
            pass
        self.driver.terminate()
        self.driver.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()
