// Package player plays a cassette on a terminal: what the program wrote, at the time at which it did, with keys to pause, step,
// seek and change the speed.
//
// The terminal is given the recorded bytes as they are, but for what would ask it something or reach beyond its screen: questions
// (DA, DSR, DECRQM, colours …), whose answers would be typed into the shell, the clipboard (OSC 52), and media copy. To seek, the
// screen is cleared and everything before is written at once, so that it is what it was then.
//
// Not goals: scaling a screen to a smaller terminal, waiting for people, recording.
package player

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// Options say how a cassette is played. Nil and zero work.
type Options struct {
	Speed   float64       // so many times as fast; 0 is 1, +Inf does not wait at all
	From    time.Duration // what is before is shown at once
	MaxIdle time.Duration // longer pauses are shortened to this; 0 keeps them
	Keys    <-chan Key    // nil: nobody asks for anything
	// Raw passes the bytes on as they are: for who is no terminal.
	Raw bool
}

const (
	seekStep  = 5 * time.Second
	fastest   = 64
	slowest   = 1.0 / 64
	clearing  = "\x1b[!p\x1b[?1049l\x1b[r\x1b[0m\x1b[H\x1b[2J" // a screen as at the start
	syncBegin = "\x1b[?2026h"
	syncEnd   = "\x1b[?2026l"
)

// Play writes what was printed to w. It returns nil at the end, when Quit was asked for, and the error of ctx, of w or of
// reading.
func Play(ctx context.Context, r *cassette.Reader, w io.Writer, opts *Options) error {
	p := &player{r: r, w: w}
	if opts != nil {
		p.o = *opts
	}
	p.speed = p.o.Speed
	if p.speed <= 0 {
		p.speed = 1
	}
	defer func() { p.stop() }()
	p.restart()
	if p.o.From > 0 {
		if err := p.seek(p.o.From); err != nil {
			return err
		}
	}
	err := p.run(ctx)
	if errors.Is(err, errQuit) {
		err = nil
	}
	if err == nil && !p.o.Raw {
		err = p.out.flush()
	}
	return err
}

var errQuit = errors.New("quit")

type player struct {
	r *cassette.Reader
	w io.Writer
	o Options

	out    *harmless
	next   func() (*cassette.Event, error, bool)
	stop   func()
	event  *cassette.Event // the next one, not shown yet; nil at the end
	at     time.Duration   // where we are in the session
	due    time.Time       // when that was, or is to be
	speed  float64
	paused bool
}

// restart goes to the beginning.
func (p *player) restart() {
	if p.stop != nil {
		p.stop()
	}
	p.out = newHarmless(p.w)
	p.next, p.stop = iter.Pull2(p.r.Events(&cassette.EventsOptions{
		Streams: []cassette.Stream{cassette.StreamOutput, cassette.StreamFinal},
	}))
	p.at, p.due = 0, time.Now()
}

// peek makes event the next one.
func (p *player) peek() error {
	if p.event != nil {
		return nil
	}
	e, err, ok := p.next()
	if !ok || err != nil {
		return err
	}
	p.event = e
	return nil
}

// show writes the next event.
func (p *player) show(w io.Writer) error {
	e := p.event
	p.event = nil
	p.at = max(p.at, e.Time())
	if e.Chunk == nil {
		return nil
	}
	if p.o.Raw {
		_, err := w.Write(e.Bytes)
		return err
	}
	p.out.w = w
	_, err := p.out.Write(e.Bytes)
	return err
}

func (p *player) run(ctx context.Context) error {
	for {
		if err := p.peek(); err != nil {
			return err
		}
		if p.event == nil && !p.paused {
			return nil
		}
		switch moved, err := p.wait(ctx); {
		case err != nil:
			return err
		case moved || p.event == nil:
			continue
		}
		if err := p.show(p.w); err != nil {
			return err
		}
	}
}

// wait waits until the next event is due. moved says that a key has changed what is next.
func (p *player) wait(ctx context.Context) (moved bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if !p.paused {
		gap := p.event.Time() - p.at
		if p.o.MaxIdle > 0 && gap > p.o.MaxIdle {
			p.at += gap - p.o.MaxIdle
		}
		p.due = p.due.Add(p.scaled(p.event.Time() - p.at))
		p.at = max(p.at, p.event.Time())
		if rest := time.Until(p.due); rest <= 0 && !p.asked() {
			return false, nil
		}
	}
	return p.sleep(ctx)
}

