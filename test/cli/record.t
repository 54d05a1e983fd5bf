# Recording: what it says, what it writes, what it refuses.
$ tokwatt record site.csv --source sim:seed=7,gpus=4,jobs=2 --for 5s
site.csv: 20 rows of 4 simulated GPUs over 4 s
$ head -1 site.csv | cut -d, -f1-8
t_s,gpu_uuid,gpu_model,job,power_w,power_instant_w,energy_j,cap_w
$ wc -l < site.csv
21
$ cut -d, -f1,2,4 site.csv | sed -n '2p;5,6p;$p'
0,GPU-51a70000-0000-4000-8000-000000000000,pt-dense-70b
0,GPU-51a70000-0000-4000-8000-000000000003,ft-dense-70b
1,GPU-51a70000-0000-4000-8000-000000000000,pt-dense-70b
4,GPU-51a70000-0000-4000-8000-000000000003,ft-dense-70b
$ tokwatt record site.csv
2> tokwatt record: site.csv is there already; choose another name or say --force
? 2
$ tokwatt record again.csv --source sim:seed=7,gpus=4,jobs=2 --for 5s >/dev/null && cmp site.csv again.csv
$ tokwatt record again.csv.gz --source sim:seed=7,gpus=4,jobs=2 --for 5s >/dev/null && gzip -dc again.csv.gz | cmp - site.csv
$ tokwatt record again.csv --force --source sim:seed=8,gpus=4,jobs=2 --for 5s --json
{
  "schema": "tokwatt.record/1",
  "file": "again.csv",
  "source": "sim",
  "simulated": true,
  "gpus": 4,
  "rows": 20,
  "span_s": 4,
~   "took_s": .*
}
$ cmp -s site.csv again.csv
? 1
$ tokwatt record
2> tokwatt record: a file to write is missing; see tokwatt record --help
? 2
$ tokwatt record new.csv --source nvidia
2> ~ tokwatt record: no source is called "nvidia"; there is: .*sim.*
? 2
$ tokwatt record new.csv --source sim:gpu=8
2> ~ tokwatt record: the simulator does not know "gpu"; it takes seed, gpus, .*
? 2
$ tokwatt record new.csv --period 1ms
2> tokwatt record: a period of 0.001 s is too short; 100ms is the shortest
? 2
$ tokwatt record new.csv --for 0
2> tokwatt record: --for 0 s is shorter than one period of 1 s
? 2
$ tokwatt record no/such/folder.csv
2> tokwatt record: no/such/folder.csv: No such file or directory
? 2
$ ls
again.csv
again.csv.gz
site.csv
$ tokwatt record /dev/full --force --source sim:gpus=4,jobs=2 --for 1m
2> tokwatt record: /dev/full: the file could not be written whole: No space left on device
? 2

# Nothing half-written: a recording that failed before its first row leaves no file.
$ tokwatt record none.csv --source sim:gpus=4,jobs=2 --for 1e9h --period 1e9h; ls none.csv
2> ~ tokwatt record: simulated time cannot pass by .*
2> ~ ls: cannot access 'none.csv': .*
? 2
