# allocate: a hand-made fleet of two jobs whose answer can be written down.
# a: 1 -> .9 -> .8 kept at cuts 0, .25, .5; b: 1 -> .7 -> .4. At a 25 % cut equal keeps (.9 + .7) / 2 = .8; the best gives
# a the whole cut: (.8 + 1) / 2 = .9.
$ printf 'job,setting,power_w,throughput,unit\na,4,100,10,tokens/s\na,3,75,9,tokens/s\na,2,50,8,tokens/s\nb,4,100,10,tokens/s\nb,3,75,7,tokens/s\nb,2,50,4,tokens/s\n' > two.csv; tokwatt allocate two.csv --scale unit --cut 25% --json | grep -E '"(policy|throughput_frac|gap_recovered|schema)"' | sed 's/^ *//' | grep -A1 -E 'policy|gap' | grep -v -- --
~ "policy": "equal",
"throughput_frac": 0.8,
"gap_recovered": 0,
~ "throughput_frac": .*
"policy": "equal-watts",
"throughput_frac": 0.8,
"gap_recovered": 0,
~ "throughput_frac": .*
"policy": "pfi",
...
"policy": "curve",
"throughput_frac": 0.9,
"gap_recovered": 1,
~ "throughput_frac": .*
"policy": "oracle",
"throughput_frac": 0.9,
"gap_recovered": 1,
~ "throughput_frac": .*
$ tokwatt allocate two.csv --cut 0% --policy curve | grep curve
~ curve +100.00 +100.00 .*
# Alike jobs: nothing to win, and it says so.
$ sed 's/^b,3,75,7/b,3,75,9/; s/^b,2,50,4/b,2,50,8/' two.csv > alike.csv; tokwatt allocate alike.csv --cut 20% | grep little
~ Equal and oracle differ by 0.00 points: on this fleet there is little to win, .*
$ tokwatt allocate alike.csv --cut 20% --policy equal --json | grep -E 'gap|little'
~  +"little_to_win": true,
~  +"gap_recovered": null,
# Deeper than the floors: exit 1 with the nearest feasible split.
$ tokwatt allocate two.csv --cut 60%
Infeasible: the floors need 50% of the power and a cut of 60% leaves 40%; the deepest cut is 50%.
The nearest feasible split has every job at its lowest measured point:
~  +a +50.0 W per GPU, cut +50.0%, keeps +80.0%
~  +b +50.0 W per GPU, cut +50.0%, keeps +40.0%
? 1
$ tokwatt allocate two.csv --cut 60% --json | grep -E 'feasible|"cut_frac": 0.5' | sed 's/^ *//'
"feasible": false,
"cut_frac": 0.5,
"cut_frac": 0.5,
"cut_frac": 0.5,
# The paper's rule across units that do not compare.
$ sed 's/^\(b.*\)tokens/\1images/' two.csv > mixed.csv; tokwatt allocate mixed.csv --cut 10% | grep ^pfi
~ pfi +- +the paper's rule divides by throughput, .*
$ tokwatt allocate mixed.csv --cut 10% --policy pfi
2> tokwatt allocate: policy pfi: the paper's rule divides by throughput, and these jobs are in units that do not compare
? 2
# Bad input: one line, exit 2.
$ tokwatt allocate two.csv --cut 150%
2> tokwatt allocate: --cut: 150% is outside 0% to 100%
? 2
$ tokwatt allocate two.csv --cut -5%
2> tokwatt allocate: --cut: -5% is outside 0% to 100%
? 2
$ tokwatt allocate two.csv --cut abc
2> tokwatt allocate: --cut: "abc" is not a ratio; write 30% or 0.3
? 2
$ tokwatt allocate two.csv --cut ''
2> tokwatt allocate: --cut: "" is not a ratio; write 30% or 0.3
? 2
$ tokwatt allocate two.csv
2> tokwatt allocate: --cut is missing; say how much power to shed, as in --cut 30%
? 2
$ tokwatt allocate two.csv --cut 10% --sets nope
2> tokwatt allocate: two.csv: no set "nope"; there are none
? 2
$ tokwatt allocate two.csv --cut 10% --drop nope
2> tokwatt allocate: two.csv: no job "nope"; there are a, b
? 2
$ tokwatt allocate two.csv --cut 10% --policy best
2> tokwatt allocate: --policy: "best" is none; there are equal, equal-watts, pfi, curve, oracle and all
? 2
$ tokwatt allocate two.csv --cut 10% --drop a,b
2> tokwatt allocate: two.csv: no job is left after --sets, --job and --drop
? 2
$ printf 'job,setting,power_w,throughput,unit\na,4,100,10,tokens/s\n' > one.csv; tokwatt allocate one.csv --cut 10% --job a
2> tokwatt allocate: one.csv:2: job "a": one usable point, at least two are needed
? 2
$ tokwatt allocate one.csv --cut 10%
2> tokwatt allocate: one.csv: no job is left that can be cut; all were left out (--reach, or one usable point)
? 2
