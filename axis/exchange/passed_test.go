package exchange_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestReplay wants an answer that passes as it stands on the tape to be the same on the other one, however long it is, and
// only what the program got of one that it left.
func TestReplay(t *testing.T) {
	const usage = `{"usage":{"n":1}}`
	long := strings.Repeat(" what the model says", 1000)
	call := `{"model":"m","messages":["` + long + `"]}`
	for name, chunks := range map[string][][]byte{
		"none":      nil,
		"short":     {[]byte(usage[:7]), []byte(usage[7:])},
		"long":      {[]byte(usage), []byte(long), []byte(long)},
		"no text":   {{0xff, 0xfe}},
		"in a code": encode(t, "gzip", usage, long),
	} {
		t.Run(name, func(t *testing.T) {
			header := headers("Content-Type", "application/json")
			if name == "in a code" {
				header.Set("Content-Encoding", "gzip")
			}
			for left := range len(chunks) + 1 {
				recording := newRigWith(t, exchange.TapOptions{}, openDir(t))
				recording.answer(recording.begin(url, call), "", header, chunks...)
				want, _ := recording.last()
				replay := newRigWith(t, exchange.TapOptions{Replay: true}, openDir(t))
				book, err := exchange.NewBook(recording.records(), classifier{}, recording.store)
				if err != nil {
					t.Fatal(err)
				}
				o := replay.begin(url, call)
				_, ok := o.Take(book)
				if !ok {
					t.Fatal("the book has no answer")
				}
				o.Replay(200, header)
				for _, c := range chunks[:left] {
					if err := o.Chunk(c); err != nil {
						t.Fatal(err)
					}
				}
				cut := ""
				if left < len(chunks) {
					cut = tape.Cancelled
				}
				if err := o.End(cut); err != nil {
					t.Fatal(err)
				}
				replay.flush()
				got, _ := replay.last()
				if got.Error != cut || replay.payload(got.Response) != string(bytes.Join(chunks[:left], nil)) {
					t.Errorf("%d chunks: %q, %q", left, got.Error, replay.payload(got.Response))
				}
				if diff := cmp.Diff(recording.chunksOf(want)[:left], replay.chunksOf(got)); diff != "" && left > 0 {
					t.Error(diff)
				}
				if replay.payload(got.RequestPayload) != call {
					t.Error("the request's body is not there")
				}
				if left == len(chunks) {
					sameFile(t, recording.store, replay.store, got.Response)
					wantCall, gotCall := recording.kinds()[0], replay.kinds()[0]
					if a, b := usageOf(wantCall), usageOf(gotCall); a != b || name == "short" && a != `{"n":1}` {
						t.Errorf("usage %s, want %s", b, a)
					}
				}
				if replay.partText() != "" {
					t.Error("there is a part")
				}
			}
		})
	}
}

func usageOf(k tape.Kind) string {
	if c, ok := k.(*tape.LLMCall); ok {
		return string(c.Usage)
	}
	return ""
}

// sameFile wants the payload, where it is a blob, to be one file in both stores.
func sameFile(t *testing.T, a, b cas.Store, p *tape.Payload) {
	t.Helper()
	if p.Inline {
		return
	}
	was, err := os.Stat(a.(*cas.Dir).Path(p.Hash))
	if err != nil {
		t.Fatal(err)
	}
	if now, err := os.Stat(b.(*cas.Dir).Path(p.Hash)); err != nil || !os.SameFile(was, now) {
		t.Errorf("the payload was copied: %v", err)
	}
}

func openDir(t *testing.T) cas.Store {
	t.Helper()
	s, err := cas.OpenDir(t.TempDir()+"/run.tape.cas", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestReplayOfALostPayload wants an answer whose blob goes while it is given to be told of.
func TestReplayOfALostPayload(t *testing.T) {
	store := openDir(t)
	recording := newRigWith(t, exchange.TapOptions{}, store)
	long := strings.Repeat("what the model says ", 1000)
	recording.answer(recording.begin(url, ""), "", headers(), []byte(long))
	book, err := exchange.NewBook(recording.records(), classifier{}, store)
	if err != nil {
		t.Fatal(err)
	}
	replay := newRigWith(t, exchange.TapOptions{Replay: true}, openDir(t))
	o := replay.begin(url, "")
	rec, _ := o.Take(book)
	o.Replay(200, headers())
	if err := o.Chunk([]byte(long)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(store.(*cas.Dir).Path(rec.Exchange.Response.Hash)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := o.End(""); err != nil {
		t.Fatal(err)
	}
	replay.flush()
	if got, extra := replay.last(); got.Response != nil || extra["response_lost"] == "" {
		t.Errorf("%+v, %v", got, extra)
	}
}
