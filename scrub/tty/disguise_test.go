package tty_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// pick returns short, or longer where TAPEDECK_LONG is set.
func pick(short, longer int) int {
	if os.Getenv("TAPEDECK_LONG") != "" {
		return longer
	}
	return short
}

// memory is a file.
type memory []byte

func (m memory) ReadAt(p []byte, at int64) (int, error)  { return bytes.NewReader(m).ReadAt(p, at) }
func (m memory) WriteAt(p []byte, at int64) (int, error) { return copy(m[at:], p), nil }

// record writes a stream to a Live in pieces and returns what a recorder has in its file at the end. Slow is how much time passes
// between two pieces.
func record(o *tty.Options, stream []byte, rng *rand.Rand, slow time.Duration) ([]byte, tty.Report) {
	l := tty.NewLive(o)
	var file memory
	now := time.Duration(0)
	for rest := stream; len(rest) > 0; {
		n := min(len(rest), 1+rng.IntN(60))
		if rng.IntN(3) == 0 {
			n = 1
		}
		l.Write(rest[:n], now)
		rest = rest[n:]
		now += slow
		file = append(file, l.Take(now)...)
		_ = tty.MaskAt(file, l.Late())
	}
	file = append(file, l.Flush()...)
	_ = tty.MaskAt(file, l.Late())
	return file, l.Report()
}

// TestDisguises has every secret in every disguise: live in pieces, fast and slowly, and offline.
func TestDisguises(t *testing.T) {
	t.Parallel()
	seeds := pick(1, 20)
	for _, s := range secrets {
		for _, d := range disguises {
			t.Run(s.name+" "+d.name, func(t *testing.T) {
				o := options()
				for seed := range uint64(seeds) {
					rng := rand.New(rand.NewPCG(seed, 1))
					stream := []byte(d.of(rng, s))
					for _, slow := range []time.Duration{0, 700 * time.Millisecond} {
						file, report := record(o, stream, rng, slow)
						check(t, s, stream, file)
						if len(report.Hits) == 0 {
							t.Errorf("seed %d: reports nothing", seed)
						}
						if left, err := tty.Scan(memory(file), int64(len(file)), nil, o); err != nil || len(left) > 0 {
							t.Errorf("seed %d: live left %v, %v in %q", seed, left, err, file)
						}
					}
					file := bytes.Clone(stream)
					if _, err := tty.Clean(memory(file), int64(len(file)), nil, o); err != nil {
						t.Error(err)
					}
					check(t, s, stream, file)
					if t.Failed() {
						t.Fatalf("seed %d: %q", seed, stream)
					}
				}
			})
		}
	}
}

func check(t *testing.T, s secret, stream, file []byte) {
	t.Helper()
	if at := leaks(file, s.hidden()); at != "" {
		t.Error(at)
	}
	if len(file) != len(stream) || layout(file) != layout(stream) {
		t.Errorf("the screen of\n%q\nis another than that of\n%q", file, stream)
	}
}

// TestCheckerReads the secrets where nothing is masked.
func TestCheckerReads(t *testing.T) {
	for _, s := range secrets {
		for _, d := range disguises {
			if at := leaks([]byte(d.of(rand.New(rand.NewPCG(3, 1)), s)), s.hidden()); at == "" {
				t.Errorf("%s %s: not there", s.name, d.name)
			}
		}
	}
}

// TestEditedTogether has secrets that stand together by a sequence that prints nothing, and are wiped by the next one.
func TestEditedTogether(t *testing.T) {
	v := secrets[2].value
	for name, edit := range map[string]string{
		"deleted between":       v[:10] + "########" + v[10:] + "\x1b[5;11H\x1b[8P",
		"a column deleted":      v[:10] + "#" + v[10:] + "\x1b[5;11H\x1b['~",
		"repeated":              strings.Replace(v, "1aB", "aB", 1) + "\x1b[5;5H\x1b[4h1\b1\x1b[4l\x1b[P",
		"a rectangle is copied": v[:20] + "\x1b[9;1H" + v[20:] + "\x1b[9;1;9;20;1;5;21;1$v",
	} {
		stream := []byte("\x1b[2J\x1b[5;1H" + edit + "\x1b[2J\x1b[7;7Hdone")
		file, _ := record(options(), stream, rand.New(rand.NewPCG(1, 1)), 0)
		if at := leaks(file, []string{v}); at != "" || bytes.Contains(file, []byte(v[20:])) || len(file) != len(stream) {
			t.Errorf("%s: %s in %q", name, at, file)
		}
	}
}

// TestNobodyFinds are the two layouts that docs/reference/secrets.md says are not found. Who makes one of them found changes the page.
func TestNobodyFinds(t *testing.T) {
	value := secrets[0].value
	for name, of := range map[string]func() string{
		"spread: a character a row": func() string { return perChar(value, func(c string) string { return c + "\r\n" }) },
		"spread: blanks between":    func() string { return perChar(value, func(c string) string { return c + " " }) },
		"in turn: one character after another at one place": func() string {
			return perChar(value, func(c string) string { return "\r" + c })
		},
		"in turn: piece after piece, each wiped": func() string {
			return "\x1b[2J" + perChar(value, func(c string) string { return "\x1b[5;5H" + c + "\x1b[5;5H \x1b[5;5H" })
		},
	} {
		if hits, err := tty.Scan(memory(of()), int64(len(of())), nil, options()); err != nil || len(hits) > 0 {
			t.Errorf("%s: %v, %v", name, hits, err)
		}
	}
}
