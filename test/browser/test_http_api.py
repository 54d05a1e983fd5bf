# SPDX-License-Identifier: Apache-2.0
"""The HTTP API from outside: routes, bad requests, slow and many clients, metrics by a parser of their own."""
import http.client, json, random, re, socket, subprocess, time

from fixture import FAKE, Daemon, main, strict_json, until

MAX_STREAM = 96  # src/http/serve.h


def raw(port, data, wait=10):
    """Bytes in, all bytes out until the other side closes or is silent for `wait` seconds."""
    s = socket.create_connection(("127.0.0.1", port), timeout=wait)
    out = b""
    try:
        s.sendall(data)
        while True:
            part = s.recv(65536)
            if not part:
                break
            out += part
    except (TimeoutError, ConnectionError, BrokenPipeError):
        pass
    s.close()
    return out


def status_of(answer):
    m = re.match(rb"HTTP/1\.1 (\d+)", answer)
    return int(m.group(1)) if m else None


def snapshot_is_whole():
    with Daemon("--gpus", "16", "--jobs", "4", "--past", "50") as d:
        s = d.get("/v1/snapshot")
        assert s["schema"] == "tokwatt.snapshot/1" and len(s["gpus"]) == 16 and len(s["jobs"]) == 4
        assert s["simulated"] is True and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", s["time"])
        assert [p["lead_s"] for p in s["path"]] == list(range(5, 65, 5))
        g = s["gpus"][0]
        assert g["reason"] == "uncapped" and s["reasons"]["uncapped"].startswith("uncapped:") and g["job"] == 0
        assert abs(sum(g["power_w"] for g in s["gpus"]) - s["site"]["power_w"]) < 0.01 * s["site"]["power_w"]
        j = s["jobs"][0]
        assert len(j["points"]) == 3 and abs(j["points"][0]["power_frac"] - 1) < 1e-6
        assert s["site"]["budget_w"] is None  # no event: unknown is null


def unknown_is_null():
    with Daemon("--nan", "--gpus", "4", "--jobs", "2", "--past", "3") as d:
        s = d.get("/v1/snapshot")
        assert s["gpus"][0]["power_w"] is None and s["jobs"][1]["pfi"] is None and s["site"]["power_w"] is None
        assert s["gpus"][1]["job"] is None
        h = d.get("/v1/history")
        assert h["power_w"] == [None] * len(h["t_s"])
        assert d.ask("GET", "/readyz")[0] == 503
        text = d.ask("GET", "/metrics")[2].decode()
        assert "nan" not in text.lower().replace("nanosecond", "")
        assert not re.search(r"^tokwatt_gpu_power_watts\{", text, re.M)  # left out, not 0


def empty_site():
    with Daemon("--gpus", "0", "--jobs", "0", "--past", "2") as d:
        s = d.get("/v1/snapshot")
        assert s["gpus"] == [] and s["jobs"] == []
        status, _, body = d.ask("GET", "/readyz")
        assert status == 503 and strict_json(body)["text"] == "no GPU is known"


def history_in_parts():
    with Daemon("--past", "4000", "--gpus", "8", "--jobs", "1") as d:
        until(lambda: d.get("/v1/snapshot")["seq"] > 4000)
        h = d.get("/v1/history")
        assert len(h["t_s"]) == 3600 and h["lead_s"] == 30
        assert all(b > a for a, b in zip(h["t_s"], h["t_s"][1:]))
        part = d.get(f"/v1/history?since={h['seq'] - 10}")
        assert part["t_s"][:10] == h["t_s"][-10:]
        assert d.get(f"/v1/history?since={h['seq'] + 10**6}")["t_s"] == []
        for bad in ("x", "-1", "1e3", "9" * 30, ""):
            status, _, body = d.ask("GET", "/v1/history?since=" + bad)
            assert status == 400 and "since" in strict_json(body)["error"], (bad, status)


