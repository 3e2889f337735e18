package main

import "time"

// What terminals cost.
var terminalRows = []row{
	{
		name: "terminal/record", unit: "x", target: atLeast(0.9), timeout: 30 * time.Minute, needs: []need{installed("script", "apt-get install bsdutils")},
		what: "pace of recording a program that prints 1 GB of log into a terminal, by that of `script -f`",
		from: flood{peer: scriptPeer, long: 1 << 30, short: 8 << 20, runs: 5},
	},
	{
		name: "terminal/asciinema", unit: "x", target: atLeast(2), timeout: 40 * time.Minute, needs: []need{installed("asciinema", "apt-get install asciinema")},
		what: "the same, by that of asciinema",
		from: flood{peer: asciinemaPeer, long: 1 << 30, short: 8 << 20, runs: 1},
	},
}
