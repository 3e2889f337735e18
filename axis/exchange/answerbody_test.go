package exchange_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func inline(text string) *tape.Payload {
	return &tape.Payload{Hash: cas.Sum([]byte(text)), Text: text, Inline: true, Len: int64(len(text))}
}

func readAnswer(b *exchange.AnswerBody) (string, error) {
	var out bytes.Buffer
	for {
		chunk, err := b.Next(context.Background())
		out.Write(chunk)
		if err != nil {
			return out.String(), err
		}
	}
}

func TestOpenAnswer(t *testing.T) {
	store := cas.NewMemory()
	long := strings.Repeat("0123456789", 300_000) // more than one piece
	d, err := store.Put([]byte(long))
	if err != nil {
		t.Fatal(err)
	}
	spilled := &tape.Payload{Hash: d, Len: int64(len(long))}
	missing := &tape.Payload{Hash: cas.Sum([]byte("missing")), Len: 7}
	tests := []struct {
		name string
		ex   tape.Exchange
		want string
		end  error // nil where opening fails
	}{
		{"chunks", tape.Exchange{Status: 200, Response: inline("abc"), Stream: []tape.Chunk{{Length: 1}, {Offset: 1, Length: 2}}}, "abc", io.EOF},
		{"no chunks", tape.Exchange{Status: 200, Response: spilled}, long, io.EOF},
		{"empty chunk", tape.Exchange{Status: 200, Response: inline("a"), Stream: []tape.Chunk{{}, {Length: 1}, {Offset: 1}}}, "a", io.EOF},
		{"no content", tape.Exchange{Status: 204}, "", io.EOF},
		{"head", tape.Exchange{Method: "HEAD", Status: 200}, "", io.EOF},
		{"not kept", tape.Exchange{Status: 200, Error: "answer not kept"}, "", nil},
		{"blob of another length", tape.Exchange{Status: 200, Response: &tape.Payload{Hash: d, Len: 7}}, "", nil},
		{"blob missing", tape.Exchange{Status: 200, Response: missing}, "", nil},
		{"chunks too long", tape.Exchange{Status: 200, Response: inline("abc"), Stream: []tape.Chunk{{Length: math.MaxInt64}, {Length: math.MaxInt64}}}, "", nil},
		{"chunks too short", tape.Exchange{Status: 200, Response: inline("abc"), Stream: []tape.Chunk{{Length: 2}}}, "", nil},
		{"negative chunk", tape.Exchange{Status: 200, Response: inline("abc"), Stream: []tape.Chunk{{Length: -1}, {Length: 4}}}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := exchange.OpenAnswer(store, &tt.ex, nil)
			if (err != nil) != (tt.end == nil) {
				t.Fatalf("opened with %v", err)
			}
			if err != nil {
				return
			}
			defer b.Close()
			if got, err := readAnswer(b); got != tt.want || b.Size() != int64(len(tt.want)) || !errors.Is(err, tt.end) {
				t.Errorf("%d bytes of %d, %v; want %d", len(got), b.Size(), err, len(tt.want))
			}
		})
	}
}

// rotten is a store whose blobs have changed.
type rotten struct{ cas.Store }

func (s rotten) Open(d cas.Digest) (io.ReadCloser, error) {
	r, err := s.Store.Open(d)
	return readCloser{io.MultiReader(r, failing{&cas.CorruptError{Digest: d}}), r}, err
}

