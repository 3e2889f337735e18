package tty_test

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// FuzzLive writes any bytes, cut anywhere: nothing panics, as many bytes come out, the same secrets are found however the stream is
// cut, what is masked does not change where anything stands, and at the end nothing is found any more.
func FuzzLive(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, s := range secrets {
		for _, d := range disguises {
			f.Add([]byte(d.of(rng, s)), uint64(1))
		}
	}
	f.Add([]byte("\x1b]52;c;c2stYW50LWFwaTAzLVFtNHhUOXZMcjJXcDhaazFOZDVIcw==\x07\x1bP1$r sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5\x1b\\"), uint64(2))
	f.Add([]byte("\x1b[1;3rcorrect-\x1b[5bhorse\x1bMéé\xc2\x9b2J\x1b#8\xc2\x85\x1b(0qqq\x1b[?3h\x1b[?1049h\x1bc"), uint64(3))
	f.Add([]byte("\x1b[?69h\x1b[3;9scorrect-horse_battery9staple\x1b[4hcorrect\x1b[D\x1b[P-horse_\x1b[2$x"), uint64(4))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		if len(stream) <= 1<<12 {
			invariants(t, stream, rand.New(rand.NewPCG(seed, 9)))
		}
	})
}

// TestRandomStreams is FuzzLive with streams that are put together from what terminals know, and from parts of secrets.
func TestRandomStreams(t *testing.T) {
	t.Parallel()
	for seed := range uint64(pick(100, 500)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		invariants(t, randomStream(rng), rng)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomStream(rng *rand.Rand) (stream []byte) {
	s := secrets[rng.IntN(len(secrets))]
	text := crlf(s.text())
	at := 0
	for range 20 + rng.IntN(200) {
		switch rng.IntN(6) {
		case 0, 1, 2:
			n := min(1+rng.IntN(12), len(text)-at)
			stream = append(stream, text[at:at+n]...)
			if at += n; at == len(text) {
				at = 0
			}
		case 3:
			at = rng.IntN(len(text))
		case 4:
			stream = append(stream, characters[rng.IntN(len(characters))]...)
		default:
			numbers := strings.NewReplacer("{1}", strconv.Itoa(1+rng.IntN(8)), "{2}", strconv.Itoa(1+rng.IntN(90)))
			stream = append(stream, numbers.Replace(sequencesKnown[rng.IntN(len(sequencesKnown))])...)
		}
	}
	return stream
}

var sequencesKnown = func() (all []string) {
	for _, final := range "ABCDEFGHIJKLMPSTXZ`abdefrsu@" {
		all = append(all, "\x1b[{1};{2}"+string(final), "\x1b[{1}"+string(final))
	}
	return append(all, "\x1b[{1}m", "\x1b[38;5;{1}m", "\r\n", "\r\n", "\r\n", "\n", "\r", "\b", "\b", "\t", "\v", "\x1b7", "\x1b8",
		"\x1bD", "\x1bM", "\x1bE", "\x1bH", "\x1b(0", "\x1b(B", "\x0e", "\x0f", "\x1b#8", "\x1bc", "\x1b[!p", "\x1b[?1049h", "\x1b[?1049l",
		"\x1b[?47h", "\x1b[?47l", "\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l", "\x1b[?6h", "\x1b[?69h", "\x1b[?69l", "\x1b[?3h", "\x1b[r", "\x1b[s",
		"\x1b]0;title\x07", "\x1b]8;;http://a@b.example.org\x1b\\", "\x1bPq\x1b\\", "\xc2\x85", "\xc2\x9b2J", "\xff", "\x1b[\b2C", "\x1b[?2026h",
		"\x1b[1;1;3;{2}$z", "\x1b[1;1;3;9;1;{1};{2};1$v", "\x1b[65;1;1;2;{2}$x", "\x1b[?K", "\x1b[{1}'}", "\x1b[{1}'~", "\x1b[{1} @", strings.Repeat("\r\n", 30), "line\r\nline\r\nline\r\n")
}()

func invariants(t *testing.T, stream []byte, rng *rand.Rand) {
	t.Helper()
	whole, err := tty.Scan(memory(stream), int64(len(stream)), nil, fixed)
	if err != nil {
		t.Fatal(err)
	}
	offline := bytes.Clone(stream)
	tty.Mask(offline, 0, whole)
	if live := inPieces(stream, rng); !bytes.Equal(live, offline) {
		t.Fatalf("in pieces\n%q\nas a whole\n%q\n%v", live, offline, whole)
	}
	file, _ := record(fixed, stream, rng, time.Duration(rng.IntN(2))*time.Second)
	if len(file) != len(stream) {
		t.Fatalf("%d bytes of %d", len(file), len(stream))
	}
	if layout(file) != layout(stream) {
		t.Fatalf("%q\nbecame\n%q", stream, file)
	}
	if _, err := tty.Clean(memory(file), int64(len(file)), nil, fixed); err != nil {
		t.Fatal(err)
	}
	tty.ScanInput(stream, fixed)
}

// fixed is one for all: to make one takes longer than most streams.
var fixed = options()

// inPieces returns what a Live makes of a stream that comes in pieces.
func inPieces(stream []byte, rng *rand.Rand) []byte {
	l := tty.NewLive(fixed)
	for rest := stream; len(rest) > 0; {
		n := min(len(rest), 1+rng.IntN(20))
		l.Write(bytes.Clone(rest[:n]), 0)
		rest = rest[n:]
	}
	return bytes.Clone(l.Flush())
}
