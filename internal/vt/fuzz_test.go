package vt

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// pieces are what script makes streams of; % is a number.
var pieces = strings.Split("a|hello world|日本|e\u0301|👩\u200d👩\u200d👧|🇯🇵🇺|\u200d|\ufe0f|❤\ufe0f|한|\u0301|\xe6\x97|\xff\xfe|\xc2\x9b5C|\xc2|"+
	"\r\n|\n|\r|\b|\t|\v|\x0e|\x0f|\a|\x18|\x1a|\x00|\x7f|"+
	"\x1b[%A|\x1b[%B|\x1b[%C|\x1b[%D|\x1b[%E|\x1b[%F|\x1b[%G|\x1b[%;%H|\x1b[%d|\x1b[%a|\x1b[%e|\x1b[%I|\x1b[%Z|\x1b[%b|"+
	"\x1b[%@|\x1b[%P|\x1b[%X|\x1b[%J|\x1b[%K|\x1b[?%J|\x1b[?%K|\x1b[%L|\x1b[%M|\x1b[%S|\x1b[%T|\x1b[%g|\x1b[%;%r|\x1b[%;%s|\x1b[s|\x1b[u|"+
	"\x1b[4h|\x1b[4l|\x1b[20h|\x1b[20l|\x1b[?6h|\x1b[?6l|\x1b[?7h|\x1b[?7l|\x1b[?45h|\x1b[?69h|\x1b[?69l|\x1b[?25l|\x1b[?2027l|\x1b[?2027h|"+
	"\x1b[?47h|\x1b[?47l|\x1b[?1047h|\x1b[?1047l|\x1b[?1049h|\x1b[?1049l|\x1b[?1048h|\x1b[?1048l|\x1b[?1000h|\x1b[?1006h|\x1b[?2004h|"+
	"\x1b[?%s|\x1b[?%r|\x1b[m|\x1b[%m|\x1b[1;4:3;38;2;%;%;%m|\x1b[48:5:%m|\x1b[58:2::%:%:%m|\x1b[38:2:%:%:%m|\x1b[7;9m|\x1b[4%m|\x1b[1\"q|\x1b[\"q|"+
	"\x1b7|\x1b8|\x1bD|\x1bM|\x1bE|\x1bH|\x1bN|\x1bO|\x1bn|\x1b6|\x1b9|\x1bc|\x1b(0|\x1b)0|\x1b(B|\x1b)A|\x1b#8|\x1b[!p|\x1b=|"+
	"\x1b[%'}|\x1b[%'~|\x1b[% @|\x1b[% A|\x1b[% q|\x1b[42;%;%;%;%$x|\x1b[%;%;%;%$z|\x1b[%;%;%;%${|\x1b[%;%;%;%;1;%;%;1$v|"+
	"\x1b[c|\x1b[>c|\x1b[=c|\x1b[5n|\x1b[6n|\x1b[?6n|\x1b[?%$p|\x1b[%$p|\x1b[>q|\x1b[?u|\x1b[>%u|\x1b[<%u|\x1b[=%;%u|\x1b[18t|\x1b[22t|\x1b[23t|\x1b[x|"+
	"\x1bP$qm\x1b\\|\x1bP$qr\x1b\\|\x1bP$q q\x1b\\|\x1bP+q544e\x1b\\|\x1bP1$\x18|\x1bP:x\x1b\\|\x1b_apc\x1b\\|\x1bXsos\xc2\x9c|\x1b^p\xc2\x85|"+
	"\x1b]0;title %\a|\x1b]2;t\xe6\x97\xa5\xff\x1b\\|\x1b]8;;http://%/\a|\x1b]8;;\a|\x1b]4;%;rgb:1/%2/33\a|\x1b]4;%;?\a|\x1b]10;?;?\a|\x1b]11;#123\a|\x1b]104\a|\x1b]110\a|\x1b]52;c;aGk=\a|"+
	"\x1b|\x1b[|\x1b[1|\x1b[;|\x1b[?1;|\x1b[1:|\x1b[>|\x1b[ |\x1b]|\x1bP|\x1b[38;2|\x1b[1<m|\x1b[99999999999H|\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33;34m", "|")

var numbers = []string{"", "0", "1", "2", "3", "4", "5", "7", "8", "10", "25", "69", "1049", "2026", "65535", "4294967296"}

// script makes a stream of a terminal of any bytes.
func script(data []byte) []byte {
	var out []byte
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		c := data[0]
		data = data[1:]
		return int(c)
	}
	for len(data) > 0 {
		for _, c := range []byte(pieces[next()%len(pieces)]) {
			if c == '%' {
				out = append(out, numbers[next()%len(numbers)]...)
			} else {
				out = append(out, c)
			}
		}
	}
	return out
}

// A rig is a screen and what it told.
type rig struct {
	*Screen
	replies []string
}

func newRig(rows, cols, scrollback int) *rig {
	r := new(rig)
	r.Screen = New(&Options{Rows: rows, Cols: cols, Scrollback: scrollback, Origins: true,
		Reply: func(p []byte) { r.replies = append(r.replies, string(p)) }})
	return r
}

