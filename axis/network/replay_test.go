package network

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func inline(text string) *tape.Payload {
	return &tape.Payload{Hash: cas.Sum([]byte(text)), Text: text, Inline: true, Len: int64(len(text))}
}

func readAll(b *tapeBody) (string, error) {
	var out bytes.Buffer
	for {
		chunk, err := b.next(context.Background())
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
		{"blob missing", tape.Exchange{Status: 200, Response: missing}, "", nil},
		{"chunks too long", tape.Exchange{Status: 200, Response: inline("abc"), Stream: []tape.Chunk{{Length: math.MaxInt64}, {Length: math.MaxInt64}}}, "", nil},
		{"chunks too short", tape.Exchange{Status: 200, Response: inline("abc"), Stream: []tape.Chunk{{Length: 2}}}, "", nil},
		{"negative chunk", tape.Exchange{Status: 200, Response: inline("abc"), Stream: []tape.Chunk{{Length: -1}, {Length: 4}}}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, total, err := openAnswer(store, &tt.ex)
			if (err != nil) != (tt.end == nil) {
				t.Fatalf("opened with %v", err)
			}
			if err != nil {
				return
			}
			defer b.close()
			if got, err := readAll(b); got != tt.want || total != int64(len(tt.want)) || !errors.Is(err, tt.end) {
				t.Errorf("%d bytes of %d, %v; want %d", len(got), total, err, len(tt.want))
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
	b, _, err := openAnswer(rotten{store}, ex)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	var corrupt *cas.CorruptError
	if got, err := readAll(b); got != "abc" || !errors.As(err, &corrupt) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestConsistentLength(t *testing.T) {
	tests := []struct {
		name, method, header string
		status               int
		cut                  string
		total, want          int64
	}{
		{"fits", "GET", "5", 200, "", 5, 5},
		{"scrubbed to another length", "GET", "5", 200, "", 9, -1},
		{"cut before its end", "GET", "50", 200, "reset", 5, 50},
		{"none", "GET", "", 200, "", 5, -1},
		{"nonsense", "GET", "-5", 200, "", 5, -1},
		{"head", "HEAD", "50", 200, "", 0, 50},
		{"not modified", "GET", "50", 304, "", 0, 50},
	}
	for _, tt := range tests {
		h := http.Header{}
		if tt.header != "" {
			h.Set("Content-Length", tt.header)
		}
		got := consistentLength(h, &tape.Exchange{Method: tt.method, Status: tt.status, Error: tt.cut}, tt.total)
		if got != tt.want || (got < 0) != (h.Get("Content-Length") == "") {
			t.Errorf("%s: %d and %q, want %d", tt.name, got, h.Get("Content-Length"), tt.want)
		}
	}
}
