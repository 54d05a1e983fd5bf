# pfi: points in, curves and PFI out; every kind of bad input is one line and exit 2.
# A curve whose numbers can be checked by hand: d = .2, l = .1 -> 2; d = .4, l = .3 -> 4/3; mean 5/3, sums 0.6/0.4.
$ printf '%s\n' 'unit,job,"setting",throughput,power_w,extra' 'tokens/s,"a ""b"", c",300,100,200,x' 'tokens/s,"a ""b"", c",200,90,160,' 'tokens/s,"a ""b"", c",100,70,120,' > ok.csv; tokwatt pfi ok.csv --json | grep -E '"(job|points_used|pfi|pfi_ros|schema)"' | sort -u
~  +"pfi": 1.5,
~  +"pfi": 2,
~  +"job": "a \\"b\\", c",
~  +"pfi": 1.66667,
~  +"pfi_ros": 1.5,
~  +"points_used": 2,
~  +"schema": "tokwatt.pfi/1",
$ tokwatt pfi ok.csv --plot | grep -c /
~ [0-9]+
# Repeats of a setting: their mean, or the highest tenth.
$ printf 'job,setting,power_w,throughput,unit\na,2,100,10,steps/s\na,1,50,8,steps/s\na,1,70,6,steps/s\n' > rep.csv; tokwatt pfi rep.csv --json | grep '"pfi":' | head -1; tokwatt pfi rep.csv --json --aggregate top10 | grep '"pfi":' | head -1
~  +"pfi": 1.33333,
~  +"pfi": 1.5,
# Two knobs: one job for each value of the second.
$ printf 'job,setting,power_w,throughput,unit\na,300@1380,200,10,iters/s\na,150@1380,100,8,iters/s\na,300@405,60,2,iters/s\na,150@405,50,1,iters/s\n' > two.csv; tokwatt pfi two.csv | cut -c20-30,54-70 | sed -n 2,3p
~ a@1380 +1/1 +2.500 *
~ a@405 +1/1 +0.333 *
$ tokwatt pfi two.csv --job a@405 --json | grep -c '"job":'
1
$ tokwatt pfi two.csv --job a --json | grep -c '"job":'
2
# One point: null with a reason in a list, an error when asked for by name.
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\na,150,100,8,iters/s\nb,300,60,2,iters/s\n' > one.csv; tokwatt pfi one.csv --json | grep reason
~  +"reason": "one usable point, at least two are needed",
$ tokwatt pfi one.csv --job b
2> tokwatt pfi: one.csv:4: job "b": one usable point, at least two are needed
? 2
# Noise is not an error.
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\na,150,100,10.1,iters/s\na,100,90,10.2,iters/s\n' > noise.csv; tokwatt pfi noise.csv --json | grep warning
~  +"warning": "throughput above the uncapped point"
~  +"warning": "throughput above the uncapped point"
# Errors, each with its row.
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\na,150,-1,8,iters/s\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 3: power_w is -1, expected more than 0
? 2
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\na,150,0,8,iters/s\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 3: power_w is 0, expected more than 0
? 2
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\na,150,100,nan,iters/s\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 3: throughput is "nan", expected a number
? 2
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,furlongs\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 2: unit "furlongs" is not known; known are tokens/s, samples/s, steps/s and others (man tokwatt-pfi)
? 2
$ printf 'job,setting,power_w,throughput,unit\na,,200,10,iters/s\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 2: setting is empty, so job "a" has no uncapped reference
? 2
$ printf 'job,setting,power_w,throughput,unit\na,300,200,0,iters/s\na,150,100,0,iters/s\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 2: job "a" has no uncapped reference: throughput is 0 at its largest setting
? 2
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\na,150,100,5,steps/s\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 3: unit "steps/s", but job "a" has "iters/s" in line 2
? 2
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\na,150\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 3: 2 fields, expected 5
? 2
$ printf 'job,setting,power_w,throughput,unit\na,300,200,10,iters/s\n"a,150,100,5,iters/s\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 3: a quoted field does not end
? 2
$ printf 'job,setting,power_w,unit\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: line 1: no column "throughput"; expected a header with job, setting, power_w, throughput and unit
? 2
$ printf 'job,setting,power_w,throughput,unit\n' > bad.csv; tokwatt pfi bad.csv
2> tokwatt pfi: bad.csv: no rows after the header
? 2
$ tokwatt pfi missing.csv
2> tokwatt pfi: missing.csv: No such file or directory
? 2
$ tokwatt pfi .
2> tokwatt pfi: . is a directory; name a file
? 2
$ tokwatt pfi
2> tokwatt pfi: a file of measured points is missing; --help says how it is written
? 2
$ tokwatt pfi two.csv --job zzz
2> tokwatt pfi: two.csv: no job "zzz"; there are a@1380, a@405
? 2
$ tokwatt pfi two.csv --at 10%,200%
2> tokwatt pfi: --at: 200% is outside 0% to 100%
? 2

# Caps that never bind: no curve is made up for such a job.
$ printf 'set,gpu,job,kind,n_gpus,knob,setting,power_w,throughput,unit\na,g,idle,train,1,cap_w,300,100,10,tokens/s\na,g,idle,train,1,cap_w,250,100.2,10.1,tokens/s\na,g,idle,train,1,cap_w,200,100.1,9.9,tokens/s\n' > idle.csv; tokwatt pfi idle.csv --json | grep -E '"(reason|curve|pfi)":'
2> ...
~ .*"pfi": null,
~ .*"reason": "no cap lowers the job's power, so nothing says what a cut costs it",
~ .*"curve": null,
# What no GPU and no job can be, and what would draw on a terminal.
$ H=job,setting,power_w,throughput,unit,n_gpus; printf "$H\na,300,1e308,10,tokens/s,1\n" > w.csv; printf "$H\na,300,300,1e300,tokens/s,1\n" > t.csv; printf "$H\na,300,300,10,tokens/s,1e20\n" > n.csv; printf "$H\n\033[31ma,300,300,10,tokens/s,1\n" > c.csv
$ tokwatt pfi w.csv
2> tokwatt pfi: w.csv: line 2: power_w is 1e+308, expected 1e+06 at most
? 2
$ tokwatt pfi t.csv
2> tokwatt pfi: t.csv: line 2: throughput is 1e+300, expected 1e+15 at most
? 2
$ tokwatt allocate n.csv --cut 10%
2> tokwatt allocate: n.csv: line 2: n_gpus is 1e+20, expected 1e+07 at most
? 2
$ tokwatt pfi c.csv
2> tokwatt pfi: c.csv: line 2: a control character (0x1b); is this a text file?
? 2
$ tokwatt pfi w.csv --at ''
2> tokwatt pfi: --at is empty, expected cuts separated by commas
? 2
$ tokwatt allocate w.csv --cut 10% --policy ''
2> tokwatt allocate: --policy is empty, expected names separated by commas, or all
? 2
