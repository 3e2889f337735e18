// Package screen is what a program's terminal showed: a Tracker follows a screen through time and knows what moves by itself,
// Changes tells it in lines for people, a Side is compared with another, and a Watcher says when a replay's screen shows what
// it showed while recording.
//
// Goals: one screen is held, however long the recording is. Not goals: drawing, which package vt does.
package screen

import (
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/terminal"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

const (
	// ownAfter is how long after something was typed or answered a change on the screen is the program's own: until then it is
	// taken for the answer to that.
	ownAfter = 300 * time.Millisecond
	// settled is for how long a screen must have stood still to be the one that was looked at.
	settled = 50 * time.Millisecond
	// ownChanges is how often a row must change by itself, in its place, to count as one that moves.
	ownChanges = 2
)

// A Tracker follows a terminal's screen through time, and knows which of its rows change by themselves: a spinner, a clock, a
// picture that moves. Such a row changes in its place; one that scrolls stands elsewhere before or after.
//
// Times are ms after the terminal's beginning.
type Tracker struct {
	scr   *vt.Screen
	gen   uint64
	rows  []trackedRow
	title trackedRow
	alt   bool

	pending bool  // output was not looked at yet
	drawn   int64 // when it came
	caused  int64 // when something was last typed, answered, or the size changed
}

// A trackedRow is one row of the screen as it was last seen.
type trackedRow struct {
	gen     uint64
	text    string
	changed int64

	frames     int   // times that it changed by itself
	last, gap  int64 // when it did so last, and the longest time between two
	head, tail int   // characters at its beginning and end that stood still meanwhile
}

// NewTracker returns one that follows a screen of that size.
func NewTracker(rows, cols int) *Tracker {
	t := &Tracker{scr: vt.New(&vt.Options{Rows: rows, Cols: cols, Scrollback: maxHistory})}
	t.update(0)
	return t
}

// maxHistory is how many rows that left the screen are kept to compare.
const maxHistory = 10_000

// oneDraw is how far apart in ms two reads of output may be to be one drawing, which they cut in two.
const oneDraw = 3

// Output shows p.
func (t *Tracker) Output(ms int64, p []byte) {
	if ms-t.drawn > oneDraw {
		t.sync()
	}
	t.scr.Write(p)
	t.pending, t.drawn = true, max(ms, 1)
}

func (t *Tracker) sync() {
	if t.pending {
		t.pending = false
		t.update(t.drawn)
	}
}

// Resize gives the screen a size.
func (t *Tracker) Resize(ms int64, rows, cols int) {
	t.Cause(ms)
	t.scr.Resize(rows, cols)
	t.pending = false
	t.update(ms)
}

// Cause says that something came from outside: what changes now answers that.
func (t *Tracker) Cause(ms int64) {
	t.sync()
	t.caused = ms
}

// A rowUpdate is a row whose text has changed.
type rowUpdate struct {
	row *trackedRow
	now string
}

// update looks at what has changed.
func (t *Tracker) update(ms int64) {
	if now := t.scr.Title(); now != t.title.text {
		t.changed([]rowUpdate{{&t.title, now}}, ms)
	}
	g := t.scr.Generation()
	if g == t.gen && t.rows != nil {
		return
	}
	t.gen = g
	if rows, _ := t.scr.Size(); rows != len(t.rows) || t.alt != t.scr.Alt() {
		t.alt = t.scr.Alt()
		t.rows = make([]trackedRow, rows)
		for i := range t.rows {
			t.rows[i] = trackedRow{gen: t.scr.Changed(i), text: t.scr.Row(i), changed: ms}
		}
		return
	}
	var changes []rowUpdate
	for i := range t.rows {
		r := &t.rows[i]
		if g := t.scr.Changed(i); g != r.gen {
			r.gen = g
			if now := t.scr.Row(i); now != r.text {
				changes = append(changes, rowUpdate{r, now})
			}
		}
	}
	t.changed(changes, ms)
}

// changed tells the changes of one moment that are the program's own from those that answer something.
func (t *Tracker) changed(changes []rowUpdate, ms int64) {
	if len(changes) == 0 {
		return
	}
	own := ms-t.caused >= ownAfter.Milliseconds()
	frame := true // nothing changes but what moves
	for _, c := range changes {
		frame = frame && c.row.moving(ms)
	}
	var scrolled map[string]bool
	if own || frame {
		scrolled = t.elsewhere(changes)
	}
	for _, c := range changes {
		r := c.row
		switch {
		case scrolled[r.text] || scrolled[c.now]:
			r.frames = 0
		case own || frame || r.within(c.now, ms):
			r.frame(c.now, ms)
		default:
			r.frames = 0
		}
	}
	for _, c := range changes {
		c.row.text, c.row.changed = c.now, ms
	}
}

// elsewhere returns the texts that stood in one row and stand in another now.
func (t *Tracker) elsewhere(changes []rowUpdate) map[string]bool {
	was, out := make(map[string]bool, len(changes)), make(map[string]bool)
	for _, c := range changes {
		was[c.row.text] = c.row.text != ""
	}
	for _, c := range changes {
		if was[c.now] {
			out[c.now] = true
		}
	}
	return out
}

// frame counts a change of r by itself.
func (r *trackedRow) frame(now string, ms int64) {
	head, tail := wholeNumbers(r.text, now)
	if r.frames == 0 {
		r.head, r.tail, r.gap = head, tail, 0
	} else {
		r.head, r.tail, r.gap = min(r.head, head), min(r.tail, tail), max(r.gap, ms-r.last)
	}
	r.frames, r.last = r.frames+1, ms
}

// moving reports whether r changes by itself: it has, and has not rested for long since.
func (r *trackedRow) moving(ms int64) bool {
	return r.frames >= ownChanges && ms-r.last <= 3*r.gap+ownAfter.Milliseconds()
}

// within reports whether r moves and nothing of it has changed but what does.
func (r *trackedRow) within(now string, ms int64) bool {
	if !r.moving(ms) || r.head+r.tail == 0 {
		return false
	}
	head, tail := stillParts(r.text, now)
	return head >= r.head && tail >= r.tail
}

// wholeNumbers is stillParts for a row that moves: a number of which some digits have changed moves as a whole, for in another run
// the others may be others.
func wholeNumbers(a, b string) (head, tail int) {
	head, tail = stillParts(a, b)
	r := []rune(b)
	for head > 0 && unicode.IsDigit(r[head-1]) {
		head--
	}
	for tail > 0 && unicode.IsDigit(r[len(r)-tail]) {
		tail--
	}
	return head, tail
}

// stillParts returns how many characters two texts have in common at the beginning, and behind that at the end.
func stillParts(a, b string) (head, tail int) {
	x, y := []rune(a), []rune(b)
	n := min(len(x), len(y))
	for head < n && x[head] == y[head] {
		head++
	}
	for tail < n-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	return head, tail
}

// Screen returns what stands on the screen, and whether the program was still drawing it.
func (t *Tracker) Screen(ms int64) (s fidelity.Screen, drawing bool) {
	t.sync()
	drawing = t.drawn == 0 // nothing was printed yet: what was typed waited for no screen
	_, s.Cols = t.scr.Size()
	c := t.scr.Cursor()
	s.Cursor = fidelity.ScreenCursor{Row: c.Row, Col: c.Col, Visible: c.Visible}
	s.Alt, s.Title = t.scr.Alt(), t.scr.Title()
	if t.title.moving(ms) {
		s.Moving = append(s.Moving, fidelity.Moving{Row: fidelity.TitleRow, Head: t.title.head, Tail: t.title.tail})
	}
	s.Rows = make([]string, len(t.rows))
	for i := range t.rows {
		r := &t.rows[i]
		s.Rows[i] = r.text
		if r.moving(ms) {
			s.Moving = append(s.Moving, fidelity.Moving{Row: i, Head: r.head, Tail: r.tail})
		} else if r.changed > 0 && ms-r.changed < settled.Milliseconds() {
			drawing = true
		}
	}
	return s, drawing
}

// Mask is what stands on a screen for each byte of ASCII of a secret.
const Mask = '*'

// A Watcher looks at the screen of a replay: keys are typed once it shows what it showed when they were typed while recording. A
// program that draws by the clock prints more or less than it had, and is ready all the same. A nil one sees nothing.
type Watcher struct {
	screens *fidelity.Screens
	moments []fidelity.Moment
	begun   time.Time

	mu    sync.Mutex
	track *Tracker
}

// NewWatcher returns one that knows what was seen before each run of keys.
func NewWatcher(tty *recording.TTY, screens *fidelity.Screens, seen *fidelity.Showing) *Watcher {
	size := terminal.Size{Rows: tty.Rows, Cols: tty.Cols}.OrDefault()
	return &Watcher{screens: screens, moments: seen.Moments, begun: time.Now(), track: NewTracker(size.Rows, size.Cols)}
}

// Write implements io.Writer.
func (w *Watcher) Write(p []byte) (int, error) {
	w.see(func(ms int64) { w.track.Output(ms, p) })
	return len(p), nil
}

// Cause says that keys are typed now.
func (w *Watcher) Cause() {
	w.see(func(ms int64) { w.track.Cause(ms) })
}

// Resize says that the screen has another size.
func (w *Watcher) Resize(size terminal.Size) {
	w.see(func(ms int64) {
		if size.Rows > 0 {
			w.track.Resize(ms, size.Rows, size.Cols)
		}
	})
}

// see takes what has come by now.
func (w *Watcher) see(take func(ms int64)) {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		take(time.Since(w.begun).Milliseconds())
	}
}

// Expected returns what says whether the screen shows what it showed before a run of keys; nil for a nil one.
func (w *Watcher) Expected() func(run int) (yes, known bool) {
	if w == nil {
		return nil
	}
	return func(run int) (yes, known bool) {
		if run >= len(w.moments) || w.moments[run].End || w.moments[run].Drawing {
			return false, false
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		now, drawing := w.track.Screen(time.Since(w.begun).Milliseconds())
		was := &w.moments[run].Screen
		for i := range min(len(was.Rows), len(now.Rows)) {
			now.Rows[i] = maskedAs(was.Rows[i], now.Rows[i])
		}
		now.Title = maskedAs(was.Title, now.Title)
		return !drawing && w.screens.Same(was, &now), true
	}
}

// maskedAs is now with a mask wherever was has one: what is recorded holds no secret, and the program shows it.
func maskedAs(was, now string) string {
	if !strings.ContainsRune(was, Mask) || was == now {
		return now
	}
	a, b := []rune(was), []rune(now)
	for i := range min(len(a), len(b)) {
		if a[i] == Mask {
			b[i] = Mask
		}
	}
	return string(b)
}
