# SPDX-License-Identifier: Apache-2.0
"""The page in headless Chromium: it loads by itself, draws, lives, takes an event, and says when it is cut off."""
import os, re, subprocess, sys, time

from fixture import TOKWATTD, Daemon, Skip, main, until
from webdriver import Browser, Missing

SHOTS = os.environ.get("TW_SHOTS")  # a folder for pictures, for people


def shot(b, name):
    if SHOTS:
        b.shot(os.path.join(SHOTS, name + ".png"))


def visit(b, d):
    b.open("about:blank")
    b.requests()
    b.console()
    b.open(d.url + "/")
    b.wait("document.body.dataset.link === 'live' && document.querySelectorAll('#jobs article').length > 0")
    b.wait("document.querySelector('#chart canvas') !== null")


# Pixels of the chart near a colour given as "r,g,b": of the named custom property.
PIXELS = """
  const probe = document.createElement('i'); probe.style.color = `var(${arguments[0]})`; document.body.append(probe);
  const want = getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(Number); probe.remove();
  const c = document.querySelector('#chart canvas'), p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  let n = 0;
  for (let i = 0; i < p.length; i += 4)
    if (p[i + 3] > 128 && Math.abs(p[i] - want[0]) + Math.abs(p[i + 1] - want[1]) + Math.abs(p[i + 2] - want[2]) < 24) n++;
  return n;
"""
OVERFLOW = """
  const out = [];
  for (const e of document.querySelectorAll('body *')) {
    const r = e.getBoundingClientRect();
    if (r.width && r.right > innerWidth + 1 && !e.closest('.sr, #chart') && getComputedStyle(e).position !== 'absolute') out.push(e.tagName + '.' + e.className);
  }
  return [document.documentElement.scrollWidth - innerWidth, out];
"""
# Text whose contrast with what lies behind it is below 4.5 (3 for large text): WCAG 2 relative luminance.
CONTRAST = """
  const parse = (s) => { const m = s.match(/[0-9.]+/g).map(Number); return [m[0], m[1], m[2], m.length > 3 ? m[3] : 1]; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const lum = (c) => { const f = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * f[0] + 0.7152 * f[1] + 0.0722 * f[2]; };
  const behind = (e) => { const stack = [];
    for (let x = e; x; x = x.parentElement) { const c = parse(getComputedStyle(x).backgroundColor); if (c[3] > 0) stack.push(c); if (c[3] === 1) break; }
    return stack.reverse().reduce((under, c) => over(c, under), [255, 255, 255, 1]); };
  const bad = []; let seen = 0;
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length || e.closest('.sr, noscript, dialog:not([open]), .skip')) continue;
    const s = getComputedStyle(e), size = parseFloat(s.fontSize), back = behind(e);
    const ink = over(parse(e.closest('svg') ? s.fill : s.color), back), a = lum(ink), b = lum(back);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen++;
    if (ratio < (size >= 24 || (size >= 18.66 && s.fontWeight >= 700) ? 3 : 4.5)) bad.push(`${ratio.toFixed(2)} ${e.tagName}.${e.className}: ${e.textContent.trim().slice(0, 30)}`);
  }
  return [seen, bad];
"""


def loads_alone_and_draws(b):
    with Daemon("--past", "300", "--speed", "1") as d:
        visit(b, d)
        b.wait("/^\\d/.test(document.getElementById('power').textContent)")
        assert b.js(PIXELS, "--power") > 300, "no line of power in the chart"
        assert b.js("document.querySelectorAll('#jobs article').length") == 8
        assert b.js("document.querySelectorAll('#jobs .curve .fit[d^=M]').length") == 8
        assert b.js("document.querySelectorAll('#gpus [role=option]').length") == 64
        assert "imulated" in b.js("document.getElementById('simulated').textContent")
        assert b.js("[...document.querySelectorAll('.tile .tag')].filter(e => !e.hidden && e.textContent === 'simulated').length") == 3
        time.sleep(2)
        wrong = [c for c in b.console() if c["level"] in ("SEVERE", "WARNING")]
        assert not wrong, wrong
        outside = [u for u in b.requests() if not u.startswith((d.url, "data:", "about:", "chrome:"))]
        assert not outside, outside
        shot(b, "light")


def numbers_live(b):
    with Daemon("--speed", "5", "--hz", "4") as d:
        visit(b, d)
        seen = set()
        until(lambda: seen.add(b.js("document.getElementById('power').textContent")) or len(seen) >= 3)
        first = int(re.search(r"turn (\d+)", b.js("document.getElementById('foot').textContent")).group(1))
        b.wait(f"Number(document.getElementById('foot').textContent.match(/turn (\\d+)/)[1]) > {first + 4}")
        shown = b.js("document.getElementById('power').textContent")
        power = d.get("/v1/snapshot")["site"]["power_w"]
        assert abs(float(shown.split("\u00a0")[0]) * 1000 - power) < 0.15 * power, (shown, power)


