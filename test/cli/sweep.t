# sweep: a simulated job measured, its points readable by pfi, and what is refused.
$ tokwatt sweep --source sim:seed=3 --job ft-dense-70b --caps 300..700/100W --out curve.csv
~ simulated: ft-dense-70b on 8 GPUs, uncapped: 5[0-9]{3} W, 5[0-9.]+ tokens/s
  cap W   power W    cut %   slower %   90 % interval   measured s
~  +600 +4[0-9]{3} .*
~  +500 +3[0-9]{3} .*
~  +400 +3[0-9]{3} .*
~  +300 +2[0-9]{3} .*
~ left out: warm-up [0-9]+ s, evaluations [0-9]+ s, checkpoints [0-9]+ s
~ drift from first to last: [-+][0-9.]+ %
~ PFI 1\.[0-9]+ \(90 %: [0-9.]+ to [0-9.]+\) over 4 caps, by sums [0-9.]+; knee at a cut of [0-9]+ %
~ at most 5 % slower: cap 6[0-9]{2} W: [0-9.]+ % less power, 5.0 % slower \([0-9.]+ to [0-9.]+\), 0\.[0-9]+ J/token instead of 0\.[0-9]+
~ least J per unit: cap [0-9]+ W: .* J/token instead of .*
put back: 8 of 8 GPUs hold what was found
next: tokwatt pfi curve.csv
$ head -2 curve.csv; wc -l < curve.csv
set,gpu,job,n_gpus,knob,setting,power_w,throughput,unit,loss_frac,loss_low,loss_high
~ "simulated",".+","ft-dense-70b",8,power_cap_w,700,6[0-9.]+,5[0-9.]+,"tokens/s",0,,
6
# pfi reads it, and finds the same index.
$ a=$(tokwatt sweep --source sim:seed=3 --job ft-dense-70b --caps 300..600/100W --out curve.csv --force --json | grep -m1 '"pfi":' | tr -dc 0-9. | cut -c1-5); b=$(tokwatt pfi curve.csv --json | grep -m1 '"pfi":' | tr -dc 0-9. | cut -c1-5); test "$a" = "$b" && echo same
same
$ a=$(tokwatt sweep --source sim:seed=3 --job ft-dense-70b --json | grep -m1 '"pfi":'); b=$(tokwatt sweep --source sim:seed=3 --job ft-dense-70b --json | grep -m1 '"pfi":'); test "$a" = "$b" && tokwatt sweep --source sim:seed=3 --job ft-dense-70b --json | grep -E '"(schema|simulated|put_back|n_gpus|ended_early)"'
  "schema": "tokwatt.sweep/1",
  "simulated": true,
  "n_gpus": 8,
  "ended_early": false,
  "put_back": 8,
# Bad input.
$ tokwatt sweep --source sim:seed=3 --job ft-dense-70b --out curve.csv
2> tokwatt sweep: curve.csv is there already; choose another name or say --force
? 2
$ tokwatt sweep --source sim
2> tokwatt sweep: which job? --job NAME; tokwatt gpus --source sim lists them
? 2
$ tokwatt sweep --source sim:jobs=2,gpus=4 --job llama
2> tokwatt sweep: there is no job "llama" on this source; there are: pt-dense-70b, ft-dense-70b
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --caps 100W
2> tokwatt sweep: --caps: 100 W is less than these GPUs take, 200 W
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --caps 700W
2> tokwatt sweep: no cap lies between 200 W and the 700 W that were found
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --caps 300..200/50W
2> tokwatt sweep: --caps: "300..200/50W" is not 1 to 23 caps upwards in steps of 1 W or more
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --caps 300..500
2> tokwatt sweep: --caps: a range is LOW..HIGH/STEP, as 200..700/100W, not "300..500"
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --caps 300W,300W
2> tokwatt sweep: the cap 300 W stands twice
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --caps 300W,watts
2> ~ tokwatt sweep: --caps: .*watts.*
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --points 6 --for 1m
2> tokwatt sweep: 60 s are too short for 6 caps: 300 s or more, or fewer caps
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --precision 1%
2> tokwatt sweep: a precision of 1.00 % cannot be had: run-to-run variation alone is 1.16 %
? 2
$ tokwatt sweep --source sim --job ft-dense-70b -- sleep 1
2> tokwatt sweep: a simulated job takes no command, process, helper, GPUs or progress of its own
? 2
$ tokwatt sweep -- sleep 1
2> tokwatt sweep: progress comes from --progress-log FILE --pattern REGEX or from --progress-socket PATH; give one of them
? 2
$ tokwatt sweep --progress-log x -- sleep 1
2> tokwatt sweep: --progress-log needs --pattern: which lines count?
? 2
$ tokwatt sweep --progress-log x --pattern '(' --source nvml:path=$TW_FAKE_NVML_DIR/libnvidia-ml.so.1 -- sleep 1
2> ~ tokwatt sweep: "\(" is no regular expression: .*
? 2
$ touch file; tokwatt sweep --progress-socket file --source nvml:path=$TW_FAKE_NVML_DIR/libnvidia-ml.so.1 -- sleep 1
2> tokwatt sweep: file is there and is no socket
? 2
$ tokwatt sweep --progress-log x --pattern y --source nvml:path=/nowhere -- sleep 1
2> ~ tokwatt sweep: .*/nowhere.*
? 2
$ tokwatt sweep --source sim --job ft-dense-70b --out no/such/dir/curve.csv
2> ~ tokwatt sweep: no/such/dir/curve.csv.*
? 2
