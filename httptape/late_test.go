package httptape_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/httptape"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// roundTripper is a function that answers requests.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// zippedChunks returns the head of a gzip stream by itself, each text by itself, and its end.
func zippedChunks(t *testing.T, texts ...string) []string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	var chunks []string
	cut := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, b.String())
		b.Reset()
	}
	for i, text := range texts {
		_, err := io.WriteString(z, text)
		if i == 0 { // the head goes with the first write, the text with the flush
			cut(err)
		}
		cut(z.Flush())
	}
	cut(z.Close())
	return chunks
}

// slowly answers with chunks of a gzip stream, 100 ms between them.
func slowly(chunks ...string) roundTripper {
	return func(r *http.Request) (*http.Response, error) {
		body, w := io.Pipe()
		go func() { // ends with the answer, or when its reader closes it
			for _, c := range chunks {
				time.Sleep(100 * time.Millisecond)
				if _, err := io.WriteString(w, c); err != nil {
					return
				}
			}
			w.Close()
		}()
		h := http.Header{"Content-Encoding": {"gzip"}}
		return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", Header: h, Body: body, ContentLength: -1, Request: r}, nil
	}
}

// streams returns the chunks of the answers of a tape.
func streams(t *testing.T, path string) (all [][]tape.Chunk) {
	t.Helper()
	rewrite(t, path, func(ex *tape.Exchange) { all = append(all, ex.Stream) })
	return all
}

// TestTimesOfLateSecret: an answer that is kept decoded, for it holds a secret that became known late, has fewer chunks than
// came, and each of them its own time.
func TestTimesOfLateSecret(t *testing.T) {
	const token = "opaque-0123456789-token"
	path := filepath.Join(t.TempDir(), "test")
	synctest.Test(t, func(t *testing.T) {
		tr := open(t, path, &httptape.Options{Base: slowly(zippedChunks(t, "one "+token, " two", " three")...)})
		get(t, tr.Client(), "http://slow.example/")
		req := request(t, t.Context(), "GET", "http://slow.example/use", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := tr.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text(t, res)
		closed(t, tr)
	})
	gone(t, filepath.Dir(path), token)
	const first = int64(len("one td_authorization_000000000001"))
	want := []tape.Chunk{
		{Length: first, TMS: 200}, {Offset: first, Length: 4, TMS: 300}, {Offset: first + 4, Length: 6, TMS: 400},
	}
	if diff := cmp.Diff(want, streams(t, path)[0]); diff != "" {
		t.Error(diff)
	}
}