type readCloser struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestChangedBlob holds that the last bytes of a changed answer are not given.
func TestChangedBlob(t *testing.T) {
	store := cas.NewMemory()
	d, _ := store.Put([]byte("abcdef"))
	ex := &tape.Exchange{Status: 200, Response: &tape.Payload{Hash: d, Len: 6}, Stream: []tape.Chunk{{Length: 3}, {Offset: 3, Length: 3}}}
	b, err := exchange.OpenAnswer(rotten{store}, ex, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var corrupt *cas.CorruptError
	if got, err := readAnswer(b); got != "abc" || !errors.As(err, &corrupt) {
		t.Errorf("got %q, %v", got, err)
	}
}

// openChunks opens the answer "abcd" in chunks.
func openChunks(t *testing.T, o *exchange.AnswerOptions, cut string, chunks ...tape.Chunk) *exchange.AnswerBody {
	t.Helper()
	b, err := exchange.OpenAnswer(nil, &tape.Exchange{Status: 200, Response: inline("abcd"), Stream: chunks, Error: cut}, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSpeed gives chunks at their times, twice as fast, and at once.
func TestSpeed(t *testing.T) {
	for speed, want := range map[float64][]time.Duration{
		1:   {0, 200 * time.Millisecond, 200 * time.Millisecond, time.Second},
		2:   {0, 100 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond},
		0.5: {0, 400 * time.Millisecond, 400 * time.Millisecond, 2 * time.Second},
		0:   {0, 0, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			body := openChunks(t, &exchange.AnswerOptions{Speed: speed}, "",
				tape.Chunk{Length: 1}, tape.Chunk{Length: 1, TMS: 200}, tape.Chunk{Length: 1, TMS: 200}, tape.Chunk{Length: 1, TMS: 1000})
			if !body.Prompt() {
				t.Errorf("speed %v: the head goes before the first chunk", speed)
			}
			for i, due := range want {
				chunk, err := body.Next(context.Background())
				if took := time.Since(begun); err != nil || string(chunk) != "abcd"[i:i+1] || took != due {
					t.Errorf("speed %v: chunk %d is %q after %v, want %v; %v", speed, i, chunk, took, due, err)
				}
			}
		})
	}
}

// TestHeadIsDueWithTheFirstChunk waits for it, and no longer than the program does.
func TestHeadIsDueWithTheFirstChunk(t *testing.T) {
	for speed, due := range map[float64]time.Duration{0: 0, 1: 300 * time.Millisecond, 3: 100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			body := openChunks(t, &exchange.AnswerOptions{Speed: speed}, "", tape.Chunk{Length: 4, TMS: 300})
			if err := body.Begin(t.Context()); err != nil || time.Since(begun) != due {
				t.Errorf("speed %v: the head after %v, %v, want %v", speed, time.Since(begun), err, due)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := openChunks(t, &exchange.AnswerOptions{Speed: 1}, "", tape.Chunk{Length: 4, TMS: 1e9}).Begin(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cancelled gave %v", err)
	}
}

// TestSpeedOfACancelledAnswer waits for no chunk once the program has gone.
func TestSpeedOfACancelledAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	slow := openChunks(t, &exchange.AnswerOptions{Speed: 1}, "", tape.Chunk{Length: 4, TMS: 1e9})
	if _, err := slow.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cancelled gave %v", err)
	}
}

// TestCutAgain gives answers that were cut to a program that ends nothing by itself.
func TestCutAgain(t *testing.T) {
	for _, tt := range []struct {
		cut, want string
		speed     float64
		after     time.Duration
	}{
		{tape.Cancelled, tape.HeldOn, 0, time.Minute},
		{exchange.Reset, exchange.Reset, 1, 0},
		{exchange.DeadlinePassed, exchange.DeadlinePassed, 0, 0},
		{exchange.DeadlinePassed, exchange.DeadlinePassed, 1, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			body := openChunks(t, &exchange.AnswerOptions{Speed: tt.speed, Patience: time.Minute}, tt.cut)
			if chunk, err := body.Next(t.Context()); err != nil || string(chunk) != "abcd" || time.Since(begun) != 0 {
				t.Errorf("%s: got %q, %v after %v", tt.cut, chunk, err, time.Since(begun))
			}
			var cut *exchange.CutError
			if _, err := body.Next(t.Context()); !errors.As(err, &cut) || cut.Text != tt.want || time.Since(begun) != tt.after {
				t.Errorf("%s: ended with %v after %v", tt.cut, err, time.Since(begun))
			}
		})
	}
}
