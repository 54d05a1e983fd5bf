#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run command-line tests: a .t file keeps each command and its exact output side by side.

  # a comment
  $ tokwatt pfi missing.csv
  2> tokwatt pfi: missing.csv: No such file or directory
  ? 2

A command runs under bash in an empty folder of its own (kept for the whole file). Expected lines follow it: plain lines
are standard output, lines that start with "2> " standard error; "? N" is the exit status (0 when left out). A line that
starts with "~ " (after "2> " too) is a regular expression for the whole line; a line "..." stands for any lines. "@ name"
before the first command skips the file when the environment variable is not set to something that exists.
Variables: $TOKWATT (also `tokwatt` on PATH), $TW_DATA, $TW_SOURCE."""
import os, re, subprocess, sys, tempfile


def matches(want, got):
    """Expected lines against real ones, with "~ " and "..."."""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[i:]) for i in range(len(got) + 1))
    if not got:
        return False
    same = re.fullmatch(want[0][2:], got[0]) if want[0].startswith("~ ") else want[0] == got[0]
    return bool(same) and matches(want[1:], got[1:])


def cases(path):
    case = None
    for i, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.startswith("$ "):
            if case:
                yield case
            case = {"line": i, "cmd": line[2:], "out": [], "err": [], "rc": 0}
        elif line.startswith("@ "):
            where = os.environ.get(line[2:].strip(), "")
            if not where or not os.path.exists(where):
                print(f"skipped: {line[2:].strip()} names nothing here")
                sys.exit(77)
        elif line.startswith("> ") and case and not case["out"]:
            case["cmd"] += "\n" + line[2:]
        elif line.startswith("? ") and case:
            case["rc"] = int(line[2:])
        elif line.startswith("2> ") and case:
            case["err"].append(line[3:])
        elif line == "" or line.startswith("#"):
            continue
        elif case:
            case["out"].append(line)
    if case:
        yield case


passed = failed = 0
env = dict(os.environ, LC_ALL="C.UTF-8", TERM="dumb", COLUMNS="100")
env["PATH"] = os.path.dirname(os.path.abspath(env["TOKWATT"])) + ":" + env["PATH"]
for path in sys.argv[1:]:
    with tempfile.TemporaryDirectory() as home:
        env["HOME"] = env["XDG_DATA_HOME"] = env["XDG_CONFIG_HOME"] = home
        for c in cases(path):
            try:
                r = subprocess.run(["bash", "-c", c["cmd"]], cwd=home, env=env, capture_output=True, timeout=100,
                                   stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired:
                print(f"{path}:{c['line']}: $ {c['cmd']}\n  did not end within 100 s")
                failed += 1
                continue
            out = r.stdout.decode(errors="replace").splitlines()
            err = r.stderr.decode(errors="replace").splitlines()
            out = [l for l in out if l.strip()]
            err = [l for l in err if l.strip()]
            if r.returncode == c["rc"] and matches(c["out"], out) and matches(c["err"], err):
                passed += 1
                continue
            failed += 1
            print(f"{path}:{c['line']}: $ {c['cmd']}")
            print(f"  exit status {r.returncode}, expected {c['rc']}")
            for name, want, got in (("stdout", c["out"], out), ("stderr", c["err"], err)):
                if not matches(want, got):
                    print(f"  {name} expected:", *want, sep="\n    | ")
                    print(f"  {name} was:", *got[:40], sep="\n    | ")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or not passed else 0)
