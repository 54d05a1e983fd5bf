# Recordings into the store: reports, exit status, one line for each kind of bad input.
$ tokwatt import
2> tokwatt import: a file or folder is missing; see tokwatt import --help
? 2
$ tokwatt import missing.csv
2> tokwatt import: missing.csv: No such file or directory
? 2
$ tokwatt import --store s.db .
2> tokwatt import: .: no recording of power among 0 files
? 2
$ head -c 5000 /dev/urandom > noise; printf '\n' >> noise; tokwatt import --store s.db noise
2> ~ tokwatt import: noise: no known format .*
? 2
$ touch empty.csv; tokwatt import --store s.db empty.csv
2> tokwatt import: empty.csv: the file is empty
? 2
$ printf 'timestamp, power.draw [W]\n2025/12/03 22:56:32.993, nan\n2025/12/03 22:56:33.993, -3 W\n' > bad.csv; tokwatt import --store s.db bad.csv
2> tokwatt import: bad.csv: no usable row; line 2: unreadable number
? 2
$ printf 'timestamp, power.draw [W]\n' > header.csv; tokwatt import --store s.db header.csv
2> tokwatt import: header.csv: nvidia-smi-csv without a single row
? 2
$ printf 'a: b\n' > notes.yaml; tokwatt import --store s.db notes.yaml
2> ~ tokwatt import: notes.yaml: no known format \(begins with "a: b"\); expected .*
? 2
$ tokwatt import --store s.db .
2> tokwatt import: no usable row in 2 files
? 2
# What could not be used left nothing behind.
$ tokwatt export --store s.db --list
      rows           span  series         source
0 series, 0 rows
$ rm *; mkdir deep; ln -s .. deep/up; ln -s nowhere deep/dead; printf 'x\n' > deep/readme; printf 'timestamp, power.draw [W]\n2025/12/03 22:56:32.993, 19.5 W\n2025/12/03 22:56:42.993, 20.1 W\n2025/12/03 22:56:' > deep/cut.csv
$ tokwatt import --dry-run .
2> tokwatt import: warning: 1 of the lines left out, the first being ./deep/cut.csv:4: cut line at the end of the file
~  +rows +series +span +gaps +format +file
         2       1           10 s      0  nvidia-smi-csv     ./deep/cut.csv
           left out: 1 x cut line at the end of the file, first in line 4
1 file, 1 series, 2 rows, 0 gaps, 1 line left out; skipped: 1 not telemetry, 0 empty
Nothing was stored (--dry-run). Next: the same without --dry-run
$ tokwatt import --dry-run --strict deep/cut.csv >/dev/null
2> ~ tokwatt import: warning: 1 of .*
? 1
$ tokwatt import --dry-run --json deep/cut.csv deep/readme
2> ~ tokwatt import: deep/readme: no known format .*
2> ~ tokwatt import: warning: .*
{
  "schema": "tokwatt.import/1",
  "dry_run": true,
  "store": null,
  "files": [
    {
      "file": "deep/cut.csv",
      "format": "nvidia-smi-csv",
      "rows": 2,
      "series": 1,
      "series_names": [
        "gpu0"
      ],
      "span_s": 10,
      "from": "2025-12-03T22:56:32.993Z",
      "to": "2025-12-03T22:56:42.993Z",
      "gaps": 0,
      "longest_gap_s": 0,
      "rejected": [
        {
          "reason": "cut line at the end of the file",
          "count": 1,
          "first_line": 4
        }
      ]
    }
  ],
  "skipped": []
}
? 2
# Into the store and out again, twice: the second import replaces the first.
$ for i in 1 2; do tokwatt import deep/cut.csv 2>/dev/null | tail -1; done
~ Stored in .*/tokwatt/tokwatt.db. Next: tokwatt export --list
~ Stored in .*/tokwatt/tokwatt.db. Next: tokwatt export --list
$ tokwatt export | sed "s|$PWD|HERE|"
source,series,time,power_w
HERE/deep/cut.csv,gpu0,2025-12-03T22:56:32.993000Z,19.5
HERE/deep/cut.csv,gpu0,2025-12-03T22:56:42.993000Z,20.1000004
$ tokwatt export --series '*cut*:gpu?' | wc -l
3
$ tokwatt export --series gpu7
2> tokwatt export: no series fits "gpu7"; see tokwatt export --list
? 2
$ tokwatt export --store none.db
2> tokwatt export: none.db: no store there; fill one with tokwatt import
? 2
$ tokwatt export --json
2> tokwatt export: --json goes with --list; samples come as CSV
? 2
$ printf 't_s,gpu_index,power_w\n0.0000,1,50.25\n0.0101,1,51\n' | gzip > rel.csv.gz; tokwatt import --store r.db rel.csv.gz | head -2; tokwatt export --store r.db | cut -d, -f2-
~  +rows +series +span +gaps +format +file
         2       1          10 ms      0  nvml-csv           rel.csv.gz
series,time,power_w
gpu1,0.000000,50.25
gpu1,0.010100,51
$ printf 'no database, but long enough to be looked at as one, and then some more of it........................\n' > text.db; tokwatt import --store text.db rel.csv.gz
2> tokwatt import: text.db: file is not a database; it is no store of tokwatt, or damaged
? 2
$ tokwatt import rel.csv.gz > /dev/full
2> tokwatt import: cannot write the report to standard output
? 2