def ready_means_fresh():
    with Daemon("--past", "2") as d:
        until(lambda: d.ask("GET", "/readyz")[0] == 200)
        assert strict_json(d.ask("GET", "/readyz")[2])["ready"] is True
        assert d.ask("GET", "/healthz")[2] == b"ok\n"
        d.pause()
        until(lambda: d.ask("GET", "/readyz")[0] == 503)
        assert "not turned" in strict_json(d.ask("GET", "/readyz")[2])["text"]
        assert d.ask("GET", "/healthz")[0] == 200
    with Daemon("--stale", "--past", "2") as d:
        body = strict_json(d.ask("GET", "/readyz")[2])
        assert body["ready"] is False and body["stale_gpus"] == 2


def events_come_and_go():
    with Daemon("--speed", "1", "--hz", "10") as d:
        until(lambda: d.ask("GET", "/v1/snapshot")[0] == 200)
        assert d.get("/v1/events")["events"] == []
        status, _, body = d.ask("POST", "/v1/events", '{"cut_frac":0.25,"for_s":600,"in_s":0}')
        made = strict_json(body)
        assert status == 201 and made["schema"] == "tokwatt.event/1" and made["cancelled"] is False
        listed = d.get("/v1/events")["events"]
        assert len(listed) == 1 and listed[0]["id"] == made["id"] and listed[0]["cut_frac"] == 0.25
        assert abs(listed[0]["end_s"] - listed[0]["start_s"] - 600) < 1e-6
        until(lambda: d.get("/v1/snapshot")["event"]["state"] == "ramp")
        status, _, body = d.ask("POST", "/v1/events", '{"cut_frac":0.1,"for_s":60}')
        assert status == 409 and "cancel it first" in strict_json(body)["error"]
        status, _, body = d.ask("DELETE", f"/v1/events/{made['id']}")
        assert status == 200 and strict_json(body)["cancelled"] is True
        until(lambda: d.get("/v1/events")["events"][0]["cancelled"])
        assert d.ask("DELETE", "/v1/events/77")[0] == 404
        for bad in ("x", "-1", "1.5", "99999999999", "1/2", "%20"):
            assert d.ask("DELETE", "/v1/events/" + bad)[0] in (400, 404), bad
        assert d.ask("DELETE", "/v1/events/")[0] == 404
    with Daemon("--no-events") as d:
        assert d.ask("GET", "/v1/events")[0] == 501
        assert d.ask("POST", "/v1/events", '{"cut_frac":0.1,"for_s":60}')[0] == 501


def bad_bodies():
    cases = [
        ("", "empty"), ("{", "not JSON"), ("[]", "not an object"), ("null", "not JSON"), ("3", "not JSON"),
        ("{}", "cut_frac is missing"), ('{"cut_frac":0.3}', "for_s is missing"),
        ('{"cut_frac":1.5,"for_s":300}', "from 0 to 1"), ('{"cut_frac":-0.05,"for_s":300}', "from 0 to 1"),
        ('{"cut_frac":"30%","for_s":300}', "must be a number"), ('{"cut_frac":null,"for_s":300}', "must be a number"),
        ('{"cut_frac":0.3,"for_s":0}', "above 0"), ('{"cut_frac":0.3,"for_s":1e9}', "7 days"),
        ('{"cut_frac":0.3,"for_s":60,"in_s":-1}', "30 days"), ('{"cut_frac":NaN,"for_s":60}', "not JSON"),
        ('{"cut_frac":1e999,"for_s":60}', "not JSON"), ('{"cut_frac":0.3,"for_s":60,"cut":1}', "not a key"),
        ('{"cut_frac":0.3,"cut_frac":0.9,"for_s":60}', "not JSON"), ('{"cut_frac":0.3,"for_s":60} x', "not JSON"),
        ("[" * 10000, "not JSON"), ('{"cut_frac":0.3,"for_s":60,"\\u0000":1}', "not JSON"),
        (b'{"cut_frac":0.3,"for_s":60,"\xff":1}', "not JSON"),
    ]
    with Daemon() as d:
        for body, word in cases:
            status, _, answer = d.ask("POST", "/v1/events", body)
            a = strict_json(answer)
            assert status == 400 and a["schema"] == "tokwatt.error/1" and word in a["error"], (body, status, a)
        assert d.get("/v1/events")["events"] == []
        assert d.ask("POST", "/v1/events", '{"cut_frac":0,"for_s":1}')[0] == 201  # a cut of nothing is valid


