package terminal

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"sync"
	"time"
)

// quiet is how long a program's output must rest, at least, before a replay types on although less was printed than while
// recording: masks and refused requests change what is printed, and a program that waits for a key prints nothing.
const quiet = 300 * time.Millisecond

// patient is for how long at most a program that printed more by then, while recording, may print nothing.
const patient = 5 * time.Second

// hold is the longest time for which a replay keeps keys from what the program printed last, and from the keys before: what
// has printed a prompt may still be about to change the terminal's modes or to start who reads it, and Escape is another
// key together with the one after it. What came at once while recording comes at once.
const hold = 100 * time.Millisecond

// signalKeys are the bytes that a terminal makes SIGINT, SIGQUIT and SIGTSTP of.
const signalKeys = "\x03\x1c\x1a"

// EOF is the byte that ends a terminal's input at the beginning of a line.
const EOF = 4

// An Input is one run of keys: Len bytes, typed after the program had printed After bytes. What a person types answers
// what stands on the screen, so a replay that typed at once would type into a program that is not ready for it.
//
// Keys that make signals (Ctrl-C, Ctrl-\, Ctrl-Z) are no answer to anything printed: a replay types them no earlier than AtMS
// ms after the program's start, as they came, or they would reach a program that does not handle them yet.
//
// With Rows and Cols it is no key: the terminal had that size from then on.
type Input struct {
	After int64 `json:"after"`
	Len   int64 `json:"len"`
	AtMS  int64 `json:"at_ms"`
	// IdleMS is for how long, in ms, the program had printed nothing.
	IdleMS int64 `json:"idle_ms,omitempty"`

	Rows   int `json:"rows,omitempty"`
	Cols   int `json:"cols,omitempty"`
	Width  int `json:"width,omitempty"` // pixels
	Height int `json:"height,omitempty"`
}

// Size is the size that the terminal got, zero where in is keys.
func (in Input) Size() Size {
	return Size{Rows: in.Rows, Cols: in.Cols, Width: in.Width, Height: in.Height}
}

// A Typist knows how much a program has printed, and so when to type. Everything that the program prints must be written
// to it.
type Typist struct {
	// Patience is for how long, beyond twice the time that it took while recording, Play waits for a screen that does not come. 0 is
	// 5 s. Not to be changed while it plays.
	Patience time.Duration

	mu      sync.Mutex
	begun   time.Time // moved by the time for which the program was stopped
	paused  time.Time // since when it is; zero for not
	printed int64
	rested  time.Time     // since when it has printed nothing
	more    chan struct{} // closed and replaced whenever something is printed
}

// NewTypist returns a Typist for a program that has printed nothing yet.
func NewTypist() *Typist {
	return &Typist{begun: time.Now(), rested: time.Now(), more: make(chan struct{})}
}

// Write counts p as printed.
func (t *Typist) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.printed += int64(len(p))
	t.rested = time.Now()
	close(t.more)
	t.more = make(chan struct{})
	return len(p), nil
}

// Pause stops the clock while the program is stopped, for a replay does not wait for that; Continue lets it go on.
func (t *Typist) Pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused.IsZero() {
		t.paused = time.Now()
	}
}

// Continue ends a Pause.
func (t *Typist) Continue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.paused.IsZero() {
		t.begun, t.paused = t.begun.Add(time.Since(t.paused)), time.Time{}
	}
}

func (t *Typist) state() (printed int64, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.printed, t.more
}

// idle is the time since the program printed something.
func (t *Typist) idle() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.rested)
}

// Settle waits until what the program of p has written, and it stopped writing, has been shown: for a moment at least, and for
// at most so long.
func (t *Typist) Settle(p *PTY, most time.Duration) {
	const moment = 20 * time.Millisecond
	for begun := time.Now(); time.Since(begun) < most; {
		time.Sleep(moment)
		if p.unread() == 0 && t.idle() >= moment {
			return
		}
	}
}

// elapsed is the time since the program's start, without that for which it was stopped.
func (t *Typist) elapsed() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.begun)
}

// now is an Input at this moment.
func (t *Typist) now() Input {
	printed, _ := t.state()
	return Input{After: printed, AtMS: t.elapsed().Milliseconds(), IdleMS: t.idle().Milliseconds()}
}

// Resized is the Input of a new size of the terminal.
func (t *Typist) Resized(s Size) Input {
	in := t.now()
	in.Rows, in.Cols, in.Width, in.Height = s.Rows, s.Cols, s.Width, s.Height
	return in
}

// Pass passes keys from one to the other as they come, until from ends, and tells note of each run before the program can
// answer it.
func (t *Typist) Pass(to io.Writer, from io.Reader, note func(Input)) error {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			in := t.now()
			in.Len = int64(n)
			note(in)
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// PassPipe is Pass for keys that have an end, as a terminal's have not: it then types what a person would for it, EOF, twice
// where a line has none, for there the first only ends the line.
func (t *Typist) PassPipe(to io.Writer, from io.Reader, note func(Input)) error {
	var last lastByte
	if err := t.Pass(io.MultiWriter(&last, to), from, note); err != nil {
		return err
	}
	end := []byte{EOF}
	if last != 0 && last != '\n' && last != '\r' {
		end = append(end, EOF)
	}
	return t.Pass(to, bytes.NewReader(end), note)
}

// A lastByte is the last byte that was written to it.
type lastByte byte

// Write implements io.Writer.
func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		*l = lastByte(p[len(p)-1])
	}
	return len(p), nil
}

