package bench

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
	{
		name: "terminal/last-frame", unit: "ms", target: below(50),
		what: "opening a cassette of 250,000 chunks and as many frames, as one of 1 GB has, and reading its first, a middle and the last frame",
		from: goBench{"./cassette", "^BenchmarkLastFrame$", "200x", "5x", took("BenchmarkLastFrame", time.Millisecond)},
	},
	{
		name: "terminal/gif", unit: "s", target: below(5),
		what: "a minute of htop, drawn anew every 1.5 s with every number another, as an animated GIF",
		from: goBench{"./cassette/picture", "^BenchmarkGIF$/^updates=0.667$/^scale=1$", "5x", "1x", took("BenchmarkGIF/updates=0.667/scale=1", time.Second)},
	},
	{
		name: "terminal/gif-fast", unit: "s",
		what: "the same drawn anew 20 times a second",
		from: goBench{"./cassette/picture", "^BenchmarkGIF$/^updates=20$/^scale=1$", "2x", "1x", took("BenchmarkGIF/updates=20/scale=1", time.Second)},
	},
}

// took reads how long a benchmark takes.
func took(name string, unit time.Duration) func(benches) (reading, error) {
	return func(bs benches) (reading, error) {
		ns, err := bs.median(name, "ns/op")
		return reading{value: ns / float64(unit)}, err
	}
}
