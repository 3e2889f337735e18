package tty

import (
	"bytes"
	"slices"
	"sort"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// What may be looked at: each byte of the stream earns so many bytes of rows, so that a program that moves the cursor after each
// character of a large screen does not slow its recording down without bounds. Where they are used up the next moments pass, and
// the rows are looked at later. Where that happens within a look, it ends soon: more is masked than the secrets then.
const (
	earned    = 24
	atRest    = 64 << 10 // bytes of a look that is the last chance, at least
	maxCredit = 8 << 20
	bonus     = 16 << 10 // bytes of the stream, for another size
	lookCost  = 64       // of one look, in bytes
	maxJoined = 16 << 10 // bytes of rows above and below that are joined
)

// screenRows looks at the rows of a screen.
type screenRows struct {
	screen *vt.Screen
	rules  *rules
	ledger *ledger
	gen    uint64 // of the last look
	credit int
	earns  int  // of each byte
	marked bool // only what has a mask in it is looked at: it was looked at without
	key    bool // the beginning of a private key may stand on the screen
	panels bool // there were backgrounds
	again  bool // what is drawn has been masked, as far as it was known then
	offs   []offsets

	buf   []byte // of the rows that are looked at
	parts []part // of buf
	cells []vt.Cell
	found found
	grids []grid
	pairs []seams
}

// A part is what of a row stands in buf from an offset on: the columns from col to before end. Joint says how it goes on with the
// part before it.
type part struct {
	at, row, col, end int
	joint             joint
}

// offsets say that what the screen was given from one offset on stands in the stream from another one on.
type offsets struct{ given, raw int64 }

func newScreenRows(s *vt.Screen, r *rules, l *ledger) *screenRows {
	return &screenRows{screen: s, rules: r, ledger: l, offs: []offsets{{}}, credit: maxCredit, earns: earned, found: make(found)}
}

func (r *screenRows) earn(n int) { r.credit = min(r.credit+n*r.earns, maxCredit) }

// maxOffsets bounds how often what is drawn may be out of step with the stream. What is older has left every screen.
const maxOffsets = 1024

// moved says that a part of the stream was passed over.
func (r *screenRows) moved(given, raw int64) {
	if len(r.offs) == maxOffsets {
		r.offs = append(r.offs[:0], r.offs[maxOffsets/2:]...)
	}
	r.offs = append(r.offs, offsets{given, raw})
}

// raw returns where in the stream what the screen was given stands.
func (r *screenRows) raw(given int64) int64 {
	i := sort.Search(len(r.offs), func(i int) bool { return r.offs[i].given > given })
	o := r.offs[max(i-1, 0)]
	return o.raw + given - o.given
}

// pass takes the rows as looked at but for those of the last line, which may be whole only on the screen.
func (r *screenRows) pass() {
	r.gen = r.screen.Generation()
	y := r.screen.Cursor().Row
	r.lines(y, y)
}

// look looks at the rows that changed since the last time. Must says that it is the last chance.
func (r *screenRows) look(must bool) {
	gen := r.screen.Generation()
	if gen == r.gen || r.credit < 0 && !must {
		return
	}
	if must {
		r.credit = max(r.credit, atRest)
	}
	last := r.gen
	r.gen = gen
	rows, _ := r.screen.Size()
	r.credit -= lookCost + rows/8
	for y := 0; y < rows; y++ {
		if r.screen.Changed(y) <= last {
			continue
		}
		end := y
		for end+1 < rows && r.screen.Changed(end+1) > last {
			end++
		}
		y = r.lines(y, end)
	}
	r.privateKey()
}

// lines looks at the rows from y to end and at those that they go on in, and returns the last of them.
func (r *screenRows) lines(y, end int) int {
	for n := 0; y > 0 && n < maxJoined && len(r.seams(y-1)) > 0; y-- {
		n += len(r.screen.Row(y - 1))
	}
	for n := 0; n < maxJoined && len(r.seams(end)) > 0; end++ {
		n += len(r.screen.Row(end + 1))
	}
	r.text(y, end)
	if len(bytes.TrimSpace(r.buf)) == 0 {
		return end
	}
	r.scan()
	if !r.skips(r.buf) {
		r.found.each(r.buf, func(start, stop int, rule string) { r.ledger.add(rule, r.origins(start, stop, false), true) })
	}
	for i := y; i < end; i++ {
		for _, s := range r.seams(i) {
			if i == y || !goesOnFrom(r.seams(i-1), s) {
				r.chain(i, end, s)
			}
		}
	}
	return end
}

// text puts the rows from y to end into buf. One that the terminal did not wrap ends in a line end.
func (r *screenRows) text(y, end int) {
	_, cols := r.screen.Size()
	r.buf, r.parts = r.buf[:0], r.parts[:0]
	kind := apart
	for ; y <= end; y++ {
		r.parts = append(r.parts, part{len(r.buf), y, 0, cols, kind})
		r.buf = append(r.buf, r.screen.Row(y)...)
		kind = apart
		if !r.screen.Wrapped(y) {
			r.buf = append(r.buf, '\n')
			continue
		}
		kind = r.wrapped(y)
		if r.screen.Cell(y, cols-1).Text == "" && r.screen.Cell(y, cols-1).Width != 0 {
			r.buf = append(r.buf, ' ') // blanks at the end were cut
		}
	}
}

// goesOnFrom tells whether one of the seams above is of the same pane as s.
func goesOnFrom(above []seam, s seam) bool {
	return slices.ContainsFunc(above, func(o seam) bool { return o.right == s.right })
}

// chain looks at the rows of a pane from y on, over seams of which s is the first.
func (r *screenRows) chain(y, end int, s seam) {
	r.buf, r.parts = r.buf[:0], r.parts[:0]
	col, kind, decorated := s.left, apart, false
	for {
		r.add(y, col, s.end, kind)
		_, cols := r.screen.Size()
		decorated = decorated || s.left > 0 || s.right < cols || s.start > 0 || s.end < cols || !r.screen.Wrapped(y)
		col, kind = s.start, s.kind
		if s.gap {
			r.buf = append(r.buf, ' ')
		}
		y++
		next := slices.IndexFunc(r.seams(y), func(o seam) bool { return o.right == s.right })
		if y >= end || next < 0 {
			break
		}
		s = r.seams(y)[next]
	}
	r.add(y, col, s.right, kind)
	r.buf = append(r.buf, '\n')
	if !decorated || r.skips(r.buf) { // the rows were looked at as they are
		return
	}
	r.scan()
	for k := 1; k < len(r.parts); k++ {
		if r.parts[k].joint == sure {
			continue
		}
		switch end, ok := r.begins(k); {
		case ok && r.credit >= 0:
			r.cut(k)
			r.scan()
			k = 0
		case ok:
			r.hide(r.parts[k].at, end)
		}
	}
}

// begins tells whether a secret begins with part k of buf, and where it ends: what stands before it is no part of it then, though
// it may go on.
func (r *screenRows) begins(k int) (end int, ok bool) {
	at, stop := r.parts[k].at, len(r.buf)
	if k+2 < len(r.parts) {
		stop = r.parts[k+2].at
	}
	for _, f := range r.in(r.buf[at:stop]) {
		if f.Start == 0 {
			return at + int(f.End), true
		}
	}
	return 0, false
}

// hide masks a secret in buf, of which nobody looks where it ends any more, with what goes on behind it.
func (r *screenRows) hide(start, end int) {
	for end < len(r.buf) && isToken(r.buf[end]) {
		end++
	}
	r.ledger.add("rest", r.origins(start, end, false), false)
}

// in returns the secrets of a text, for as much credit as they cost.
func (r *screenRows) in(b []byte) []scrub.Range {
	found := r.rules.in(b)
	r.credit -= costOf(b) + len(found)*len(b)
	return found
}

// skips tells a text that was looked at in an earlier round as it is now.
func (r *screenRows) skips(b []byte) bool { return r.marked && bytes.IndexByte(b, maskASCII) < 0 }

// cut drops what stands before part k of buf.
func (r *screenRows) cut(k int) {
	at := r.parts[k].at
	r.buf = append(r.buf[:0], r.buf[at:]...)
	r.parts = append(r.parts[:0], r.parts[k:]...)
	for i := range r.parts {
		r.parts[i].at -= at
	}
	r.parts[0].joint = apart
}

// add adds the columns of a row from col to before end, without blanks at their end, to buf.
func (r *screenRows) add(y, col, end int, kind joint) {
	_, end = r.grid(y).trim(col, end)
	r.parts = append(r.parts, part{len(r.buf), y, col, end, kind})
	r.cells = r.screen.AppendCells(r.cells[:0], y)
	r.credit -= len(r.cells)
	for _, c := range r.cells[col:max(col, end)] {
		switch {
		case c.Text != "":
			r.buf = append(r.buf, c.Text...)
		case c.Width != 0:
			r.buf = append(r.buf, ' ')
		}
	}
}

func (r *screenRows) scan() {
	r.key = r.key || bytes.Contains(r.buf, keyBegins)
	if r.skips(r.buf) {
		r.credit -= len(r.buf)
		return
	}
	for _, f := range r.in(r.buf) {
		start := int(f.Start)
		if end := r.clip(start, int(f.End), false); end > start {
			r.ledger.add(f.Rule, r.origins(start, end, false), f.Part)
			r.found.learn(f.Rule, r.buf[start:end])
		}
	}
	if r.again {
		r.rests()
	}
}

// clip returns the end of a secret in buf that was found over joints: where the next row begins with something else, it ends with the
// row. Known says that it was found without it.
func (r *screenRows) clip(start, end int, known bool) int {
	for i, p := range r.parts {
		if p.joint == apart || p.joint == sure || p.at <= start || p.at >= end {
			continue
		}
		stop := len(r.buf)
		if i+1 < len(r.parts) {
			stop = r.parts[i+1].at
		}
		piece := r.buf[p.at:min(end, stop)]
		other := isOther(piece, len(bytes.TrimSpace(r.buf[p.at:stop])))
		if p.joint == hard && !other {
			continue
		}
		if r.credit < 0 && !known {
			continue // and is masked over words too
		}
		switch {
		case known || r.endsAt(start, p.at):
			return p.at
		case other && p.joint == soft:
			return start
		}
	}
	return end
}

// isOther tells whether the beginning of a row of n bytes is no piece of a secret but words, as far as can be told.
func isOther(piece []byte, n int) bool {
	const words = 12
	return (len(piece) < n || n >= words) && names.Ordinary(string(piece))
}

// endsAt tells whether what begins at start in buf is a secret that ends at end, where nothing follows.
func (r *screenRows) endsAt(start, end int) bool {
	from := bytes.LastIndexByte(r.buf[:start], '\n') + 1
	for i, p := range r.parts { // what says that it is one stands in its row or in the one above
		if p.at <= start && i > 0 {
			from = max(from, r.parts[i-1].at)
		}
	}
	for _, f := range r.in(r.buf[from:end]) {
		if from+int(f.Start) <= start && from+int(f.End) == end {
			return true
		}
	}
	return false
}

// rests takes what stands beside a mask, without a blank, for the rest of a secret: the mask was made of what the stripped stream
// had of it, and hides from this look that it was one.
func (r *screenRows) rests() {
	for at := 0; ; {
		i := bytes.Index(r.buf[at:], leastMask)
		if i < 0 {
			return
		}
		start, end := at+i, at+i
		for end < len(r.buf) && r.buf[end] == maskASCII {
			end++
		}
		from, to := start, end
		for from > 0 && isToken(r.buf[from-1]) {
			from--
		}
		for to < len(r.buf) && isToken(r.buf[to]) {
			to++
		}
		to = r.clip(start, to, true)
		if (from < start || to > end) && r.ledger.coversAll(r.origins(start, end, true)) {
			r.ledger.add("rest", r.origins(from, to, false), false)
		}
		at = to
	}
}

var leastMask = []byte("****")

var keyBegins = []byte("PRIVATE KEY-----")

// privateKey looks at all rows from one with the beginning of a private key on: its lines are a secret together.
func (r *screenRows) privateKey() {
	if !r.key {
		return
	}
	r.key = false
	rows, _ := r.screen.Size()
	for y := range rows {
		if bytes.Contains([]byte(r.screen.Row(y)), keyBegins) {
			r.text(y, rows-1)
			r.scan()
			r.framedKey(y)
			return
		}
	}
}

var keyBegin = []byte("-----BEGIN")

// framedKey looks at the rows from y on in the columns of a private key that begins in it: beside it stand frames, numbers of lines.
func (r *screenRows) framedKey(y int) {
	rows, right := r.screen.Size()
	left := bytes.Index(r.grid(y).ch, keyBegin)
	if left < 0 || y+1 == rows {
		return
	}
	for x := left; x < right; x++ {
		if separates(r.grid(y), r.grid(y+1), x) {
			right = x
		}
	}
	room := 0
	if _, cols := r.screen.Size(); right < cols {
		room = maxPadding
	}
	r.buf, r.parts = r.buf[:0], r.parts[:0]
	for ; y < rows; y++ {
		from, to := r.grid(y).trim(left, right)
		r.add(y, from, to, apart)
		if to < right-room {
			r.buf = append(r.buf, '\n')
		}
	}
	r.scan()
}

// origins returns where in the stream the cells stand whose text is in buf from start to before end; masks only with masks. What a
// sequence filled a rectangle with stands nowhere.
func (r *screenRows) origins(start, end int, masks bool) (ranges []span) {
	for i, p := range r.parts {
		stop := min(end, len(r.buf))
		if i+1 < len(r.parts) {
			stop = min(end, r.parts[i+1].at)
		}
		if stop <= start || p.at >= end {
			continue
		}
		at := p.at
		r.cells = r.screen.AppendCells(r.cells[:0], p.row)
		for x, c := range r.cells {
			if x < p.col || x >= p.end || c.Width == 0 && c.Text == "" {
				continue
			}
			n := max(len(c.Text), 1)
			if at < stop && at+n > start && (masks || !masked([]byte(c.Text))) {
				if o := r.screen.Origin(p.row, x); o.End > 0 {
					ranges = append(ranges, span{r.raw(o.Start), r.raw(o.End-1) + 1})
				}
			}
			at += n
		}
	}
	return united(ranges)
}

// united sorts ranges and unites those that touch.
func united(ranges []span) (out []span) {
	slices.SortFunc(ranges, func(a, b span) int { return int(a.start - b.start) })
	for _, s := range ranges {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}
