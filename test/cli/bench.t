# Bench: what it refuses; a small reconstruction; on measured jobs a golden run of a made-up site.
$ tokwatt bench
2> tokwatt bench: say what to measure: allocation
? 2
$ tokwatt bench speed
2> tokwatt bench: say what to measure: allocation
? 2
$ TW_DATA=/nowhere tokwatt bench allocation --public
2> tokwatt bench: no measured points are here: name a file, or set TW_DATA to a folder with caps/curves.csv
? 2
$ tokwatt bench allocation --public missing.csv
2> ~ tokwatt bench: missing.csv: .*
? 2
$ tokwatt bench allocation --cut 0
2> tokwatt bench: --cut is 0, expected more than 0 and less than 100%
? 2
$ tokwatt bench allocation --draws 0
2> ~ tokwatt bench: .*0.*
? 2
$ tokwatt bench allocation --scale other
2> tokwatt bench: --scale is "other", expected published or unit
? 2
# Two boards on which jobs differ by a factor in slowdown; equal would cut both alike.
$ python3 - <<'PY'
> import math
> rows = ["set,gpu,job,kind,n_gpus,knob,setting,power_w,throughput,unit"]
> for board, bend, watts in (("A-400W", 0.5, 380.0), ("B-300W", 5.0, 280.0)):
>     for m in range(4):
>         f = 0.25 * (1 + 0.05 * m)
>         for cap in (1.0, 0.92, 0.84, 0.76, 0.68, 0.60, 0.52):
>             d = 1 - cap
>             rows.append(f"{board[0]},{board},m{m}{board[0]},train,8,cap_w,{round(cap*400)},{watts*cap:.3f},{100/(1+f*d*math.exp(bend*d)):.4f},tokens/s")
> open("site.csv", "w").write("\n".join(rows) + "\n")
> PY
$ tokwatt bench allocation --public site.csv --scale unit --cut 30% --json > a.json && python3 -c "
> import json; d = json.load(open('a.json'))
> print(d['schema'], d['kind'], d['n_jobs'], d['cut_frac'], d['nothing_to_win'])
> g = {l['level']: l['gap_recovered'] for l in d['levels']}
> print(list(g), all(g[k] > 0.6 for k in ('telemetry', 'probe1', 'probe2')), g['curve'] > 0.95)
> print([l['paid_frac'] > 0 for l in d['levels']], d['jobs'][0]['model'], d['jobs'][0]['learnt_from'])"
tokwatt.bench.allocation/1 public 8 0.3 False
['board', 'telemetry', 'probe1', 'probe2', 'curve'] True True
[False, False, True, True, False] m0A 7
$ tokwatt bench allocation --public site.csv --scale unit --cut 30% --json | cmp - a.json
# One board alone: nothing to win, and the output says so.
$ tokwatt bench allocation --public site.csv --scale unit --sets A --cut 30% | grep -c 'nothing to win'
1
$ tokwatt bench allocation --public site.csv --scale unit --sets A --cut 30% --json | grep -c '"gap_recovered": null'
10
$ tokwatt bench allocation --public site.csv --scale unit --sets C
2> tokwatt bench: site.csv: no set "C" with jobs that were measured twice or more
? 2
$ tokwatt bench allocation --public site.csv --scale unit --cut 60%
2> ~ tokwatt bench: a cut of 60% is deeper than the lowest measured points, which allow 48.0%
? 2
# The same draws whatever the number of threads.
$ tokwatt bench allocation --draws 6 --workloads 3 --jobs 20 --threads 1 --json > one.json && tokwatt bench allocation --draws 6 --workloads 3 --jobs 20 --threads 3 --json | cmp - one.json
$ python3 -c "
> import json; d = json.load(open('one.json'))
> print(d['schema'], d['kind'], d['draws'], len(d['rows']), [p['policy'] for p in d['rows'][0]['policies']])
> print(all(abs(p['gap_recovered']['median'] - (p['policy'] == 'oracle')) < 1e-9 for r in d['rows'] for p in r['policies'] if p['policy'] in ('equal', 'oracle')))"
tokwatt.bench.allocation/1 reconstruction 6 8 ['equal', 'rule', 'rule_pfi', 'board', 'telemetry', 'probe1', 'probe2', 'curve', 'oracle']
True
$ tokwatt bench allocation --draws 6 --workloads 3 --jobs 20 | grep -o 'A reconstruction\|63 % lies [a-z]* the 5-95 % range'
~ A reconstruction
~ 63 % lies (in|out)side the 5-95 % range
