package scrub_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestFileWriter: a file that comes piece by piece is scrubbed as the whole is, and its keyed digest is the same.
func TestFileWriter(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_TOKEN=" + keyOne}})
	text := []byte(strings.Repeat("some words\n", 20000) + "x " + keyOne + "\nanother_api_key = \"" + keyTwo + "\"\n" + strings.Repeat("more\n", 20000) + keyTwo)
	if !s.Streams(text[:4096]) {
		t.Fatal("a text is taken for something compressed")
	}
	var got bytes.Buffer
	w, h := s.FileWriter(&got), s.KeyedHash()
	for rest := text; len(rest) > 0; {
		n := min(1000, len(rest))
		_, err := w.Write(rest[:n])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = h.Write(rest[:n])
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want, found := s.Bytes(text)
	if !bytes.Equal(got.Bytes(), want) || w.Found() != found || !found {
		t.Errorf("%d bytes, want %d; found %v, want %v", got.Len(), len(want), w.Found(), found)
	}
	if h.Sum() != s.KeyedDigest(text) {
		t.Error("another keyed digest")
	}
	for _, head := range []string{"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00\x00", "\x78\x9c123456", "PACK\x00\x00\x00\x02", "--b\r\nContent-Type: x\r\n\r\n"} {
		if s.Streams([]byte(head)) {
			t.Errorf("%q is not looked into", head)
		}
	}
}

// TestDigestReader: a long text has the digest of the whole, wherever it is cut, with one number for one secret all over it.
func TestDigestReader(t *testing.T) {
	t.Parallel()
	m := scrub.NewMasker(nil)
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "2026-01-02T03:04:%02dZ id 6ba7b810-9dad-11d1-80b4-00c04fd4%04x td_x_%012x took %dms\n", i%60, i%65536, i%7, i)
	}
	text := b.String()
	want := m.Digest([]byte(text))
	got, err := m.DigestReader(iotest.HalfReader(strings.NewReader(text)))
	if err != nil || got != want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	other, err := m.DigestReader(strings.NewReader(strings.ReplaceAll(text, "2026-01-02T", "1999-12-31T")))
	if err != nil || other != want {
		t.Errorf("with other times %v, %v, want %v", other, err, want)
	}
	if _, err := m.DigestReader(iotest.TimeoutReader(strings.NewReader(text))); err == nil {
		t.Error("a failure to read is none")
	}
}
