# A simulated event: what it says in JSON, and what it refuses.
$ tokwatt sim --gpus 16 --for 60 --policy equal --json | head -12
{
  "schema": "tokwatt.sim/1",
  "simulated": true,
  "gpus": 16,
  "jobs": 10,
  "cut_frac": 0.3,
  "for_s": 60,
  "unit": "weighted tokens: one token of a 70B model counts 1, others by their active parameters",
  "runs": [
    {
      "seed": 1,
~       "in_band": .*
$ tokwatt sim --gpus 16 --for 60 --json > one; tokwatt sim --gpus 16 --for 60 --json | cmp - one
$ tokwatt sim --cut 90%
2> ~ tokwatt sim: a cut of 90 % is below what the devices accept \(lowest limits sum to 12800 W\); the nearest is .* %
? 1
$ tokwatt sim --cut 150%
2> tokwatt sim: --cut: 150% is outside 0% to 100%
? 2
$ tokwatt sim --cut -5%
2> ~ tokwatt sim: --cut: .*
? 2
$ tokwatt sim --cut abc
2> ~ tokwatt sim: --cut: .*
? 2
$ tokwatt sim --policy best
2> tokwatt sim: "best" is no policy; there are curve, equal, oracle and none
? 2
$ tokwatt sim --policy none
2> tokwatt sim: --policy names no policy that caps; there are curve, equal and oracle
? 2
$ tokwatt sim --for 1s
2> tokwatt sim: --for 1 s: 20 s to a day can be simulated
? 2
$ tokwatt sim what
2> ~ tokwatt sim: "what" is not expected; everything is an option here
? 2
