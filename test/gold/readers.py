#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A second reader of recordings, written from the description of the files and not from our parsers: it counts rows,
series, left-out lines and span of every file of TW_DATA/power with csv, json and datetime of Python, and compares them
with `tokwatt import --dry-run --json`. Where the rows do not say whose they are it knows the number of GPUs from the
file's name, which our reader never sees."""
import datetime, gzip, json, os, re, subprocess, sys

data = os.path.join(os.environ.get("TW_DATA", "/nonexistent"), "power")
if not os.path.isdir(data):
    print("skipped: TW_DATA has no folder power")
    sys.exit(77)


def epoch(text):
    """2025/07/26 23:32:09.703, the same with dashes or T, or 07-12-2024 23:12:12.830; taken as UTC."""
    if m := re.match(r"(\d\d)-(\d\d)-(\d{4}) (.*)", text):
        text = f"{m[3]}-{m[1]}-{m[2]} {m[4]}"
    return datetime.datetime.fromisoformat(text.replace("/", "-")).replace(tzinfo=datetime.timezone.utc).timestamp()


def not_back(rows):
    """Drop rows that make time go back in their series: the one that jumped ahead, when the next two fit before it."""
    per, dropped = {}, 0
    for who, t in rows:
        per.setdefault(who, []).append(t)
    for who, ts in per.items():
        kept = []
        for i, t in enumerate(ts):
            if kept and t < kept[-1]:
                dropped += 1
                fits = (len(kept) < 2 or t >= kept[-2]) and i + 1 < len(ts) and t <= ts[i + 1] < kept[-1]
                if not fits:
                    continue
                kept.pop()
            kept.append(t)
        per[who] = kept
    return per, dropped


def csv_rows(lines, whole, header, read):
    """(who, time) of each good line and the number of bad ones; the last line may be cut."""
    rows, bad = [], 0
    for i, line in enumerate(lines):
        if line == "":
            continue
        cells = [c.strip() for c in line.split(",")]
        last = i == len(lines) - 1 and not whole
        if len(cells) != len(header) or "\0" in line:
            bad += 1
            continue
        try:
            got = read(dict(zip(header, cells)), last)
        except (ValueError, KeyError, IndexError):
            bad += 1
            continue
        rows.extend(got)
    return rows, bad


def number(cell, unit=""):
    if unit and cell.endswith(unit):
        cell = cell[:-len(unit)].strip()
    if not re.fullmatch(r"-?\d+(\.\d+)?([eE][-+]?\d+)?", cell):
        raise ValueError(cell)
    value = float(cell)
    if value < 0:
        raise ValueError(cell)
    return value


def read_file(name, text):
    """(series, rows, left out, first time, last time), or None when it is no recording."""
    whole = text.endswith("\n")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if not lines:
        return None
    head = [re.sub(r"\s*\[.*\]", "", c.strip()) for c in lines[0].split(",")]
    if lines[0].startswith("Time,"):
        rows, bad = [], 0
        for line in filter(None, lines):
            f = line.split(",")
            watts = float(f[3])
            if watts < 0:
                bad += 1
            else:
                rows.append(("server", epoch(f[1])))
    elif any(":::MLLOG" in l and '"power_reading"' in l for l in lines):
        rows, bad = [], 0
        for line in lines:
            record = json.loads(line.split(":::MLLOG", 1)[1])
            if record["key"] == "power_reading":
                rows.append(("server", record["time_ms"] / 1000))
    elif "power.draw" in head:
        gpus = int(m.group(1)) if (m := re.search(r"(?:h100x|titanx)(\d)_", name) or re.search(r"-(\d)gpu", name)) else 1
        place = iter(range(10**9))

        def read(row, last):
            who = next(place) % gpus
            units = {"power.draw": "W", "utilization.gpu": "%", "utilization.memory": "%", "memory.used": "MiB"}
            for key, unit in units.items():
                if key in row:
                    number(row[key], unit)
            return [(who, epoch(row["timestamp"]))]

        rows, bad = csv_rows(lines[1:], whole, head, read)
    elif head[0] in ("t_s", "t") and ("power_w" in head or "measured_w" in head):
        key = "power_w" if "power_w" in head else "measured_w"

        def read(row, last):
            number(row[key])
            return [(row.get("gpu_index", "0"), number(row[head[0]]))]

        rows, bad = csv_rows(lines[1:], whole, head, read)
    elif head[0] == "timestamp" and "sys_power_w" in head:
        rows, bad = csv_rows(lines[1:], whole, head,
                             lambda row, last: [("server", number(row["timestamp"]))] if number(row["sys_power_w"]) >= 0 else [])
    elif head[0] == "timestamp" and "power_w" in head:
        rows, bad = csv_rows(lines[1:], whole, head,
                             lambda row, last: [(row["gpu"], number(row["timestamp"]))] if number(row["power_w"]) >= 0 else [])
    elif head == ["timestamp", "n1_watts", "n2_watts", "total_watts"]:
        rows, bad = csv_rows(lines[1:], whole, head,
                             lambda row, last: [(k, epoch(row["timestamp"]))
                                                for k in head[1:] if number(row[k]) >= 0])
    else:
        return None
    per, dropped = not_back(rows)
    times = [t for ts in per.values() for t in (ts[0], ts[-1])]
    return len(per), sum(map(len, per.values())), bad + dropped, min(times), max(times)


report = json.loads(subprocess.run([os.environ["TOKWATT"], "import", "--dry-run", "--json", data], check=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
ours = {os.path.relpath(f["file"], data): f for f in report["files"]}
passed = failed = skipped = 0
for folder, _, files in sorted(os.walk(data)):
    for name in sorted(files):
        path = os.path.join(folder, name)
        rel = os.path.relpath(path, data)
        text = (gzip.open if name.endswith(".gz") else open)(path, "rb").read().decode("utf-8", "replace")
        want = read_file(name, text)
        got = ours.pop(rel, None)
        if want is None:
            skipped += 1
        if (want is None) != (got is None):
            print(f"{rel}: a recording for {'the second reader' if want else 'us'} only")
            failed += 1
            continue
        if want is None:
            continue
        series, rows, bad, first, last = want
        mine = (got["series"], got["rows"], sum(r["count"] for r in got["rejected"]))
        if mine != (series, rows, bad) or abs(got["span_s"] - (last - first)) > 2e-6:
            print(f"{rel}: series, rows, left out {mine}, span {got['span_s']}; the second reader has "
                  f"{(series, rows, bad)}, {last - first:.6f}")
            failed += 1
        else:
            passed += 1
if report["skipped"] != [{"reason": "not telemetry", "count": skipped}]:
    print(f"skipped: {report['skipped']}; the second reader passed over {skipped}")
    failed += 1
for rel in ours:
    print(f"{rel}: not seen by the second reader")
    failed += 1
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