// Play types what was recorded, each run of keys when the program has printed as much as it had then, or when its output
// rests, and those with a signal key no earlier than they came then; resize is called with the sizes in between. The last
// run takes what is left of from: a secret may have another length there than what was typed. The error is that of either
// side.
//
// ready, which may be nil, knows what the screen must show: run i of the keys is typed once ready(i) has been true for a moment, and as
// much was printed as then, or it rests; it is asked whenever something is printed. Where it does not become true the keys are
// typed all the same, after a while. known false leaves that run to what was printed.
func (t *Typist) Play(to io.Writer, from io.Reader, typed []Input, resize func(Size), ready func(i int) (yes, known bool)) error {
	p := player{t: t, last: t.elapsed()}
	left, run := runs(typed), 0
	for _, in := range typed {
		isKeys := in.Rows <= 0 || in.Cols <= 0
		if !isKeys || !p.waitFor(in, run, ready) {
			p.wait(in)
		}
		if !isKeys {
			resize(in.Size())
			continue
		}
		run++
		next := io.LimitReader(from, in.Len)
		if left--; left == 0 {
			next = from
		}
		keys, err := io.ReadAll(next)
		if err != nil || len(keys) == 0 && in.Len > 0 { // the last were typed when the program had ended
			return err
		}
		if bytes.ContainsAny(keys, signalKeys) {
			time.Sleep(time.Duration(in.AtMS)*time.Millisecond - t.elapsed())
		}
		if _, err := to.Write(keys); err != nil {
			return err
		}
	}
	return nil
}

// runs returns how many of typed are keys.
func runs(typed []Input) (n int) {
	for _, in := range typed {
		if in.Rows <= 0 || in.Cols <= 0 {
			n++
		}
	}
	return n
}

// A player knows where a Play has come.
type player struct {
	t     *Typist
	short int64         // how much less the program has printed than it had
	typed bool          // a run was typed
	last  time.Duration // when that was
	atMS  int64         // and when while recording

	missed bool // a screen did not come
}

// again is how long a screen that is not there yet, or was drawn just now, is not looked at again where nothing is printed.
const again = 50 * time.Millisecond

// waitFor is wait for a run of which is known what the screen must show; false where it is not.
func (p *player) waitFor(in Input, run int, ready func(i int) (yes, known bool)) bool {
	if ready == nil {
		return false
	}
	gap := time.Duration(max(0, in.AtMS-p.atMS)) * time.Millisecond
	begun, since := p.t.elapsed(), time.Duration(-1)
	for {
		_, more := p.t.state()
		yes, known := ready(run)
		if !known {
			return false
		}
		now, next := p.t.elapsed(), again
		yes = yes && p.enough(in, gap, now-begun)
		switch {
		case !yes && p.given(gap, now-begun):
			p.missed = true
			p.done(in)
			return true
		case !yes:
			since = -1
		case since < 0:
			since, next = now, min(gap, hold)
		case now-since >= min(gap, hold):
			p.done(in)
			return true
		default:
			next = min(gap, hold) - (now - since)
		}
		timer := time.NewTimer(next)
		select {
		case <-more:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// enough reports whether the program has printed as much as it had, rests, or was given the time for it: one that turns a spinner shows
// the same all the time, and is to have turned it as often.
func (p *player) enough(in Input, gap, waited time.Duration) bool {
	printed, _ := p.t.state()
	return printed >= in.After-p.short || p.t.idle() >= quiet || waited >= max(quiet, min(2*gap, patient))
}

// given reports whether a screen has been given its time: twice that which it took while recording, and patience beside it. What
// comes after a screen that did not come is another, too, and gets what is printed its rest.
func (p *player) given(gap, waited time.Duration) bool {
	if waited >= 2*gap+cmp.Or(p.t.Patience, patient) {
		return true
	}
	return p.missed && waited >= max(quiet, min(2*gap, patient)) && p.t.idle() >= quiet
}

// done says that a run is typed now.
func (p *player) done(in Input) {
	printed, _ := p.t.state()
	p.short = in.After - printed
	p.typed, p.last, p.atMS = true, p.t.elapsed(), in.AtMS
}

// wait returns when it is time for in: the program has printed as much as it had, or its output has rested, and that for
// longer than it took while recording. What it has printed less by then it is not waited for again.
func (p *player) wait(in Input) {
	gap := time.Duration(max(0, in.AtMS-p.atMS)) * time.Millisecond
	for {
		printed, more := p.t.state()
		if printed >= in.After-p.short {
			break
		}
		patience := max(quiet, min(2*gap, patient)-(p.t.elapsed()-p.last))
		timer := time.NewTimer(patience)
		select {
		case <-more:
			timer.Stop()
			continue
		case <-timer.C:
		}
		p.short = in.After - printed
		break
	}
	idle := time.Duration(min(in.IdleMS, hold.Milliseconds())) * time.Millisecond
	until := p.t.elapsed() + quiet + hold // one that draws by the clock never rests
	for left := idle - p.t.idle(); left > 0 && p.t.elapsed() < until; left = idle - p.t.idle() {
		time.Sleep(left)
	}
	if p.typed {
		time.Sleep(min(gap, idle) - (p.t.elapsed() - p.last))
	}
	p.typed, p.last, p.atMS = true, p.t.elapsed(), in.AtMS
}
