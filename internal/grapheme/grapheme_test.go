package grapheme_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// TestBreaks runs the conformance test of the Unicode Character Database.
func TestBreaks(t *testing.T) {
	f, err := os.Open("testdata/GraphemeBreakTest.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cases := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		cases++
		fields := strings.Fields(line)
		var s grapheme.State
		for i := 0; i+1 < len(fields); i += 2 {
			r, err := strconv.ParseUint(fields[i+1], 16, 21)
			if err != nil {
				t.Fatal(err)
			}
			var boundary bool
			s, boundary = grapheme.Next(s, rune(r))
			if want := fields[i] == "÷"; boundary != want {
				t.Errorf("%s: before %s: boundary %v, want %v", line, fields[i+1], boundary, want)
			}
		}
	}
	if cases < 600 {
		t.Errorf("%d cases, want over 600", cases)
	}
}

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		r    rune
		want int
	}{
		{0, 0}, {'\n', 0}, {0x7f, 0}, {0x9f, 0}, {'a', 1}, {'~', 1}, {'é', 1}, {0xad, 1}, {'日', 2}, {'Ａ', 2}, {'ｱ', 1}, {'한', 2}, {0x1100, 2},
		{0x1161, 0}, {0x11a8, 0}, {0x301, 0}, {0x200b, 0}, {0x200d, 0}, {0xfe0f, 0}, {0xfeff, 0}, {0x600, 1}, {0x93f, 1}, {'😀', 2}, {0x1f3fd, 2},
		{0x1f1ef, 1}, {0x2764, 1}, {'①', 1}, {'…', 1}, {0xe000, 1}, {0x20000, 2}, {0x3fffd, 2}, {0x10ffff, 1}, {unicode.MaxRune + 1, 1}, {-1, 1}, {0xfffd, 1},
	} {
		if got := grapheme.Width(c.r); got != c.want {
			t.Errorf("width of U+%04X: %d, want %d", c.r, got, c.want)
		}
	}
	for r, want := range map[rune]bool{0x2764: true, '1': true, '😀': false, 'a': false} {
		if got := grapheme.VariationWide(r); got != want {
			t.Errorf("U+%04X wide with a variation selector: %v, want %v", r, got, want)
		}
	}
}

// TestJoinsCell: the columns of a text are those of its code points, but for emoji, regional indicators and marks.
func TestJoinsCell(t *testing.T) {
	for text, want := range map[string]int{
		"e\u0301": 1, "👩\u200d👩\u200d👧": 1, "👍🏽": 1, "🇯🇵🇺🇸": 2, "नि": 2, "स्ते": 2, "각": 1, "❤️": 1, "ab": 2, "a\u200db": 2,
	} {
		var s grapheme.State
		cells := 0
		for _, r := range text {
			next, boundary := grapheme.Next(s, r)
			if boundary || !grapheme.JoinsCell(s, r) {
				cells++
			}
			s = next
		}
		if cells != want {
			t.Errorf("%q: %d cells, want %d", text, cells, want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	text := strings.Repeat("日本語のテキスト 👩\u200d👧 e\u0301 नमस्ते ", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var s grapheme.State
		for _, r := range text {
			s, _ = grapheme.Next(s, r)
		}
	}
}