def event_through_the_form(b):
    with Daemon("--past", "200", "--speed", "10", "--hz", "4") as d:
        visit(b, d)
        b.type("[name=cut]", "25")
        b.type("[name=minutes]", "10")
        b.click("#event-form .primary")
        b.wait("document.getElementById('confirm').open")
        assert "25\u00a0%" in b.js("document.getElementById('confirm-text').textContent")
        b.click("#confirm [value=no]")
        b.wait("!document.getElementById('confirm').open")
        assert d.get("/v1/events")["events"] == []  # "Back" asks for nothing
        b.click("#event-form .primary")
        b.click("#confirm-yes")
        until(lambda: len(d.get("/v1/events")["events"]) == 1)
        e = d.get("/v1/events")["events"][0]
        assert abs(e["cut_frac"] - 0.25) < 1e-9 and abs(e["end_s"] - e["start_s"] - 600) < 1e-6
        b.wait("document.getElementById('event').dataset.state === 'hold'", 20)
        assert re.fullmatch(r"holding, \d+:\d\d left", b.js("document.getElementById('event-text').textContent"))
        assert "25" in b.js("document.getElementById('event-chip').textContent")
        b.wait("document.querySelector('#event-list [data-cancel]') !== null")
        assert b.js(PIXELS, "--budget") > 20, "no line of the budget in the chart"
        reasons = b.js("[...document.querySelectorAll('#reasons b')].reduce((n, e) => n + Number(e.textContent), 0)")
        assert reasons == 64, reasons
        shot(b, "event")
        b.click("#event-form .primary")  # a second one overlaps: the daemon's words are shown
        b.click("#confirm-yes")
        b.wait("document.getElementById('event-problem').textContent.includes('cancel it first')")
        b.click("#event-list [data-cancel]")
        b.click("#confirm-yes")
        b.wait("document.getElementById('event-list').textContent.includes('cancelled')")
        b.wait("['release', 'none'].includes(document.getElementById('event').dataset.state)")


def light_and_dark(b):
    with Daemon("--past", "200", "--speed", "10", "--hz", "4") as d:
        d.ask("POST", "/v1/events", '{"cut_frac":0.3,"for_s":6000}')
        ground = "getComputedStyle(document.body).backgroundColor"
        for dark in (False, True):
            b.prefer(dark=dark)
            visit(b, d)
            b.wait("document.getElementById('event').dataset.state === 'hold'", 20)
            value = sum(map(int, re.findall(r"\d+", b.js(ground))[:3]))
            assert (value < 150) if dark else (value > 600), value
            seen, bad = b.js(CONTRAST)
            assert seen > 100 and not bad, bad
            shot(b, "dark" if dark else "light-event")
        b.click("#theme")  # auto -> light, against the system's dark
        assert sum(map(int, re.findall(r"\d+", b.js(ground))[:3])) > 600
        b.open(d.url + "/")
        assert b.js("document.documentElement.dataset.theme") == "light"  # remembered
        b.wait("document.body.dataset.link === 'live'")
        b.click("#theme")
        b.click("#theme")
        assert b.js("document.getElementById('theme').textContent") == "Theme: auto"
        b.prefer(dark=False)


def phone(b):
    with Daemon("--past", "300", "--gpus", "512", "--jobs", "16", "--odd") as d:
        b.size(390, 844, 2, True)
        visit(b, d)
        for width in (390, 320):
            b.size(width, 844, 2, True)
            time.sleep(0.6)
            extra, out = b.js(OVERFLOW)
            assert extra <= 0 and not out, (width, extra, out)
        b.size(390, 844, 2, True)
        shot(b, "phone")
        b.cdp("Emulation.clearDeviceMetricsOverride")


def many_gpus_by_keyboard(b):
    with Daemon("--gpus", "512", "--jobs", "8", "--stale") as d:
        visit(b, d)
        assert b.js("document.querySelectorAll('#gpus [role=option]').length") == 512
        assert b.js("document.querySelectorAll('#gpus [role=option][tabindex=\"0\"]').length") == 1
        b.wait("document.querySelectorAll('#gpus [data-l=none]').length === 2")
        b.js("document.querySelector('#gpus [role=option]').focus()")
        b.keys("\ue014\ue014")  # right, right
        assert b.js("document.activeElement.getAttribute('aria-label')").startswith("GPU 2,")
        b.keys("\ue015")  # down
        b.wait("document.querySelector('#gpu h3').textContent === 'GPU 18'")
        text = b.wait("document.getElementById('gpu').textContent")
        for word in ("Cap asked for", "Cap enforced", "Next 30 s", "Uncapped: no budget binds", "rack1"):
            assert word in text, (word, text)
        b.wait("/ to /.test(document.getElementById('gpu').textContent)")  # the band came
        b.click("#gpus [data-i='1']")
        b.wait("document.getElementById('gpu').textContent.includes('no fresh reading')")
        assert b.js("document.querySelectorAll('#gpus [aria-selected=true]').length") == 1
        shot(b, "many")


