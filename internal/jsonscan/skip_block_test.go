package jsonscan

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSkipBlocks: a string is stepped over in blocks as it is byte by byte, whatever stands in it and behind it, wherever.
func TestSkipBlocks(t *testing.T) {
	pieces := []string{`\\`, `\"`, `\n`, `\u00e4`, `\ud83d\ude00`, `\ud800`, "plain text", "a", "ä", `\\\\`, strings.Repeat(`\\`, 31), strings.Repeat("x", 63), `\x`, `\u12g4`, "\x01", `"`, "\n", `\`}
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SampledFrom([]int{12, len(pieces)}).Draw(t, "weights") // mostly without what is wrong
		b := []byte(`"` + strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces[:weights]), 0, 60).Draw(t, "pieces"), "") +
			rapid.SampledFrom([]string{`"`, `",` + strings.Repeat("\n", 70), `"` + strings.Repeat("y", 70), ""}).Draw(t, "end"))
		end, why := skipText(b, 0)
		wantEnd, wantWhy := skipSlowly(b, 1)
		if end != wantEnd || why != wantWhy {
			t.Fatalf("%q: %d %q, want %d %q", b, end, why, wantEnd, wantWhy)
		}
	})
}

func FuzzSkipBlocks(f *testing.F) {
	f.Add(bytes.Repeat([]byte(`ab\n`), 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = append([]byte{'"', '\\'}, b...)
		end, why := skipText(b, 0)
		if wantEnd, wantWhy := skipSlowly(b, 1); end != wantEnd || why != wantWhy {
			t.Fatalf("%q: %d %q, want %d %q", b, end, why, wantEnd, wantWhy)
		}
	})
}