// scaled is how long d takes at this speed.
func (p *player) scaled(d time.Duration) time.Duration {
	if d <= 0 || math.IsInf(p.speed, 1) {
		return 0
	}
	return time.Duration(float64(d) / p.speed)
}

// asked reports whether a key waits.
func (p *player) asked() bool { return len(p.o.Keys) > 0 }

func (p *player) sleep(ctx context.Context) (moved bool, err error) {
	var expired <-chan time.Time
	if !p.paused {
		t := time.NewTimer(time.Until(p.due))
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-expired:
		return false, nil
	case k, ok := <-p.o.Keys:
		if !ok {
			p.o.Keys = nil
			p.paused = false
		}
		p.rewind()
		return true, p.key(k)
	}
}

// rewind takes back the part of the wait that was not waited for.
func (p *player) rewind() {
	now := time.Now()
	if rest := p.due.Sub(now); !p.paused && rest > 0 {
		p.at -= time.Duration(float64(rest) * p.speed)
	}
	p.due = now
}

func (p *player) key(k Key) error {
	switch k {
	case Quit:
		return errQuit
	case Pause:
		p.paused = !p.paused
	case Faster:
		p.speed = min(p.speed*2, fastest)
	case Slower:
		p.speed = max(p.speed/2, slowest)
	case Step:
		p.paused = true
		return p.step()
	case Forward:
		return p.seek(p.at + seekStep)
	case Back:
		return p.seek(p.at - seekStep)
	case ToStart:
		return p.seek(0)
	case NextMark, LastMark:
		return p.seekMark(k == NextMark)
	}
	return nil
}

// step shows what was printed next.
func (p *player) step() error {
	for {
		if err := p.peek(); err != nil || p.event == nil {
			return err
		}
		printed := p.event.Chunk != nil
		if err := p.show(p.w); err != nil || printed {
			return err
		}
	}
}

// seek shows the screen as it was at the time to.
func (p *player) seek(to time.Duration) error {
	to = max(to, 0)
	var head string
	if to < p.at {
		p.restart()
		p.event = nil
		head = clearing
	}
	b := &batch{w: p.w}
	if !p.o.Raw {
		b.head, b.tail = syncBegin+head, syncEnd
	}
	for {
		if err := p.peek(); err != nil {
			return err
		}
		if p.event == nil || p.event.Time() > to {
			break
		}
		if err := p.show(b); err != nil {
			return err
		}
	}
	if p.event != nil {
		p.at = to
	}
	p.due = time.Now()
	p.out.w = p.w
	return b.end()
}

// seekMark goes to the nearest service event in that direction.
func (p *player) seekMark(forward bool) error {
	to := time.Duration(-1)
	for e, err := range p.r.Events(&cassette.EventsOptions{Streams: []cassette.Stream{cassette.StreamService}}) {
		if err != nil {
			return err
		}
		if forward && e.Time() > p.at {
			to = e.Time()
			break
		}
		if !forward && e.Time() < p.at-time.Second { // a second, so that two in a row come by the first
			to = e.Time()
		}
	}
	if to < 0 && forward {
		return nil
	}
	return p.seek(to)
}

// batch gathers what is shown at once, in pieces of a bounded size.
type batch struct {
	bytes.Buffer
	w          io.Writer
	head, tail string // stand around all of it
	begun      bool
}

const batchSize = 1 << 20

func (b *batch) Write(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.WriteString(b.head)
	}
	n, _ := b.Buffer.Write(p)
	if b.Len() < batchSize {
		return n, nil
	}
	_, err := b.WriteTo(b.w)
	return n, err
}

func (b *batch) end() error {
	if !b.begun && b.head == syncBegin {
		return nil // nothing to show
	}
	if _, err := b.Write(nil); err != nil {
		return err
	}
	b.WriteString(b.tail)
	_, err := b.WriteTo(b.w)
	return err
}

// harmless passes a terminal's stream on without the sequences that a terminal answers, or that reach beyond its screen.
type harmless struct {
	w       io.Writer
	lex     *vt.Lexer
	base    int64 // stream offset of the present write
	from    int64 // what was not decided of yet
	drop    []span
	string  bool   // a control string was left out whose end may come yet
	pending []byte // an unfinished sequence, from from on
	out     []byte
}

