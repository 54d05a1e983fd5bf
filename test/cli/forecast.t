# Forecasts over a recording: rows, what is too short, and models that are none.
$ tokwatt record site.csv --source sim:seed=7,gpus=4,jobs=2 --for 2m > /dev/null
$ tokwatt forecast builtin site.csv > rows.csv; head -1 rows.csv; wc -l < rows.csv
time_s,series,target,lead_s,low_w,mid_w,high_w
57
# every row: after the last sample, and its three numbers in order
$ awk -F, 'NR > 1 && !($1 == 119 && $5 <= $6 && $6 <= $7 && $5 > 0 && $7 < 2000)' rows.csv
$ cut -d, -f2-4 rows.csv | sed -n '2,3p;13,16p'
gpu0,point,5
gpu0,point,10
gpu0,point,60
gpu0,mean,30
gpu0,mean,60
gpu1,point,5
$ tokwatt forecast builtin site.csv --series 'gpu[12]' | cut -d, -f2 | sort | uniq -c | tr -s ' '
 14 gpu1
 14 gpu2
 1 series
# every 30 s: nothing before a minute, then at 89 and 119 s; the last is the same as without
$ tokwatt forecast builtin site.csv --every 30s | cut -d, -f1 | uniq -c | tr -s ' '
 1 time_s
 56 89
 56 119
$ tokwatt forecast builtin site.csv --every 30s | grep '^119' > last.csv; tail -n +2 rows.csv | cmp - last.csv
# cut before the last sample: what comes later does not matter to a forecast
$ awk -F, 'NR == 1 || $1 <= 89' site.csv > part.csv; tokwatt forecast builtin part.csv | tail -n +2 > a; tokwatt forecast builtin site.csv --every 30s | grep '^89' | cmp - a
# not yet
$ head -100 site.csv > short.csv; tokwatt forecast builtin short.csv
time_s,series,target,lead_s,low_w,mid_w,high_w
2> tokwatt forecast: warning: not yet: 4 of 4 series have no full minute before the end of short.csv
? 1
$ tokwatt forecast builtin short.csv --series gpu0 --json 2> /dev/null
{
  "schema": "tokwatt.forecast/1",
  "model": "builtin",
  "step_s": 1,
  "forecasts": [
    {
      "time_s": 24,
      "series": "gpu0",
      "ready": false,
      "heads": []
    }
  ]
}
? 1
# models that are none
$ tokwatt forecast
2> tokwatt forecast: a model file is missing; see tokwatt forecast --help
? 2
$ tokwatt forecast builtin
2> tokwatt forecast: a recording is missing; see tokwatt forecast --help
? 2
$ tokwatt forecast none.safetensors site.csv
2> tokwatt forecast: none.safetensors: No such file or directory
? 2
$ M=$TW_SOURCE/share/models/sim-gru.safetensors; tokwatt forecast $M site.csv | cmp - rows.csv
$ head -c 40000 $TW_SOURCE/share/models/sim-gru.safetensors > cut.st; tokwatt forecast cut.st site.csv
2> ~ tokwatt forecast: cut.st: .+
? 2
$ sed 's,tokwatt.model/1,tokwatt.model/9,' $TW_SOURCE/share/models/sim-gru.safetensors > other.st; tokwatt forecast other.st site.csv
2> tokwatt forecast: other.st: this model's "format" is "tokwatt.model/9", this version of tokwatt reads "tokwatt.model/1"
? 2
$ python3 -c 'import sys; b = bytearray(open(sys.argv[1], "rb").read()); b[-4:] = b"\0\0\xc0\x7f"; open("nan.st", "wb").write(b)' $TW_SOURCE/share/models/sim-gru.safetensors; tokwatt forecast nan.st site.csv
2> ~ tokwatt forecast: nan.st: .+
? 2
$ python3 -c 'open("big.st", "wb").write((10 << 30).to_bytes(8, "little") + b"{}")'; tokwatt forecast big.st site.csv
2> ~ tokwatt forecast: big.st: .+
? 2
$ tokwatt forecast site.csv site.csv
2> ~ tokwatt forecast: site.csv: .+
? 2
# data that is none
$ tokwatt forecast builtin none.csv
2> tokwatt forecast: none.csv: No such file or directory
? 2
$ tokwatt forecast builtin site.csv --series 'cpu*'
2> tokwatt forecast: site.csv: no series with power fits "cpu*"; the first is "gpu0"
? 2
$ awk -F, 'NR == 1 || $1 % 10 == 0' site.csv > slow.csv; tokwatt forecast builtin slow.csv
2> tokwatt forecast: slow.csv has a sample every 10 s; this model wants one every 1 s
? 2
$ tokwatt forecast builtin site.csv --every 0s
2> ~ tokwatt forecast: "0s": .+
? 2
$ tokwatt forecast builtin site.csv more
2> ~ tokwatt forecast: "more" is one word too many.*
? 2
