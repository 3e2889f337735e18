package exchange_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// encoders by content coding.
var encoders = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"Deflate": func(w io.Writer) io.WriteCloser { // without the frame of zlib, as some servers send it
		f, err := flate.NewWriter(w, flate.BestSpeed)
		if err != nil {
			panic(err)
		}
		return f
	},
	"br": func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) },
	"zstd": func(w io.Writer) io.WriteCloser {
		z, err := zstd.NewWriter(w)
		if err != nil {
			panic(err)
		}
		return z
	},
}

// encode returns each chunk encoded and flushed, the last one with the end of the stream.
func encode(t testing.TB, coding string, chunks ...string) [][]byte {
	t.Helper()
	var buf bytes.Buffer
	w := encoders[coding](&buf)
	var out [][]byte
	for i, c := range chunks {
		_, err := io.WriteString(w, c)
		if i == len(chunks)-1 {
			err = errors.Join(err, w.Close())
		} else {
			err = errors.Join(err, w.(interface{ Flush() error }).Flush())
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(buf.Bytes()))
		buf.Reset()
	}
	return out
}

func TestDecode(t *testing.T) {
	text := strings.Repeat("some text ", 1000)
	for coding := range encoders {
		body := encode(t, coding, text)[0]
		got, err := exchange.Decode(coding, body, 1<<20)
		if err != nil || string(got) != text {
			t.Errorf("%s: %d bytes, %v", coding, len(got), err)
		}
		if _, err := exchange.Decode(coding, body, 100); !errors.Is(err, exchange.ErrTooLarge) {
			t.Errorf("%s beyond the limit: %v", coding, err)
		}
		if _, err := exchange.Decode(coding, body[:len(body)/2], 1<<20); err == nil {
			t.Errorf("%s cut in half is taken", coding)
		}
		if !exchange.CanDecode(coding) {
			t.Errorf("%s is not known", coding)
		}
	}
	twice := encode(t, "br", string(encode(t, "gzip", text)[0]))[0]
	if got, err := exchange.Decode("gzip, br", twice, 1<<20); err != nil || string(got) != text {
		t.Errorf("gzip, br: %d bytes, %v", len(got), err)
	}
	for _, coding := range []string{"", "identity", " Identity ,"} {
		if got, err := exchange.Decode(coding, []byte("x"), 1); err != nil || string(got) != "x" {
			t.Errorf("%q: %q, %v", coding, got, err)
		}
	}
	if _, err := exchange.Decode("compress", []byte("x"), 10); !errors.Is(err, exchange.ErrEncoding) {
		t.Error(err)
	}
	if exchange.CanDecode("compress") || !exchange.CanDecode("identity") {
		t.Error("CanDecode")
	}
}

// FuzzDecode holds every decoder to its limit and to errors in place of panics.
func FuzzDecode(f *testing.F) {
	for coding := range encoders {
		f.Add(coding, encode(f, coding, "text ", "more")[0])
	}
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		const limit = 1 << 16
		if got, err := exchange.Decode(coding, body, limit); err == nil && len(got) > limit {
			t.Errorf("%d bytes", len(got))
		}
	})
}
