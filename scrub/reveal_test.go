package scrub_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestRevealing: wherever the reads end, a reader gives what the whole gives.
func TestRevealing(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	known := s.String("Zx9QvT2mKw7Lp4Rn") + " " + s.String(encodings["hex"]("Zx9QvT2mKw7Lp4Rn"))
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{known, "td_", "td_api_key_", "x", " ", "td_other_0123456789ab", "_0123456789ab", known[:20]}), 0, 12)
		text := strings.Join(parts.Draw(t, "parts"), "")
		want := string(s.Reveal([]byte(text)))
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			got, err := io.ReadAll(s.Revealing(r))
			if err != nil || string(got) != want {
				t.Fatalf("%q: %q, %v; want %q", text, got, err, want)
			}
		}
	})
	if _, err := io.ReadAll(s.Revealing(iotest.ErrReader(io.ErrClosedPipe))); err == nil {
		t.Error("the reader's error is lost")
	}
}

// TestLearnFrom: a replay with another secret finds that of the recording too, once it has seen a file that holds it.
func TestLearnFrom(t *testing.T) {
	env := []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", "B_TOKEN=8wQzKvXyAb"}
	recorded := scrub.New(testKey, &scrub.Options{Env: env})
	real := "a=Zx9QvT2mKw7Lp4Rn;b=8wQzKvXyAb\n" + encodings["base64 at 1"]("Zx9QvT2mKw7Lp4Rn") + " Zx9QvT2mKw7Lp4Rn8wQzKvXyAb"
	stored := recorded.String(real)
	replay := scrub.New(testKey, nil)
	for _, v := range recorded.Env(env) {
		replay.AddAlias(v.Value, scrub.Dummy(v))
	}
	if replay.String(real) != real {
		t.Fatal("the secrets are known before they are learnt")
	}
	replay.LearnFrom([]byte(stored), []byte(real))
	if got := replay.String(real); got != stored {
		t.Errorf("got %q, want %q", got, stored)
	}
	other := scrub.New(testKey, nil)
	for _, wrong := range []string{"", "a=", "a=Zx9QvT2mKw7Lp4Rm;b=8wQzKvXyAb\n", strings.Repeat("z", 100)} {
		other.LearnFrom([]byte(stored), []byte(wrong))
	}
	if got := other.String(real); got != real {
		t.Errorf("what does not fit was learnt: %q", got)
	}
}

func FuzzReveal(f *testing.F) {
	for _, form := range []string{"zh", "zu", "zb10c", "zv2x3n5w7c", "zj2kma", "zped", "zr", "zb1xxj1p"} {
		f.Add([]byte("a td_api_key_"+form+"_0123456789ab b"), "value")
	}
	f.Fuzz(func(t *testing.T, b []byte, value string) {
		in := bytes.Clone(b)
		out := scrub.Fill(b, func(string) (string, bool) { return value, true })
		if !bytes.Equal(b, in) {
			t.Fatal("the input was changed")
		}
		if limit := 64 * (len(b) + 1) * (len(value) + 64); len(out) > limit {
			t.Fatalf("%d bytes from %d and a value of %d", len(out), len(b), len(value))
		}
	})
}

// TestAlignWithoutHead: of base64 whose first digit was left to what stands before it, the value is not whole: it is not given.
func TestAlignWithoutHead(t *testing.T) {
	const value = "Zx9QvT2mKw7Lp4Rn"
	for shift, before := range []string{"", "u", "me"} {
		digits := base64.StdEncoding.EncodeToString([]byte(before + value))
		whole := strings.TrimRight(digits[(shift*8+5)/6:], "=")
		for _, cut := range []int{0, 1, 2, 3} { // so that some of them decode
			stored := fmt.Sprintf("k td_token_zb%dxx_0123456789ab.", shift)
			given, ok := scrub.Align(stored, "k "+whole[:len(whole)-cut]+".")
			if shift > 0 && (len(given) > 0 || !ok) {
				t.Errorf("at %d, %d less: %+v, %v", shift, cut, given, ok)
			}
			if shift == 0 && cut == 2 && (len(given) != 1 || given[0].Value != value[:15]) {
				t.Errorf("at 0: %+v, %v", given, ok)
			}
		}
	}
}
