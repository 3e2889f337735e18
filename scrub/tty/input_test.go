package tty_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// typing are ways to type a secret; what a shell then has is the secret.
var typing = map[string]func(*rand.Rand, string) []string{
	"key by key": func(_ *rand.Rand, s string) []string { return strings.Split(s, "") },
	"corrected": func(rng *rand.Rand, s string) (events []string) {
		for _, c := range strings.Split(s, "") {
			if rng.IntN(4) == 0 {
				events = append(events, string(rune('a'+rng.IntN(26))), []string{"\x7f", "\b"}[rng.IntN(2)])
			}
			events = append(events, c)
		}
		return events
	},
	"killed and begun again": func(_ *rand.Rand, s string) []string {
		return append([]string{"echo ", "wrong", "\x15"}, strings.Split(s, "")...)
	},
	"behind a word that was taken back": func(_ *rand.Rand, s string) []string {
		return append([]string{"echo ", s[:7] + "zz", "\x17"}, strings.Split(s, "")...)
	},
	"with arrows": func(rng *rand.Rand, s string) (events []string) {
		for _, c := range strings.Split(s, "") {
			events = append(events, c)
			if rng.IntN(4) == 0 {
				events = append(events, []string{"\x1b[A", "\x1bOB", "\x1b[M !!", "\x1b[<0;3;4M", "\x1b[I"}[rng.IntN(5)])
			}
		}
		return events
	},
	"pasted": func(rng *rand.Rand, s string) []string {
		n := 1 + rng.IntN(len(s)-1)
		return []string{"\x1b[200~" + s[:n], s[n:] + "\x1b[201~"}
	},
}

// TestInput types every secret in every way.
func TestInput(t *testing.T) {
	for _, s := range secrets {
		for way, of := range typing {
			if s.lines && way != "key by key" && way != "pasted" {
				continue
			}
			t.Run(s.name+" "+way, func(t *testing.T) {
				for seed := range uint64(10) {
					rng := rand.New(rand.NewPCG(seed, 3))
					events := of(rng, strings.ReplaceAll(s.text(), "\n", "\r"))
					typeAll(t, s, append(events, "\r", "ls", "\r"))
				}
			})
		}
	}
}

func typeAll(t *testing.T, s secret, events []string) {
	t.Helper()
	in := tty.NewInput(options())
	var file memory
	now := time.Duration(0)
	for i, e := range events {
		in.Write([]byte(e), now)
		now += time.Duration(i%3) * 100 * time.Millisecond
		file = append(file, in.Take(now)...)
	}
	file = append(file, in.Flush()...)
	_ = tty.MaskAt(file, in.Late())
	if all := strings.Join(events, ""); len(file) != len(all) {
		t.Fatalf("%d bytes of %d", len(file), len(all))
	}
	for _, part := range s.hidden() {
		if strings.Contains(made(string(file)), part) || strings.Contains(string(file), part) {
			t.Errorf("%q has %q", file, part)
		}
	}
	if len(in.Report().Hits) == 0 {
		t.Error("reports nothing")
	}
	if left := tty.ScanInput(file, options()); len(left) > 0 {
		t.Errorf("left %v in %q", left, file)
	}
}

// made is what a shell makes of keys.
func made(keys string) string {
	for _, arrow := range []string{"\x1b[A", "\x1bOB", "\x1b[M !!", "\x1b[<0;3;4M", "\x1b[I", "\x1b[200~", "\x1b[201~"} {
		keys = strings.ReplaceAll(keys, arrow, "")
	}
	var line []rune
	for _, c := range keys {
		switch c {
		case '\b', 0x7f:
			line = line[:max(len(line)-1, 0)]
		case 0x15:
			line = nil
		case 0x17:
			line = []rune(string(line)[:strings.LastIndexByte(string(line), ' ')+1])
		default:
			line = append(line, c)
		}
	}
	return strings.ReplaceAll(string(line), "\r", "\n")
}

// TestNoEcho types a password that has no shape, which a program prints afterwards.
func TestNoEcho(t *testing.T) {
	o := options()
	in := tty.NewInput(o)
	var file memory
	in.Write([]byte("sudo ls\r"), 0)
	in.NoEcho(true)
	for _, c := range []string{"o", "pxx", "\x7f", "\x7f", "en sä", "same", "\r"} {
		in.Write([]byte(c), 0)
	}
	in.NoEcho(false)
	in.Write([]byte("exit\r"), 0)
	file = append(in.Take(0), in.Flush()...)
	if want := "sudo ls\r****\x7f\x7f****·****\rexit\r"; string(file) != want {
		t.Errorf("%q, want %q", file, want)
	}
	if n := in.Report().Hits["typed"]; n != 1 {
		t.Errorf("counts %d", n)
	}
	l := tty.NewLive(o)
	l.Write([]byte("password is open säsame\r\n"), 0)
	if got := string(l.Flush()); strings.Contains(got, "same") || len(got) != len("password is open säsame\r\n") {
		t.Errorf("the output has %q", got)
	}
}

// TestInputHolds releases lines when they end, and what does not end after a time.
func TestInputHolds(t *testing.T) {
	in := tty.NewInput(nil)
	in.Write([]byte("make\rls"), 0)
	if got := string(in.Take(0)); got != "make\r" {
		t.Errorf("took %q", got)
	}
	if got := string(in.Take(tty.DefaultAge)); got != "ls" {
		t.Errorf("took %q", got)
	}
	in.Write([]byte("x"), tty.DefaultAge)
	if got := string(in.Flush()); got != "x" || in.Taken() != 8 {
		t.Errorf("took %q up to %d", got, in.Taken())
	}
}
