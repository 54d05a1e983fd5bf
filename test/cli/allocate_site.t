# allocate on a site file. The infeasible one by hand: two floors of 200 W and 50 W of base load under a limit of 430 W
# are 20 W too much. Values of the feasible one are checked against a linear programme in test/prop.
$ cp $TW_SOURCE/docs/examples/site.yaml .; tokwatt allocate site.yaml --cut 25% --what-if +1kW | grep -E '^(curve  |  site|  With|night)'
~ curve +\d+\.\d +\d+\.\d+ +0\.00 .*
~   site +full at 5\.81 kW: one kW more brings [\d.]+ tokens/s
~   With 1000 W more the site makes [\d.]+ tokens/s, [\d.]+ more\.
~ nightly-evaluation +0\.0 +100\.0 +0\.00 +60\.00 .* none, paused
# Every cap on a step, and together (with 1500 W of base load) within the budget of 5000 W.
$ tokwatt allocate site.yaml --budget 5kW --policy curve --json | python3 -c 'import json,sys; d=json.load(sys.stdin); g=[g for j in d["policies"][0]["jobs"] for g in j["gpus"]]; print(len(g), all(x["cap_w"]==int(x["cap_w"]) for x in g), 4990 < 1500+sum(x["cap_w"] for x in g) <= 5000, d["schema"])'
10 True True tokwatt.allocate-site/1
# A cautious split takes losses where points leave them open to be worse; it still fits.
$ tokwatt allocate site.yaml --budget 5kW --policy curve --risk 2 --json | grep -E '"(risk|feasible)"' | sed 's/^ *//'
"risk": 2,
"feasible": true,
# Infeasible: exit 1, where, by how much, and the nearest split.
$ printf 'tree: [{name: site, limit_w: 5000}, {name: a, parent: site, limit_w: 430}, {name: b, parent: site}]\njobs:\n- {name: j1, gpus: [{uuid: G1, node: a, floor_w: 200, ceiling_w: 500}, {uuid: G2, node: a, floor_w: 200, ceiling_w: 500}], p0_w: 1000, t0: 10, curve: {k: 3, x0: 0.1}}\n- {name: j2, gpus: [{uuid: G3, node: b, floor_w: 200, ceiling_w: 500}], p0_w: 500, t0: 10, curve: {k: 3, x0: 0.1}}\nbase_load: [{node: a, watts: 50}]\n' > small.yaml; tokwatt allocate small.yaml --cut 10%
Infeasible: floors and base load exceed these limits.
  a                    needs 450.0 W of 430.0 W: 20.0 W too much
The nearest feasible split, with just these limits raised by so much:

...
~ j1 +400\.0 +60\.0 .*
~ j2 +500\.0 +0\.0 +100\.00 .*
? 1
$ tokwatt allocate small.yaml --cut 10% --json | grep -E '"(feasible|over_w)"' | sed 's/^ *//'
"feasible": false,
"over_w": 20
# Bad input: one line with the place in the file, exit 2.
$ sed 's/parent: site}/parent: nowhere}/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: tree[2].parent: there is no node "nowhere"
? 2
$ sed 's/{name: b, parent: site}/{name: b, parent: c}, {name: c, parent: b}/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: tree[2].parent: "c" goes round in a circle, or is deeper than 31
? 2
$ sed 's/limit_w: 430/limit_w: 430kW/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: tree[1].limit_w: "430kW" is not a number
? 2
$ sed 's/limit_w: 430/limit_w: -4/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: tree[1].limit_w: -4 is outside 0 to 1e+12
? 2
$ sed 's/limit_w: 430/limit: 4/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: line 1: tree[1]: Unexpected key: limit
? 2
$ sed 's/G3/G1/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: jobs[1].gpus[0].uuid: G1 is in jobs[0].gpus[0] already
? 2
$ sed 's/gpus: \[{uuid: G3[^]]*\]/gpus: []/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: jobs[1].gpus: job "j2" is on no GPU
? 2
$ sed 's/floor_w: 200, ceiling_w: 500}\]/floor_w: 600, ceiling_w: 500}]/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: jobs[0].gpus[1].floor_w: 600 W is above its ceiling_w of 500 W
? 2
$ sed 's/p0_w: 500, /p0_w: 500, unit: images\/s, /' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: jobs[1].unit: images/s beside tokens/s of jobs[0]: one job's number cannot be added to the other's
? 2
$ sed 's/node: b,/node: zz,/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: jobs[1].gpus[0].node: there is no node "zz"
? 2
$ sed 's/x0: 0.1}}$/x0: 0.1, points: [[1,1]]}}/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: jobs[0].curve: either points, or k and x0 together
? 2
$ sed 's/name: b, parent/name: a, parent/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: tree[2].name: "a" is also the name of tree[1]
? 2
$ sed 's/watts: 50/watts: nan/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: base_load[0].watts: "nan" is not a number
? 2
$ sed 's/t0: 10,//' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: line 3: jobs[0]: Missing required mapping field: t0
? 2
$ sed 's/{name: a, parent: site/{name: a/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: tree[1].parent: missing, and tree[0] "site" is the root already
? 2
$ sed 's/jobs:/jobs: [/' small.yaml > bad.yaml; tokwatt allocate bad.yaml --cut 10%
2> tokwatt allocate: bad.yaml: line 2: jobs[0]: libyaml: did not find expected node content
? 2
$ tokwatt allocate small.yaml
2> tokwatt allocate: one of --cut and --budget is needed, as in --cut 30% or --budget 120kW
? 2
$ tokwatt allocate small.yaml --budget -4
2> tokwatt allocate: --budget: -4 is negative; a power is 0 W or more
? 2
$ tokwatt allocate small.yaml --budget 120X
2> tokwatt allocate: --budget: "120X" is not a power; write 350W, 12kW or 1.5MW
? 2
$ tokwatt allocate small.yaml --budget 1kW --cut 3%
2> tokwatt allocate: one of --cut and --budget is needed, as in --cut 30% or --budget 120kW
? 2
$ tokwatt allocate small.yaml --cut 10% --policy oracle
2> tokwatt allocate: --policy oracle splits measured points; a site file has none to be right about
? 2
$ tokwatt allocate small.yaml --cut 10% --risk 9
2> tokwatt allocate: --risk is "9", expected 0 to 5 standard deviations
? 2
$ tokwatt allocate small.yaml --cut 10% --sets x
2> tokwatt allocate: --sets, --job, --drop, --reach and --scale are for tables of points, and small.yaml is a site file
? 2
# A table of points is not a site.
$ printf 'job,setting,power_w,throughput,unit\na,4,100,10,tokens/s\na,3,75,9,tokens/s\n' > t.csv; tokwatt allocate t.csv --budget 4kW
2> tokwatt allocate: --budget, --what-if and --risk are for site files, and t.csv is none
? 2
