package ttyscrub_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/ttyscrub"
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
		if len(stream) > 1<<14 {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		whole, err := ttyscrub.Scan(memory(stream), int64(len(stream)), nil, options())
		if err != nil {
			t.Fatal(err)
		}
		offline := bytes.Clone(stream)
		ttyscrub.Mask(offline, 0, whole)
		if live := inPieces(stream, rng); !bytes.Equal(live, offline) {
			t.Fatalf("in pieces\n%q\nas a whole\n%q\n%v", live, offline, whole)
		}
		file, _ := record(options(), stream, rng, 0)
		if len(file) != len(stream) {
			t.Fatalf("%d bytes of %d", len(file), len(stream))
		}
		if layout(file) != layout(stream) {
			t.Fatalf("%q\nbecame\n%q", stream, file)
		}
		if _, err := ttyscrub.Clean(memory(file), int64(len(file)), nil, options()); err != nil {
			t.Fatal(err)
		}
		ttyscrub.ScanInput(stream, options())
	})
}

// inPieces returns what a Live makes of a stream that comes in pieces.
func inPieces(stream []byte, rng *rand.Rand) []byte {
	l := ttyscrub.NewLive(options())
	for rest := stream; len(rest) > 0; {
		n := min(len(rest), 1+rng.IntN(20))
		l.Write(bytes.Clone(rest[:n]), 0)
		rest = rest[n:]
	}
	return bytes.Clone(l.Flush())
}
