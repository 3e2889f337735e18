package masks_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

// TestDigestReader: a long text has the digest of the whole, wherever it is cut, with one number for one secret all over it.
func TestDigestReader(t *testing.T) {
	t.Parallel()
	m := masks.New(nil)
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
