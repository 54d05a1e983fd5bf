# Asking a daemon: usage, and nobody there.
$ tokwatt event
2> tokwatt event: say add, list, show or cancel; see tokwatt event --help
? 2
$ tokwatt event add --cut 30%
2> tokwatt event: add wants --cut and --for; see tokwatt event --help
? 2
$ tokwatt event add --cut 150% --for 5m
2> tokwatt event: --cut: 150% is outside 0% to 100%
? 2
$ tokwatt event cancel
2> tokwatt event: cancel wants the number of an event; tokwatt event list shows them
? 2
$ tokwatt event end 1
2> tokwatt event: "end" is none of add, list, show, cancel
? 2
$ tokwatt event list --at 127.0.0.1:1
2> ~ tokwatt event: no daemon at 127.0.0.1:1 .*; start tokwattd, or say --at ADDRESS:PORT
? 2
$ tokwatt status --at 127.0.0.1:1
2> ~ tokwatt status: no daemon at 127.0.0.1:1 .*
? 2
$ tokwatt explain
2> tokwatt explain: a GPU is missing; see tokwatt explain --help
? 2