def everything_unknown(b):
    with Daemon("--nan", "--gpus", "16", "--jobs", "4", "--real") as d:
        visit(b, d)
        text = b.js("document.body.innerText")
        assert "NaN" not in text and "undefined" not in text and "null" not in text and "Infinity" not in text, text
        assert b.js("document.getElementById('power').textContent") == "–"
        assert b.js("document.getElementById('simulated').hidden") is True
        assert b.js("[...document.querySelectorAll('.tag')].every(e => e.hidden)") is True
        wrong = [c for c in b.console() if c["level"] == "SEVERE"]
        assert not wrong, wrong
        shot(b, "unknown")
    with Daemon("--gpus", "0", "--jobs", "0", "--no-events") as d:
        b.open("about:blank")
        b.open(d.url + "/")
        b.wait("document.getElementById('gpus-title') && document.getElementById('gpu').textContent === 'No GPU is known.'")
        b.wait("document.getElementById('event-problem').textContent.includes('takes no events')")


def odd_names_are_text(b):
    with Daemon("--odd", "--gpus", "8", "--jobs", "2") as d:
        visit(b, d)
        assert b.js("document.querySelector('#jobs h3').textContent") == 'a"b\\c\nd\ufffd\u00e9<b>'
        assert b.js("document.querySelectorAll('#jobs b').length") == 0


def connection_lost_and_back(b):
    d = Daemon("--past", "50", "--hz", "4")
    try:
        visit(b, d)
        assert b.js("document.getElementById('lost').hidden") is True
        d.pause()  # connected, but the loop does not turn
        b.wait("document.body.dataset.link === 'stale'", 15)
        assert "not turned" in b.js("document.getElementById('lost').textContent")
        d.pause()
        b.wait("document.body.dataset.link === 'live'", 15)
        d.end()
        b.wait("document.body.dataset.link === 'lost'", 15)
        b.click("#event-form .primary")
        b.click("#confirm-yes")
        b.wait("document.getElementById('event-problem').textContent === 'The daemon does not answer.'")
        assert b.js("document.getElementById('lost').hidden") is False
        b.wait("/Connection lost.*s ago/.test(document.getElementById('lost').textContent)")
        shot(b, "lost")
        again = Daemon("--listen", f"127.0.0.1:{d.port}", "--gpus", "8", "--jobs", "2")
        with again:
            b.wait("document.body.dataset.link === 'live'", 30)
            b.wait("document.querySelectorAll('#gpus [role=option]').length === 8")  # the new life, not the old
            assert b.js("document.getElementById('lost').hidden") is True
    finally:
        d.__exit__()


def the_real_daemon(b):
    """tokwattd on its simulated site: everything above the fixture's made-up values, and a whole event."""
    if "--source" not in subprocess.run([TOKWATTD, "--help"], capture_output=True, text=True).stdout:
        raise Skip("this tokwattd reads no source")
    with Daemon("--source", "sim:seed=1", "--listen", "127.0.0.1:0", "--speed", "60", program=TOKWATTD) as d:
        visit(b, d)
        assert "60 × as fast" in b.js("document.getElementById('simulated').textContent")
        assert b.js("document.querySelectorAll('#gpus [role=option]').length") == 64
        assert b.js("document.querySelectorAll('#jobs article').length") >= 8
        b.wait("document.querySelectorAll('#jobs .curve .fit[d^=M]').length >= 8", 60)  # learnt by probing
        b.wait("Number(document.getElementById('foot').textContent.match(/turn (\\d+)/)[1]) > 330", 60)
        b.type("[name=cut]", "30")
        b.type("[name=minutes]", "10")
        b.click("#event-form .primary")
        b.click("#confirm-yes")
        b.wait("document.getElementById('event').dataset.state === 'hold'", 60)
        assert "so far" in b.js("document.getElementById('saved-note').textContent")
        assert "marginal throughput per watt" in b.js("document.getElementById('reasons').textContent")
        s = until(lambda: (lambda s: s if s["event"]["state"] == "hold" else None)(d.get("/v1/snapshot")))
        assert abs(s["event"]["target_w"] - 0.7 * s["event"]["baseline_w"]) < 1e-3 * s["event"]["baseline_w"]
        assert b.js(PIXELS, "--budget") > 20
        shot(b, "daemon")
        wrong = [c for c in b.console() if c["level"] in ("SEVERE", "WARNING")]
        assert not wrong, wrong
        b.click("#event-list [data-cancel]")
        b.click("#confirm-yes")
        b.wait("['release', 'none', 'done'].includes(document.getElementById('event').dataset.state)", 30)
        assert d.end() == 0


CASES = [loads_alone_and_draws, numbers_live, event_through_the_form, light_and_dark, phone, many_gpus_by_keyboard,
         everything_unknown, odd_names_are_text, connection_lost_and_back, the_real_daemon]

with Daemon("--past", "2") as probe:
    page = probe.ask("GET", "/")[1]["Content-Type"].startswith("text/html")
if not page:
    print("skipped: the page is not built in (it needs npm at configure time)")
    sys.exit(77)
try:
    browser = Browser()
except Missing as e:
    print(f"skipped: {e}")
    sys.exit(77)


def bound(case):
    def run():
        case(browser)
    run.__name__ = case.__name__
    return run


try:
    main([bound(c) for c in CASES])
finally:
    browser.close()