type span struct{ start, end int64 }

func newHarmless(w io.Writer) *harmless {
	h := &harmless{w: w}
	h.lex = vt.NewLexer(h.token)
	return h
}

// token notes what is left out, and how far the stream is decided.
func (h *harmless) token(t *vt.Token) {
	end := t.Kind == vt.TokenEscape && t.Final == '\\' && h.string // ST
	h.string = false
	if end || asks(t) {
		h.drop = append(h.drop, span{t.Start, t.End})
		h.string = t.Kind >= vt.TokenOSC
	}
	if t.Kind == vt.TokenControl && t.Start > h.from {
		return // within a sequence, which is not over
	}
	h.from = max(h.from, t.End)
}

// Write passes on what is whole. What is not waits for the next write; flush passes it on as it is.
func (h *harmless) Write(p []byte) (int, error) {
	at := h.base + int64(len(p)) // of the stream's end
	start := h.base - int64(len(h.pending))
	h.pending = append(h.pending, p...)
	h.base = at
	h.lex.Write(p)
	h.out = h.out[:0]
	slices.SortFunc(h.drop, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	pos, done := start, 0
	for _, d := range h.drop {
		if d.start >= h.from {
			break // within a sequence that is not over
		}
		done++
		if d.start > pos {
			h.out = append(h.out, h.pending[pos-start:d.start-start]...)
		}
		pos = max(pos, d.end)
	}
	h.drop = append(h.drop[:0], h.drop[done:]...)
	whole := max(pos, min(h.from, at))
	if whole > pos {
		h.out = append(h.out, h.pending[pos-start:whole-start]...)
	}
	h.pending = append(h.pending[:0], h.pending[whole-start:]...)
	if len(h.pending) > vt.MaxString { // no sequence is so long: it is a string without an end
		h.out = append(h.out, h.pending...)
		h.pending = h.pending[:0]
	}
	if len(h.out) == 0 {
		return len(p), nil
	}
	_, err := h.w.Write(h.out)
	return len(p), err
}

// asks reports whether a terminal answers t, or does with it what is not on its screen.
func asks(t *vt.Token) bool {
	switch t.Kind {
	case vt.TokenControl:
		return t.Final == 0x05 // ENQ
	case vt.TokenEscape:
		return t.Final == 'Z' // DECID
	case vt.TokenCSI:
		return asksCSI(t)
	case vt.TokenOSC:
		return asksOSC(t.Data)
	case vt.TokenDCS:
		return len(t.Inter) > 0 && (t.Inter[0] == '$' || t.Inter[0] == '+') && t.Final == 'q' // DECRQSS, XTGETTCAP
	case vt.TokenAPC:
		return len(t.Data) > 0 && t.Data[0] == 'G' // kitty graphics: they are answered
	}
	return false
}

func asksCSI(t *vt.Token) bool {
	switch t.Final {
	case 'c', 'n', 'x': // DA, DSR, DECREQTPARM
		return len(t.Inter) == 0
	case 'p':
		return len(t.Inter) > 0 && t.Inter[0] == '$' // DECRQM
	case 'q':
		return t.Prefix == '>' // XTVERSION
	case 'u', 'm':
		return t.Prefix == '?' // kitty keyboard, XTQMODKEYS
	case 'i':
		return true // media copy
	case 'w', 'y':
		return len(t.Inter) > 0 // DECRQPSR, DECRQCRA, DECTST
	case 't': // windows: reports, and what moves them
		return len(t.Inter) == 0 && len(t.Params) > 0 && t.Params[0] < 22
	case 'S':
		return t.Prefix == '?' // XTSMGRAPHICS
	}
	return false
}

// asksOSC tells of colours that are asked for, and of the clipboard.
func asksOSC(data []byte) bool {
	if bytes.HasPrefix(data, []byte("52;")) {
		return true
	}
	for f := range bytes.SplitSeq(data, []byte(";")) {
		if len(f) == 1 && f[0] == '?' {
			return true
		}
	}
	return false
}

// flush passes on an unfinished sequence.
func (h *harmless) flush() error {
	if len(h.pending) == 0 {
		return nil
	}
	_, err := h.w.Write(h.pending)
	h.pending = h.pending[:0]
	return err
}
