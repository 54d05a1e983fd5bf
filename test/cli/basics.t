# The program itself: help, version, unknown verbs.
$ tokwatt --version
~ tokwatt [0-9]+\.[0-9]+\.[0-9]+
$ tokwatt
2> tokwatt: a verb is missing; see tokwatt --help
? 2
$ tokwatt frobnicate
2> tokwatt: "frobnicate" is not a verb; see tokwatt --help
? 2
$ tokwatt --help
~ tokwatt .* - turn a limited number of watts into as many tokens as possible
...
Start with: tokwatt demo

# What was printed must have arrived, whichever verb it was.
$ for v in "gpus --source sim:gpus=4,jobs=2" "doctor --source sim:gpus=4,jobs=2" "sim --gpus 10 --for 20s --policy equal" "record r.csv --source sim:gpus=4,jobs=2 --for 5s" "bench allocation --draws 1 --workloads 1 --jobs 5" "--help" "--version"; do tokwatt $v > /dev/full; echo $? >> rc; done 2> /dev/null; sort rc | uniq -c
      7 2
$ tokwatt --version > /dev/full
2> tokwatt: cannot write to standard output
? 2
# A bad value names its option, whichever verb it is.
$ tokwatt pfi x.csv --draws 0
2> tokwatt pfi: --draws: 0 is outside 100 to 1000000
? 2
$ tokwatt bench allocation --threads -1
2> tokwatt bench: --threads: -1 is outside 1 to 1024
? 2
$ tokwatt bench allocation --probe abc
2> ~ tokwatt bench: --probe: "abc" is not a duration.*
? 2
$ tokwatt demo --gpus 0
2> tokwatt demo: --gpus: 0 is outside 10 to 8192
? 2
$ tokwatt demo --speed nan
2> tokwatt demo: --speed: "nan" is not a number
? 2
$ tokwatt train --steps 0 x -o y
2> ~ tokwatt train: --steps: 0 is outside .*
? 2
