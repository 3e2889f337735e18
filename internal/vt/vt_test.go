package vt

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/grapheme"
)

// screen writes text to a screen of some size, with origins.
func screen(rows, cols int, text ...string) *rig {
	r := newRig(rows, cols, 0)
	for _, t := range text {
		r.Write([]byte(t))
	}
	return r
}

func wantRows(t *testing.T, s *Screen, want ...string) {
	t.Helper()
	got := s.Text()
	for len(want) < len(got) {
		want = append(want, "")
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}

func TestPlainWidths(t *testing.T) {
	for r := rune(0x20); r <= 0x20000; r++ {
		w := plainWidth(r)
		if w == 0 {
			continue
		}
		if next, _ := grapheme.Next(grapheme.State{}, r); next != afterASCII || grapheme.Width(r) != w {
			t.Fatalf("%U is not plain: %+v, width %d", r, next, grapheme.Width(r))
		}
	}
}

// TestReplies asks for everything that is answered.
func TestReplies(t *testing.T) {
	for _, c := range []struct{ ask, want string }{
		{"\x1b[c", "\x1b[?64;6;21;22;28;52c"},
		{"\x1b[0c", "\x1b[?64;6;21;22;28;52c"},
		{"\x1b[>c", "\x1b[>41;388;0c"},
		{"\x1b[=c", "\x1bP!|00000000\x1b\\"},
		{"\x1b[5n", "\x1b[0n"},
		{"\x1b[3;4H\x1b[6n", "\x1b[3;4R"},
		{"\x1b[3;4H\x1b[?6n", "\x1b[?3;4R"},
		{"\x1b[2;5r\x1b[?6h\x1b[2;3H\x1b[6n", "\x1b[2;3R"},
		{"\x1b[?2004$p", "\x1b[?2004;2$y"},
		{"\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"},
		{"\x1b[?2026$p\x1b[?2027$p", "\x1b[?2026;2$y\x1b[?2027;2$y"},
		{"\x1b[?7777$p", "\x1b[?7777;0$y"},
		{"\x1b[4h\x1b[4$p\x1b[20$p\x1b[99$p", "\x1b[4;1$y\x1b[20;2$y\x1b[99;0$y"},
		{"\x1b[>q", "\x1bP>|tapedeck-vt(2)\x1b\\"},
		{"\x1b[?u", "\x1b[?0u"},
		{"\x1b[>5u\x1b[?u\x1b[=2;2u\x1b[?u\x1b[=1;3u\x1b[?u\x1b[<u\x1b[?u", "\x1b[?5u\x1b[?7u\x1b[?6u\x1b[?0u"},
		{"\x1b[>5u\x1b[?1049h\x1b[?u\x1b[?1049l\x1b[?u", "\x1b[?0u\x1b[?5u"},
		{"\x1b[18t", "\x1b[8;6;20t"},
		{"\x1b[14t", "\x1b[4;96;160t"},
		{"\x1b]4;1;?\a", "\x1b]4;1;rgb:cdcd/0000/0000\a"},
		{"\x1b]4;1;#0a0b0c;1;?\x1b\\", "\x1b]4;1;rgb:0a0a/0b0b/0c0c\x1b\\"},
		{"\x1b]10;?;?;?\a", "\x1b]10;rgb:e5e5/e5e5/e5e5\a\x1b]11;rgb:0000/0000/0000\a\x1b]12;rgb:e5e5/e5e5/e5e5\a"},
		{"\x1b]11;rgb:12/34/56\a\x1b]11;?\a\x1b]111\a\x1b]11;?\a", "\x1b]11;rgb:1212/3434/5656\a\x1b]11;rgb:0000/0000/0000\a"},
		{"\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"},
		{"\x1b[1;2;3;4:3;5;7;8;9;53;38;2;1;2;3;48:5:200;58:2::4:5:6m\x1bP$qm\x1b\\",
			"\x1bP1$r1;2;3;5;7;8;9;53;4:3;38:2::1:2:3;48:5:200;58:2::4:5:6m\x1b\\"},
		{"\x1b[2;4r\x1bP$qr\x1b\\", "\x1bP1$r2;4r\x1b\\"},
		{"\x1b[?69h\x1b[3;9s\x1bP$qs\x1b\\", "\x1bP1$r3;9s\x1b\\"},
		{"\x1b[5 q\x1bP$q q\x1b\\", "\x1bP1$r5 q\x1b\\"},
		{"\x1b[1\"q\x1bP$q\"q\x1b\\\x1bP$q\"p\x1b\\", "\x1bP1$r1\"q\x1b\\\x1bP1$r64;1\"p\x1b\\"},
		{"\x1bP$qz\x1b\\", "\x1bP0$r\x1b\\"},
		{"\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\"},
		{"\x1b]52;c;?\a", ""},
	} {
		r := screen(6, 20, c.ask)
		if got := strings.Join(r.replies, ""); got != c.want {
			t.Errorf("%q is answered with %q, want %q", c.ask, got, c.want)
		}
	}
}

func TestTitles(t *testing.T) {
	stream := ""
	for _, c := range [][2]string{
		{"\a\x1b]0;one\a", "one"}, {"\x1b[22t\x1b]2;t\xe6\x97\xa5\xffw\x1b\\", "t日\ufffdw"}, {"\x1b[23t\x1b]52;c;aGVsbG8=\x1b\\", "one"},
	} {
		stream += c[0]
		if got := screen(3, 10, stream).Title(); got != c[1] {
			t.Errorf("%q has the title %q, want %q", stream, got, c[1])
		}
	}
}

// TestInvalidUTF8 has a U+FFFD for each longest beginning of a code point, by the examples of the Encoding and Unicode standards.
func TestInvalidUTF8(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a\xf1\x80\x80\xe1\x80\xc2b\x80c\x80\xbfd", "a���b�c��d"},
		{"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82A", "��������A"},
		{"\xed\xa0\x80\xed\xbf\xbf\xed\xafA", "��������A"},
		{"\xf4\x91\x92\x93\xffA\x80\xbfB", "�����A��B"},
		{"\xe1\x80\xe2\xf0\x91\x92\xf1\xbfA", "����A"},
		{"\xe6\x97\x1b[1mx", "�x"},
		{"\x9b1mx", "�1mx"},
	} {
		wantRows(t, screen(1, 30, c.in).Screen, c.want)
	}
}

func TestClusters(t *testing.T) {
	for _, c := range []struct {
		in     string
		cells  []string // text of each cell; "-" is filler
		column int
	}{
		{"e\u0301x", []string{"e\u0301", "x"}, 2},
		{"👩\u200d👩\u200d👧x", []string{"👩\u200d👩\u200d👧", "-", "x"}, 3},
		{"🇯🇵🇺🇸", []string{"🇯🇵", "-", "🇺🇸", "-"}, 4},
		{"❤\ufe0fx", []string{"❤\ufe0f", "x"}, 2},
		{"\x1b[?2027h❤\ufe0fx", []string{"❤\ufe0f", "-", "x"}, 3},
		{"\x1b[?2027h\x1b[?2027l❤\ufe0fx", []string{"❤\ufe0f", "x"}, 2},
		{"a ❤\ufe0f\x1b[1;5Hb", []string{"a", " ", "❤\ufe0f", "", "b"}, 5}, // vim skips a blank that is there
		{"👍🏽", []string{"👍🏽", "-"}, 2},
		{"e\x1b[1m\u0301x", []string{"e\u0301", "x"}, 2},
		{"\u0301", []string{""}, 0},
		{"क्ष", []string{"क्", "ष"}, 2},
	} {
		s := screen(2, 10, c.in)
		var got []string
		for _, cell := range s.AppendCells(nil, 0)[:len(c.cells)] {
			if cell.Width == 0 {
				cell.Text = "-"
			}
			got = append(got, cell.Text)
		}
		if !slices.Equal(got, c.cells) || s.Cursor().Col != c.column {
			t.Errorf("%q: cells %q, cursor %d; want %q, %d", c.in, got, s.Cursor().Col, c.cells, c.column)
		}
	}
	long := screen(2, 10, "e"+strings.Repeat("\u0301", 1000))
	if n := len(long.Cell(0, 0).Text); n > MaxCluster || n < MaxCluster-2 {
		t.Errorf("a cluster of %d bytes", n)
	}
}

func TestOrigins(t *testing.T) {
	one := func(r *rig, row, col int) string { return fmt.Sprint(r.Origin(row, col)) }
	r := screen(3, 10, "ab\x1b[1mc日e\u0301\r\n")
	for col, want := range map[int]string{0: "{0 1}", 2: "{6 7}", 3: "{7 10}", 4: "{7 10}", 5: "{10 13}", 6: "{0 0}"} {
		if got := one(r, 0, col); got != want {
			t.Errorf("column %d: %s, want %s", col, got, want)
		}
	}
	r.Write([]byte("\x1b[H\x1b[2@"))
	if got := one(r, 0, 2); got != "{0 1}" {
		t.Errorf("after ICH: %s", got)
	}
	r.Write([]byte("\x1b[2P\x1b[L"))
	if got := one(r, 1, 3); got != "{7 10}" {
		t.Errorf("after IL: %s", got)
	}
	r.Resize(3, 3)
	if got := []string{r.ScrollbackRow(0), r.Row(0), r.Row(1), r.Row(2)}; r.ScrollbackLen() > 0 {
		t.Log(got)
	}
	for i := range 3 {
		if r.Row(i) == "日e\u0301" {
			if got := one(r, i, 0) + one(r, i, 2); got != "{7 10}{10 13}" {
				t.Errorf("wrapped anew: %s", got)
			}
		}
	}
	r = screen(2, 5, "ab\r\ncd\r\nef")
	if got := fmt.Sprint(r.above(0).origin(1)); got != "{1 2}" {
		t.Errorf("above the screen: %s", got)
	}
	r = screen(2, 10, "x\x1b[3b")
	if got := one(r, 0, 3); got != "{0 1}" {
		t.Errorf("repeated: %s", got)
	}
	var split rig
	split.Screen = New(&Options{Origins: true})
	for _, c := range []byte("a日") {
		split.Write([]byte{c})
	}
	if got := one(&split, 0, 1); got != "{1 4}" {
		t.Errorf("in pieces: %s", got)
	}
}

func TestStyles(t *testing.T) {
	s := screen(2, 20, "\x1b[1;3;4:3;38;5;9;48:2::1:2:3;58:5:4m\x1b]8;id=1;http://x/?a;b\aA\x1b]8;;\a\x1b[mB\x1b[41m\x1b[K")
	want := Cell{Text: "A", Width: 1, Link: "http://x/?a;b", Style: Style{FG: ColorIndexed | 9, BG: ColorRGB | 0x010203,
		UnderlineColor: ColorIndexed | 4, Attr: Bold | Italic, Underline: CurlyUnderline}}
	if got := s.Cell(0, 0); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := s.Cell(0, 1); got != (Cell{Text: "B", Width: 1}) {
		t.Errorf("%+v", got)
	}
	if got := s.Cell(0, 19).Style.BG; got != ColorIndexed|1 {
		t.Errorf("erased in %x", got)
	}
	for in, want := range map[string]Style{
		"\x1b[38;2;1;2;3;1mx":  {FG: ColorRGB | 0x010203, Attr: Bold},
		"\x1b[38:2:1:2:3;1mx":  {FG: ColorRGB | 0x010203, Attr: Bold},
		"\x1b[38;5;300;1mx":    {Attr: Bold},
		"\x1b[38;2;1mx":        {},
		"\x1b[4;24;21mx":       {Underline: DoubleUnderline},
		"\x1b[4:0mx":           {},
		"\x1b[97;107;39mx":     {BG: ColorIndexed | 15},
		"\x1b[1;2;22;7;27;9mx": {Attr: Strike},
	} {
		if got := screen(1, 5, in).Cell(0, 0).Style; got != want {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

// TestManyStyles draws more styles, clusters and links than are held at once.
func TestManyStyles(t *testing.T) {
	s := New(&Options{Scrollback: 10})
	for i := range 300000 {
		fmt.Fprintf(s, "\x1b[38;2;%d;%d;%dmx", i>>16&255, i>>8&255, i&255)
		if i%10 == 0 {
			fmt.Fprintf(s, "\x1b]8;;http://%d\a%c\u0301\u0302\u0303\x1b]8;;\a", i, rune(0x4e00+i/10%20000))
		}
	}
	if n := len(s.pens.list); n > leastInterned {
		t.Errorf("%d styles are held", n)
	}
	if n := len(s.clusters.list); n > leastInterned {
		t.Errorf("%d clusters are held", n)
	}
	if n := len(s.links.list); n > leastInterned {
		t.Errorf("%d links are held", n)
	}
	c := s.Cell(s.y, s.before())
	if i := 299999; c.Style.FG != rgb(i>>16&255, i>>8&255, i&255) {
		t.Errorf("the last cell is %+v", c)
	}
}

func TestMargins(t *testing.T) {
	s := screen(4, 6, "aaaaaa\r\nbbbbbb\r\ncccccc\r\ndddddd", "\x1b[?69h\x1b[2;4s\x1b[2;3r\x1b[3;2H\n")
	wantRows(t, s.Screen, "aaaaaa", "bcccbb", "c   cc", "dddddd")
	s.Write([]byte("\x1b[2;2Hvwxyz"))
	wantRows(t, s.Screen, "aaaaaa", "bvwxbb", "cyz cc", "dddddd")
	s.Write([]byte("\x1b[2;3H\x1b[@"))
	wantRows(t, s.Screen, "aaaaaa", "bv wbb", "cyz cc", "dddddd")
	s.Write([]byte("\x1b[M"))
	wantRows(t, s.Screen, "aaaaaa", "byz bb", "c   cc", "dddddd")
}

func TestRectangles(t *testing.T) {
	s := screen(3, 6, "\x1b[42;1;1;3;6$x")
	wantRows(t, s.Screen, "******", "******", "******")
	s.Write([]byte("\x1b[2;2;3;3$z"))
	wantRows(t, s.Screen, "******", "*  ***", "*  ***")
	s.Write([]byte("\x1b[1;1;2;3;1;2;4$v"))
	wantRows(t, s.Screen, "******", "*  ***", "*  *")
	s.Write([]byte("\x1b[1\"q\x1b[HX\x1b[\"qY\x1b[1;1;1;3${"))
	wantRows(t, s.Screen, "X  ***", "*  ***", "*  *")
}

func TestAlternate(t *testing.T) {
	s := screen(3, 10, "one\x1b[?1049h")
	wantRows(t, s.Screen)
	if on, known := s.Mode(true, 1049); !on || !known || !s.Alt() {
		t.Error("1049 is not set")
	}
	s.Write([]byte("\x1b[Htwo\r\n\n\n\n\x1b[?1049l"))
	wantRows(t, s.Screen, "one")
	if c := s.Cursor(); c.Col != 3 || c.Row != 0 || s.Alt() || s.ScrollbackLen() != 0 {
		t.Errorf("cursor %+v, %d lines above", c, s.ScrollbackLen())
	}
	s.Write([]byte("\x1b[?47h\x1b[2Hx\x1b[?47l\x1b[?47h")) // 47 keeps what is there
	wantRows(t, s.Screen, "", "x")
	s.Write([]byte("\x1b[?1047l\x1b[?47h"))
	wantRows(t, s.Screen)
}

func TestChanged(t *testing.T) {
	s := New(&Options{Rows: 3, Cols: 10})
	s.Write([]byte("a\r\nb"))
	before := []uint64{s.Changed(0), s.Changed(1), s.Changed(2)}
	all := s.Generation()
	s.Write([]byte("\x1b[1m\x1b[3;3H"))
	if s.Generation() != all {
		t.Error("moving the cursor changes the screen")
	}
	s.Write([]byte("x"))
	if s.Changed(0) != before[0] || s.Changed(1) != before[1] || s.Changed(2) == before[2] || s.Generation() == all {
		t.Error("one row changed, the others did not")
	}
	s.Write([]byte("\n"))
	if s.Changed(0) != before[1] {
		t.Error("a row that moved is another in its place")
	}
}

func TestStringWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "日本": 4, "e\u0301x": 2, "👩\u200d👩\u200d👧": 2, "❤\ufe0f!": 2, "🇯🇵🇺🇸": 4, "a\u0301\u0302bc": 3} {
		if got := StringWidth(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
		s := screen(1, 30, text)
		if got := s.Cursor().Col; got != want {
			t.Errorf("%q takes %d columns on the screen, want %d", text, got, want)
		}
	}
}

// TestBounded writes what would take much memory or time, were nothing capped.
func TestBounded(t *testing.T) {
	s := New(&Options{Rows: 24, Cols: 80})
	for _, in := range []string{
		"x\x1b[2147483647b", "\x1b[2147483647S", "\x1b[2147483647L\x1b[2147483647M\x1b[2147483647@\x1b[2147483647P\x1b[2147483647X",
		"\x1b[2147483647I\x1b[2147483647Z\x1b[99999999999999999999;99999999999999999999H", "\x1b[42;1;1;99999;99999$x",
		"\x1b[1;1;99999;99999;1;2;2;1$v", "\x1b[999999'}\x1b[999999'~\x1b[999999 @", "\x1b[>99999u\x1b[<999999999u",
	} {
		for range 100 {
			s.Write([]byte(in))
		}
	}
	s.Write([]byte("\x1b]0;"))
	for range 64 {
		s.Write(make([]byte, 1<<20))
		s.Write([]byte(strings.Repeat("x", 1<<20)))
	}
	if len(s.m.data) > MaxString || cap(s.m.data) > 4*MaxString {
		t.Errorf("a control string of %d bytes is held, in %d", len(s.m.data), cap(s.m.data))
	}
	s.Write([]byte("\a"))
	if len(s.Title()) > maxTitle {
		t.Errorf("a title of %d bytes", len(s.Title()))
	}
	for range 1000 {
		s.Write([]byte("\x1b[22t\x1bc"))
	}
	if rows, cols := New(&Options{Rows: 1 << 30, Cols: 1 << 30}).Size(); rows*cols > MaxCells {
		t.Errorf("a screen of %d by %d", rows, cols)
	}
	s.Resize(0, 5)
	s.Resize(5, -1)
	if rows, cols := s.Size(); rows != 24 || cols != 80 {
		t.Errorf("%d by %d", rows, cols)
	}
}

func TestPin(t *testing.T) {
	name, version := Pin()
	if name != "tapedeck-vt" || version != "2 unicode-"+grapheme.Version+" clusters-uax29-vs16-2027" {
		t.Errorf("%q %q", name, version)
	}
}
