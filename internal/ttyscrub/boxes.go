package ttyscrub

import (
	"strings"
	"unicode/utf8"
)

// What programs show in a box they wrap themselves, between its borders. So the rows of a box are looked at without them: one that
// is full to the border goes on in the next one.

// maxPadding is how many columns stand between a full row and its border at most.
const maxPadding = 2

// A boxed row has borders at both ends and ASCII between them.
type boxed struct {
	left, right int    // columns of the borders
	col         int    // where the text begins
	text        string // without blanks around it
}

// boxedRow returns what of row y is in a box.
func (r *screenRows) boxedRow(y int) (b boxed, ok bool) {
	row := r.screen.Row(y)
	if row == "" || row[len(row)-1] != '|' && row[len(row)-1] < utf8.RuneSelf {
		return b, false
	}
	inner := strings.TrimLeft(row, " ")
	b.left = len(row) - len(inner)
	first, n := utf8.DecodeRuneInString(inner)
	last, m := utf8.DecodeLastRuneInString(inner)
	if !isBorder(first) || !isBorder(last) || len(inner) <= n+m {
		return b, false
	}
	inner = inner[n : len(inner)-m]
	for i := range len(inner) {
		if inner[i] >= utf8.RuneSelf {
			return b, false
		}
	}
	b.right = b.left + 1 + len(inner)
	b.text = strings.TrimLeft(inner, " ")
	b.col = b.right - len(b.text)
	b.text = strings.TrimRight(b.text, " ")
	return b, true
}

func isBorder(r rune) bool {
	switch r {
	case '|', '│', '┃', '║', '╎', '┆', '┊', '▏', '▕', '▌', '▐':
		return true
	}
	return false
}

// full tells whether the text goes on in the next row, as far as the room for it says.
func (b boxed) full() bool { return b.right-b.col-len(b.text) <= maxPadding }

// boxes looks at the boxes that the rows from y to end are of.
func (r *screenRows) boxes(y, end int) {
	rows, _ := r.screen.Size()
	for ; y <= end; y++ {
		b, ok := r.boxedRow(y)
		if !ok {
			continue
		}
		top := y
		for n := 0; top > 0 && n < maxJoined && r.sameBox(top-1, b); top-- {
			n += b.right - b.left
		}
		bottom := y
		for n := 0; bottom+1 < rows && n < maxJoined && r.sameBox(bottom+1, b); bottom++ {
			n += b.right - b.left
		}
		if bottom > top {
			r.box(top, bottom)
		}
		y = bottom
	}
}

func (r *screenRows) sameBox(y int, b boxed) bool {
	other, ok := r.boxedRow(y)
	return ok && other.left == b.left && other.right == b.right
}

// box looks at the rows of one box.
func (r *screenRows) box(top, bottom int) {
	r.buf, r.parts = r.buf[:0], r.parts[:0]
	for y := top; y <= bottom; y++ {
		b, _ := r.boxedRow(y)
		r.parts = append(r.parts, part{len(r.buf), y, b.col})
		r.buf = append(r.buf, b.text...)
		if !b.full() {
			r.buf = append(r.buf, '\n')
		}
	}
	r.scan()
}
