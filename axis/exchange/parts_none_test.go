package exchange_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// spiedStore says when a blob begins to be streamed into it, and fails that where fail is set.
type spiedStore struct {
	cas.Store
	streams int // blobs that were streamed; read it after End
	fail    error
}

func (s *spiedStore) PutReader(r io.Reader) (cas.Digest, int64, error) {
	s.streams++
	if s.fail != nil {
		return cas.Digest{}, 0, s.fail
	}
	return s.Store.PutReader(r)
}

// TestWithoutParts keeps answers of every length without parts: what is long goes to the store as it comes.
func TestWithoutParts(t *testing.T) {
	chunk := bytes.Repeat([]byte("a line of an answer\n"), 50_000) // 1 MB
	for _, tt := range []struct {
		name    string
		chunks  [][]byte
		streams int
	}{
		{"none", nil, 0},
		{"short", [][]byte{[]byte("ab"), []byte("c")}, 0},
		{"in memory", [][]byte{chunk}, 0},
		{"long", [][]byte{chunk, chunk, chunk, []byte("the token is " + secret), chunk}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := &spiedStore{Store: cas.NewMemory()}
			g := newRigWithoutParts(t, store)
			g.answer(g.begin(url, `{"model":"m"}`), "", headers("Content-Type", "text/plain"), tt.chunks...)
			x, added := g.last()
			want := strings.ReplaceAll(string(bytes.Join(tt.chunks, nil)), secret, "P")
			if got := hide(strings.Join(g.chunksOf(x), "")); got != want || len(x.Stream) != len(tt.chunks) || len(added) > 0 {
				t.Errorf("%d bytes in %d chunks, want %d; %v", len(got), len(x.Stream), len(want), added)
			}
			if store.streams != tt.streams {
				t.Errorf("%d blobs were streamed, want %d", store.streams, tt.streams)
			}
			if left := g.partText(); left != "" {
				t.Errorf("a part holds %d bytes", len(left))
			}
		})
	}
}

// TestWithoutPartsUsage finds the usage of a long answer that went to the store.
func TestWithoutPartsUsage(t *testing.T) {
	g := newRigWithoutParts(t, cas.NewMemory())
	body := `{"usage":{"n":1},"text":"` + strings.Repeat("long ", 500_000) + `"}`
	g.answer(g.begin(url, `{"model":"m","messages":["a"]}`), "", headers(), []byte(body[:2_000_000]), []byte(body[2_000_000:]))
	if kinds := g.kinds(); len(kinds) != 1 || !strings.Contains(g.tape.String(), `"usage":{"n":1}`) {
		t.Errorf("%s", g.tape)
	}
}

// TestWithoutPartsStoreFails ends the recorder with what a long answer could not be written for.
func TestWithoutPartsStoreFails(t *testing.T) {
	store := &spiedStore{Store: cas.NewMemory(), fail: errors.New("full")}
	g := newRigWithoutParts(t, store)
	o := g.begin(url, "")
	if err := o.Response(200, headers()); err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("long "), 500_000)
	if err := errors.Join(o.Chunk(long), o.Chunk(long)); !errors.Is(err, store.fail) {
		t.Errorf("Chunk: %v", err)
	}
	g.failed(o, store.fail)
}

// TestMoreChunksThanARecordHolds has an answer whose chunks would not fit into one line of the tape.
func TestMoreChunksThanARecordHolds(t *testing.T) {
	const most, more = 500_000, 10
	g := newRigWithoutParts(t, cas.NewMemory())
	o := g.begin(url, "")
	if err := o.Response(http.StatusOK, headers()); err != nil {
		t.Fatal(err)
	}
	for i := range most + more {
		if err := o.Chunk([]byte{'a' + byte(i%26)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.End(""); err != nil {
		t.Fatal(err)
	}
	x, _ := g.last()
	if last := x.Stream[len(x.Stream)-1]; len(x.Stream) != most || last.Length != 1+more || x.Response.Len != most+more {
		t.Errorf("%d chunks, the last %+v, of %d bytes", len(x.Stream), last, x.Response.Len)
	}
}
