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