// dump is everything that a screen says.
func (r *rig) dump() string {
	var b strings.Builder
	rows, _ := r.Size()
	fmt.Fprintln(&b, r.rows, r.cols, r.Cursor(), r.Alt(), r.Ground(), r.Offset(), r.top, r.bottom, r.left, r.right)
	fmt.Fprintf(&b, "%q %q\n", r.Title(), r.titles)
	for _, n := range slices.Sorted(maps.Keys(firstDEC)) {
		fmt.Fprint(&b, r.modes.dec[n], " ")
	}
	fmt.Fprintln(&b, r.modes.ansi, r.modes.saved, r.kitty, r.palette, r.tabs, r.sets, r.pen.style(), linkURI(r.links.list[r.pen.link()]))
	for _, s := range []*saved{&r.primary.saved, &r.alternate.saved} {
		fmt.Fprintln(&b, s.x, s.y, s.pending, s.origin, s.sets, s.pen.style())
	}
	for i := range rows {
		fmt.Fprintf(&b, "%q %v %v %v\n", r.Row(i), r.Wrapped(i), r.AppendCells(nil, i), r.line(i).solid().orig)
	}
	for i := range r.ScrollbackLen() {
		fmt.Fprintf(&b, "%q %v %v\n", r.ScrollbackRow(i), r.ScrollbackWrapped(i), r.above(i).solid().orig)
	}
	fmt.Fprintf(&b, "%q\n", r.replies)
	return b.String()
}

// check looks for what must hold at any time.
func (r *rig) check(t *testing.T) {
	t.Helper()
	if r.x < 0 || r.x >= r.cols || r.y < 0 || r.y >= r.rows {
		t.Fatalf("cursor at %d,%d of %d,%d", r.y, r.x, r.rows, r.cols)
	}
	if r.top < 0 || r.top > r.bottom || r.bottom >= r.rows || r.left < 0 || r.left > r.right || r.right >= r.cols || len(r.tabs) != r.cols {
		t.Fatalf("margins %d-%d, %d-%d of %d,%d, %d tabs", r.top, r.bottom, r.left, r.right, r.rows, r.cols, len(r.tabs))
	}
	for _, b := range []*buffer{&r.primary, &r.alternate} {
		if b.rows != nil && len(b.rows) != r.rows || b.hist.n > b.hist.max {
			t.Fatalf("%d rows of %d, %d lines above", len(b.rows), r.rows, b.hist.n)
		}
		seen := map[*line]bool{}
		for i := range b.hist.n + len(b.rows) {
			var l *line
			if i < b.hist.n {
				l = b.hist.at(i)
			} else {
				l = b.rows[i-b.hist.n]
			}
			if seen[l] {
				t.Fatalf("line %d is there twice", i)
			}
			seen[l] = true
			r.checkLine(t, l)
		}
	}
}

func (r *rig) checkLine(t *testing.T, l *line) {
	t.Helper()
	l.solid()
	if len(l.cells) != r.cols || len(l.orig) != r.cols || l.used > r.cols {
		t.Fatalf("a line of %d cells, %d used, of %d", len(l.cells), l.used, r.cols)
	}
	for x, c := range l.cells {
		switch {
		case int(c.st) >= len(r.pens.list) || c.ch&isCluster != 0 && int(c.ch&chMask) >= len(r.clusters.list):
			t.Fatalf("cell %d names what is not there", x)
		case x >= l.used && c != (cell{}):
			t.Fatalf("cell %d is in use, behind %d", x, l.used)
		case c.ch == filler && (x == 0 || l.cells[x-1].ch&isWide == 0):
			t.Fatalf("cell %d is filler behind nothing: %x", x, l.cells)
		case c.ch&isWide != 0 && (x+1 == r.cols || l.cells[x+1].ch != filler):
			t.Fatalf("cell %d is wide and has no filler: %x", x, l.cells)
		}
	}
	kept := l.textGen == l.gen
	text := l.text
	l.textGen = 0
	if fresh := r.textOf(l); kept && fresh != text {
		t.Fatalf("a row is %q, was remembered as %q", fresh, text)
	}
}

// feed writes a stream in pieces of up to cut bytes; 0 is all at once.
func (r *rig) feed(stream []byte, random *rand.Rand, cut int) {
	for at := 0; at < len(stream); {
		n := len(stream) - at
		if cut > 0 {
			n = min(1+random.IntN(cut), n)
		}
		r.Write(stream[at : at+n])
		at += n
	}
}

func FuzzSplit(f *testing.F) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		data := make([]byte, 20+random.IntN(300))
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		f.Add(data, seed, seed%3 != 0)
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, scripted bool) {
		if len(data) > 1<<12 {
			return
		}
		if scripted {
			data = script(data)
		}
		sameInPieces(t, data, seed)
	})
}

// sameInPieces writes a stream, with resizes in it, whole and in pieces of several sizes. What is on the screen at the end, and
// what was answered, must be the same.
func sameInPieces(t *testing.T, stream []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	rows, cols, scrollback := 1+random.IntN(8), 1+random.IntN(20), random.IntN(12)-1
	sizes := make([][2]int, 1+random.IntN(3))
	for i := range sizes {
		sizes[i] = [2]int{1 + random.IntN(10), 1 + random.IntN(24)}
	}
	run := func(cut int) string {
		r := newRig(rows, cols, scrollback)
		for i, size := range sizes {
			r.feed(stream[i*len(stream)/len(sizes):(i+1)*len(stream)/len(sizes)], random, cut)
			r.check(t)
			r.Resize(size[0], size[1])
			r.check(t)
		}
		return r.dump()
	}
	whole := run(0)
	leastInterned = 3 // the tables of pens and clusters are cleared all the time
	defer func() { leastInterned = 1 << 14 }()
	for _, cut := range []int{1, 7} {
		if parted := run(cut); parted != whole {
			t.Fatalf("stream %q\nwhole:\n%s\nin pieces of up to %d:\n%s", stream, whole, cut, parted)
		}
	}
}

func TestSameInPieces(t *testing.T) {
	seeds := uint64(150)
	if os.Getenv("TAPEDECK_LONG") != "" {
		seeds = 5000
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		sameInPieces(t, script(data), seed)
	}
}