def wrong_methods_and_paths():
    with Daemon("--past", "2") as d:
        for method, path, want, allow in (("PUT", "/v1/events", 405, "GET, POST"), ("POST", "/v1/snapshot", 405, "GET"),
                                          ("GET", "/v1/events/1", 405, "DELETE"), ("DELETE", "/metrics", 405, "GET"),
                                          ("POST", "/", 405, "GET")):
            status, headers, body = d.ask(method, path, "{}" if method in ("POST", "PUT") else None)
            assert status == want and headers["Allow"] == allow, (method, path, status, headers["Allow"])
            assert strict_json(body)["status"] == want
        for path in ("/nothing", "/v1", "/v1/snapshot/", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "//", "/page.css/x"):
            assert d.ask("GET", path)[0] == 404, path
        status, headers, body = d.ask("HEAD", "/v1/snapshot")
        assert status == 200 and body == b"" and int(headers["Content-Length"]) > 1000
        assert status_of(raw(d.port, b"BREW / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")) in (405, 501)


def security_headers():
    with Daemon("--past", "2") as d:
        for path in ("/", "/v1/snapshot", "/metrics", "/nothing"):
            _, h, _ = d.ask("GET", path)
            assert "default-src 'self'" in h["Content-Security-Policy"] and "unsafe" not in h["Content-Security-Policy"]
            assert h["X-Content-Type-Options"] == "nosniff" and h["Cross-Origin-Resource-Policy"] == "same-origin"
            assert h["X-Frame-Options"] == "DENY" and h["Access-Control-Allow-Origin"] is None


def foreign_names_and_origins():
    with Daemon("--past", "2") as d:
        def host(value):
            line = b"" if value is None else b"Host: " + value + b"\r\n"
            return status_of(raw(d.port, b"GET /healthz HTTP/1.1\r\n" + line + b"Connection: close\r\n\r\n"))
        for good in (b"127.0.0.1", b"127.0.0.1:9477", b"localhost", b"LocalHost:1", b"[::1]", b"[::1]:80", b"127.1.2.3"):
            assert host(good) == 200, good
        for bad in (b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil.example", b"10.0.0.1", b"0.0.0.0", b"[::]",
                    b"", b"localhost:x", b"localhost:999999", b"[::1", b"@127.0.0.1", None,
                    b"x" * 3000):
            assert host(bad) in (400, 421), (bad, host(bad))
        assert status_of(raw(d.port, b"GET /healthz HTTP/1.0\r\n\r\n")) == 421
        event = '{"cut_frac":0.2,"for_s":60}'
        for origin in ("http://evil.example", "null", "https://127.0.0.1:%d" % d.port, "http://127.0.0.1:1"):
            status, _, body = d.ask("POST", "/v1/events", event, {"Origin": origin})
            assert status == 403 and "own page" in strict_json(body)["error"], origin
            assert d.ask("DELETE", "/v1/events/1", headers={"Origin": origin})[0] == 403
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
            assert d.ask("POST", "/v1/events", event, {"Content-Type": kind})[0] == 415, kind
        assert d.get("/v1/events")["events"] == []
        assert d.ask("POST", "/v1/events", event, {"Origin": d.url, "Content-Type": "application/json; charset=utf-8"})[0] == 201


