package cellfont

import (
	"testing"
)

// Where lines leave a cell is what the font's own pictures say too.
func TestLinesLeaveTheCellWhereTheFontHasThem(t *testing.T) {
	edges := func(m *Mask) (left, right, up, down bool) {
		for y := range m.H {
			left = left || m.Pix[y*m.W] > 0
			right = right || m.Pix[y*m.W+m.W-1] > 0
		}
		for x := range m.W {
			up = up || m.Pix[x] > 0
			down = down || m.Pix[(m.H-1)*m.W+x] > 0
		}
		return
	}
	for c := rune(0x2500); c < 0x2580; c++ {
		if arms[(c-0x2500)*5] == 'x' && (c < 0x256D || c > 0x2570) {
			continue // dashes may end before the edge
		}
		for scale := 1; scale <= 3; scale++ {
			l, r, u, d := edges(Face{Scale: scale}.Draw(string(c), 1))
			l2, r2, u2, d2 := edges(rows(c))
			if l != l2 || r != r2 || u != u2 || d != d2 {
				t.Errorf("U+%04X %c at scale %d leaves left %t right %t up %t down %t, expected %t %t %t %t", c, c, scale, l, r, u, d, l2, r2, u2, d2)
			}
		}
	}
}

func TestEveryCharacterOfTheFontIsDrawn(t *testing.T) {
	ink := func(c string, columns int) int {
		n := 0
		for _, v := range (Face{Scale: 1}).Draw(c, columns).Pix {
			if v > 0 {
				n++
			}
		}
		return n
	}
	for _, c := range []string{"A", "ж", "ß", "│", "█", "▒", "⠿", "漢", "한", "の", "é", "e\u0301", "👍", "👨\u200d👩\u200d👧", "\U0001FB3A", "\uE0B0", "✓", "א"} {
		columns := 1
		if c[0] >= 0xE3 && c != "\uE0B0" && c != "✓" {
			columns = 2
		}
		if ink(c, columns) < 4 {
			t.Errorf("%q is drawn with %d pixels", c, ink(c, columns))
		}
	}
	if got, box := ink("\U0003FFFF", 1), ink("\U0003FFFE", 1); got == 0 || got != box {
		t.Errorf("a character that no font has is drawn with %d pixels, expected the box's %d", got, box)
	}
	for _, c := range []string{"", " ", "\u00a0", "\u2800", "\u3000"} {
		if ink(c, 1) != 0 {
			t.Errorf("%q is drawn", c)
		}
	}
}

// Whatever stands in a cell, the mask has the size of its place and levels that there are.
func FuzzDraw(f *testing.F) {
	f.Add("e\u0301", uint8(1), true, true)
	f.Add("\U0001F1E9\U0001F1EA", uint8(2), false, true)
	f.Add("\xff\u2551", uint8(3), true, false)
	f.Fuzz(func(t *testing.T, cluster string, n uint8, bold, italic bool) {
		face := Face{Bold: bold, Italic: italic, Scale: 1 + int(n%3)}
		columns := 1 + int(n>>7)
		m := face.Draw(cluster, columns)
		if m.W != columns*Width*face.Scale || m.H != Height*face.Scale || len(m.Pix) != m.W*m.H {
			t.Fatalf("%q is %d by %d", cluster, m.W, m.H)
		}
		for _, v := range m.Pix {
			if v >= Levels {
				t.Fatalf("%q has level %d", cluster, v)
			}
		}
	})
}

func BenchmarkDrawLetter(b *testing.B) {
	smooth()
	for b.Loop() {
		Face{Scale: 2}.Draw("g", 1)
	}
}
