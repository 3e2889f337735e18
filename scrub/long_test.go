package scrub_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

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
	if hex.EncodeToString(h.Sum(nil)) != s.KeyedDigest(text) {
		t.Error("another keyed digest")
	}
	for _, head := range []string{"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00\x00", "\x78\x9c123456", "PACK\x00\x00\x00\x02", "--b\r\nContent-Type: x\r\n\r\n"} {
		if s.Streams([]byte(head)) {
			t.Errorf("%q is not looked into", head)
		}
	}
}