def huge_and_broken_requests():
    with Daemon("--past", "2") as d:
        head = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        assert status_of(raw(d.port, head + b"Content-Length: 10000000\r\n\r\n{")) == 413
        assert status_of(raw(d.port, head + b"Content-Length: 99999999999999999999\r\n\r\n{")) in (400, 413)
        assert status_of(raw(d.port, head + b"Content-Length: -5\r\n\r\n{")) in (400, 413)
        chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
        assert status_of(raw(d.port, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 256 + b"0\r\n\r\n")) == 413
        assert status_of(raw(d.port, head + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n")) in (400, None)
        many = b"".join(b"X-%d: %d\r\n" % (i, i) for i in range(10000))
        answer = status_of(raw(d.port, b"GET / HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n"))
        assert answer in (400, 413, 431, None), answer
        answer = status_of(raw(d.port, b"GET /" + b"a" * 1000000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        assert answer in (400, 413, 414, 431, None), answer
        answer = status_of(raw(d.port, b"GET /v1/snapshot?" + b"a=1&" * 1000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", wait=2))
        assert answer in (200, 400, 413, 414, 431, None), answer
        rng = random.Random(7)
        for _ in range(200):
            raw(d.port, rng.randbytes(rng.randrange(1, 400)) + b"\r\n\r\n", wait=0.2)
        assert d.ask("GET", "/healthz")[2] == b"ok\n"
        assert d.rss_kb() < 64 * 1024
        assert d.end() == 0


def read_ticks(sock_file, n):
    """n ticks of a stream whose headers are read already."""
    out = []
    while len(out) < n:
        line = sock_file.readline()
        assert line, "the stream ended"
        if line.startswith(b"data: "):
            out.append(strict_json(line[6:]))
    return out


def open_stream(port):
    s = socket.create_connection(("127.0.0.1", port), timeout=30)
    s.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    f = s.makefile("rb")
    status = int(f.readline().split()[1])
    headers = {}
    while (line := f.readline().strip()):
        k, _, v = line.partition(b": ")
        headers[k.lower()] = v
    return s, f, status, headers


def stream_ticks_follow_each_other():
    with Daemon("--hz", "20", "--speed", "20") as d:
        until(lambda: d.ask("GET", "/v1/snapshot")[0] == 200)
        c = http.client.HTTPConnection("127.0.0.1", d.port, timeout=30)
        c.request("GET", "/v1/stream")
        r = c.getresponse()
        assert r.status == 200 and r.headers["Content-Type"] == "text/event-stream" and r.headers["Cache-Control"] == "no-store"
        ticks = read_ticks(r, 2)
        assert ticks[1]["points"]["after"] <= ticks[0]["seq"]  # overlaps, or follows
        joined = 0
        while joined < 3:  # a reader that is late skips messages; one that is not gets every turn
            ticks += read_ticks(r, 1)
            before, tick = ticks[-2:]
            assert len(tick["points"]["t_s"]) == tick["seq"] - tick["points"]["after"]
            assert tick["points"]["t_s"][-1] == tick["now_s"]
            joined += tick["points"]["after"] == before["seq"]
            assert len(ticks) < 100
        assert ticks[0]["points"]["t_s"] == [] and len(ticks[0]["gpus"]) == 64 and len(ticks[0]["gpus"][0]) == 6
        assert set(ticks[0]["jobs"][0]) >= {"power_w", "throughput", "pfi", "reason"}
        r.close()
        c.close()


def streams_of(d):
    return int(re.search(rb"^tokwatt_http_streams (\d+)$", d.ask("GET", "/metrics")[2], re.M).group(1))


def three_hundred_streams():
    with Daemon("--hz", "5", "--gpus", "64") as d:
        before_kb = d.rss_kb()
        open_ones = [open_stream(d.port) for _ in range(300)]
        good = [x for x in open_ones if x[2] == 200]
        assert len(good) == MAX_STREAM, len(good)
        assert {x[2] for x in open_ones} == {200, 503}
        assert d.ask("GET", "/healthz")[0] == 200  # others are still served
        for x in good[::2]:  # the other half never reads: those skip, nobody waits for them
            read_ticks(x[1], 3)
        assert d.get("/v1/snapshot")["seq"] >= 3
        assert d.rss_kb() - before_kb < 16 * 1024, (before_kb, d.rss_kb())
        for x in open_ones:
            x[1].close()
            x[0].close()
        until(lambda: streams_of(d) == 0)
        s, f, status, _ = open_stream(d.port)
        assert status == 200 and read_ticks(f, 1)
        assert d.end() == 0  # with a stream open
        f.close()
        s.close()


def slow_clients_are_dropped():
    with Daemon("--past", "2", "--gpus", "512", "--jobs", "8", "--hz", "5") as d:
        deaf = socket.socket()  # a reader of the stream that never reads
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", d.port))
        deaf.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: streams_of(d) == 1)
        half = socket.create_connection(("127.0.0.1", d.port))
        half.sendall(b"GET /v1/snapshot HTTP/1.1\r\nHost: loc")
        started = time.monotonic()
        holders = []  # connections that say nothing, up to the cap and beyond
        for _ in range(250):
            holders.append(socket.create_connection(("127.0.0.1", d.port), timeout=60))
        half.settimeout(1)
        closed = False
        while not closed and time.monotonic() - started < 60:
            try:
                half.sendall(b"a")  # never the end of the line
                closed = half.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                closed = True
        assert closed, "a request that never ends was kept for a minute"
        assert until(lambda: d.ask("GET", "/healthz")[0] == 200, 60)
        for s in holders:
            s.close()
        until(lambda: streams_of(d) == 0, 90)
        deaf.close()
        half.close()


def page_or_a_word_about_it():
    with Daemon("--past", "2") as d:
        status, h, body = d.ask("GET", "/")
        assert status == 200
        if h["Content-Type"].startswith("text/plain"):
            assert b"needs npm" in body
            return
        assert h["Content-Type"] == "text/html; charset=utf-8" and h["Cache-Control"] == "no-cache"
        status, _, again = d.ask("GET", "/", headers={"If-None-Match": h["ETag"]})
        assert status == 304 and again == b""
        found = re.findall(r'(?:src|href)="(/[^"]*)"', body.decode())
        assert len(found) > 5
        for path in found:
            status, h, data = d.ask("GET", path)
            assert status == 200 and data, path
        assert not re.search(r"https?://(?!127)", body.decode()), "the page names another host"
        assert not re.search(r"<script(?![^>]*src=)[^>]*>|\son\w+=|\sstyle=", body.decode()), "inline script or style"


def refusals_to_listen():
    def start(*args):
        p = subprocess.run([FAKE, *args], capture_output=True, text=True, timeout=20)
        return p.returncode, p.stderr
    for address, word in (("0.0.0.0:0", "no TLS"), ("[::]:0", "no TLS"), ("192.0.2.1:80", "no TLS"),
                          ("example.com:80", "not a loopback"), ("127.0.0.1", "not ADDRESS:PORT"),
                          ("127.0.0.1:99999", "not ADDRESS:PORT"), ("127.0.0.1:x", "not ADDRESS:PORT"), ("", "not ADDRESS:PORT")):
        rc, err = start("--listen", address)
        assert rc == 2 and word in err and err.count("\n") == 1, (address, rc, err)
    with Daemon() as d:
        rc, err = start("--listen", f"127.0.0.1:{d.port}")
        assert rc == 2 and "in use" in err, err
    with Daemon("--listen", "localhost:0") as d:
        assert d.ask("GET", "/healthz")[0] == 200


# --- metrics: a small parser of the two text formats, written from their descriptions ---

SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
WRONG_UNITS = re.compile(r"_(ms|milliseconds|minutes|hours|kilowatts|kw|percent|kwh|celcius|bits|mb|kb)(_|$)")


def parse_metrics(text, openmetrics):
    """{(name, labels): value}; raises on what promtool or an OpenMetrics parser would refuse."""
    assert text.endswith("\n")
    families, samples, current = {}, {}, None
    lines = text.split("\n")[:-1]
    if openmetrics:
        assert lines.pop() == "# EOF"
    for line in lines:
        if line.startswith("# HELP "):
            name, _, help_text = line[7:].partition(" ")
            assert name not in families, f"{name}: HELP twice, or not in one piece"
            assert help_text.strip(), name
            families[name] = {"type": None}
            current = name
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == current and families[name]["type"] is None and kind in ("gauge", "counter"), line
            families[name]["type"] = kind
            assert name.startswith("tokwatt_") and not WRONG_UNITS.search(name), name
            assert (kind == "counter") == (name.endswith("_total") if not openmetrics else families[name]["type"] == "counter"), name
            assert not (openmetrics and name.endswith("_total")), name
        else:
            m = SAMPLE.match(line)
            assert m, line
            name, labels, value = m.groups()
            kind = families[current]["type"]
            assert name == (current + "_total" if openmetrics and kind == "counter" else current), (name, current)
            pairs = LABEL.findall(labels or "")
            assert "".join(f'{k}="{v}",' for k, v in pairs).rstrip(",") == (labels or ""), line
            names = [k for k, _ in pairs]
            assert len(set(names)) == len(names) and not set(names) & {"quantile", "le", "job", "instance"}, line
            key = (name, tuple(sorted(pairs)))
            assert key not in samples, f"twice: {line}"
            number = float(value)
            assert number == number and abs(number) != float("inf"), line
            samples[key] = number
    counters = {name.removesuffix("_total") for name, f in families.items() if f["type"] == "counter"}
    assert counters == {"tokwatt_turns", "tokwatt_http_requests", "tokwatt_http_requests_refused"}, counters
    return samples


def metrics_in_both_dialects():
    with Daemon("--gpus", "16", "--jobs", "4", "--past", "30", "--odd", "--speed", "1") as d:
        status, h, body = d.ask("GET", "/metrics")
        assert status == 200 and h["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        plain = parse_metrics(body.decode("utf-8"), False)
        accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
        status, h, body = d.ask("GET", "/metrics", headers={"Accept": accept})
        assert h["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        opened = parse_metrics(body.decode("utf-8"), True)
        assert {k[0] for k in plain} == {k[0] for k in opened}
        d.pause()
        time.sleep(1.2)
        values = parse_metrics(d.ask("GET", "/metrics")[2].decode("utf-8"), False)
        s = d.get("/v1/snapshot")
        def of(name, **labels):
            return values[(name, tuple(sorted(labels.items())))]
        close = lambda a, b: abs(a - b) <= 1e-5 * abs(b)
        assert close(of("tokwatt_site_power_watts"), s["site"]["power_w"])
        for g in s["gpus"]:
            assert close(of("tokwatt_gpu_power_watts", gpu_uuid=g["uuid"]), g["power_w"])
            assert close(of("tokwatt_gpu_cap_watts", gpu_uuid=g["uuid"]), g["cap_w"])
            for horizon in ("30", "60"):
                for level, key in (("0.1", "low_w"), ("0.5", "mid_w"), ("0.9", "high_w")):
                    assert close(of("tokwatt_forecast_power_watts", gpu_uuid=g["uuid"], horizon_seconds=horizon, level=level),
                                 g["mean" + horizon][key])
        assert of("tokwatt_event_state", state="none") == 1 and of("tokwatt_turns_total") == s["seq"]
        assert not any(k[0] == "tokwatt_site_budget_watts" for k in values)
        names = {dict(k[1])["job_name"] for k in values if k[0] == "tokwatt_job_power_watts"}
        assert 'a\\"b\\\\c\\nd?\u00e9<b>' in names, names
        assert s["jobs"][0]["name"] == 'a"b\\c\nd\ufffd\u00e9<b>'


main([snapshot_is_whole, unknown_is_null, empty_site, history_in_parts, ready_means_fresh, events_come_and_go, bad_bodies,
      wrong_methods_and_paths, security_headers, foreign_names_and_origins, huge_and_broken_requests,
      stream_ticks_follow_each_other, three_hundred_streams, slow_clients_are_dropped, page_or_a_word_about_it,
      refusals_to_listen, metrics_in_both_dialects])
