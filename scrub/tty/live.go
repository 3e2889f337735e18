package tty

import (
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// A Live masks the output of a program while it is recorded. It holds back what may become a part of a secret, for Options.Age and
// Options.Hold at most; what is found later is late, and is to be masked where it was written to. It is for one goroutine.
type Live struct {
	o        Options
	stripped *stripped
	model    *model
	holder

	written int64     // bytes
	times   []arrival // of what is held
	hurry   bool
	closed  bool
}

// An arrival says when the bytes before an offset had come.
type arrival struct {
	end int64
	at  time.Duration
}

// NewLive returns one that has seen nothing.
func NewLive(o *Options) *Live {
	d := o.withDefaults()
	l := &Live{o: d}
	r := newRules(&d)
	l.stripped = newStripped(r, &l.ledger)
	l.model = newModel(r, &l.ledger, d.Rows, d.Cols)
	return l
}

// Write takes the next bytes of the stream, which came at a time. It copies p.
func (l *Live) Write(p []byte, at time.Duration) {
	l.hold(p)
	l.stripped.write(p)
	if !l.hurry && l.model.at == l.written {
		l.model.write(p)
	}
	l.written += int64(len(p))
	l.arrived(at)
}

// arrivalStep is how exact the times of what is held are.
const arrivalStep = 20 * time.Millisecond

func (l *Live) arrived(at time.Duration) {
	if n := len(l.times); n > 0 && at-l.times[n-1].at < arrivalStep {
		l.times[n-1].end = l.written
		return
	}
	l.times = append(l.times, arrival{l.written, at})
}

// Resize says that the terminal has another size from here on.
func (l *Live) Resize(rows, cols int) { l.model.resize(Resize{l.written, rows, cols}) }

// Take returns the bytes that need not be held any longer, masked. They follow those of the Take before and are valid until the
// next call. See Late.
func (l *Live) Take(now time.Duration) []byte {
	to := l.settled()
	if must := max(l.written-int64(l.o.Hold), l.aged(now)); must > to {
		if !l.hurry && l.model.at == l.written {
			l.model.rest() // what is whole by now may be found now
		}
		to = max(to, min(must, l.whole()))
	}
	return l.release(to)
}

// settled returns up to where nothing can be found any more, but for what the program goes back to.
func (l *Live) settled() int64 {
	to := l.stripped.decided()
	if !l.hurry && l.model.at == l.written {
		to = min(to, l.model.settled())
	}
	return to
}

// whole returns up to where what was written has whole characters: to what is not ASCII more may come.
func (l *Live) whole() int64 {
	n := 0
	for n < maxCharacter && n < len(l.held)-l.from && l.held[len(l.held)-1-n] >= utf8.RuneSelf {
		n++
	}
	return l.written - int64(n)
}

// maxCharacter bounds how much of one is held, in bytes.
const maxCharacter = vt.MaxCluster

// aged returns up to where the bytes have been held long enough.
func (l *Live) aged(now time.Duration) (to int64) {
	n := 0
	for ; n < len(l.times) && now-l.times[n].at >= l.o.Age; n++ {
		to = l.times[n].end
	}
	l.times = append(l.times[:0], l.times[n:]...)
	return to
}

func (l *Live) release(to int64) []byte {
	if to <= l.taken {
		return nil
	}
	return l.holder.release(min(l.beyond(to), max(to, l.whole())))
}

// Flush returns all that is held, masked as far as it is known. It is for the end of the stream.
func (l *Live) Flush() []byte {
	l.stripped.close()
	l.closed = true
	if l.model.at == l.written {
		l.model.rest()
	}
	return l.release(l.written)
}

// Hurry says whether bytes pass with the scan of the stripped stream alone, and the model falls behind.
func (l *Live) Hurry(on bool) { l.hurry = on }

// Behind returns from where on the model has not seen the stream; ok is false where it has seen all.
func (l *Live) Behind() (from int64, ok bool) { return l.model.at, l.model.at < l.written }

// CatchUp has the model read on from r, which holds what was taken at its offset, budget bytes at most, and then what is held. It
// returns all late hits since the last time; they are to be masked in r's bytes. The error is r's.
func (l *Live) CatchUp(r io.ReaderAt, budget int64) ([]Hit, error) {
	buf := make([]byte, min(budget, maxBlock))
	for budget > 0 && l.model.at < l.taken {
		n := min(int64(len(buf)), l.taken-l.model.at, budget)
		if _, err := r.ReadAt(buf[:n], l.model.at); err != nil {
			return l.Late(), err
		}
		l.model.rows.again = true
		l.model.write(buf[:n])
		budget -= n
	}
	if at := l.model.at; at >= l.taken && at < l.written {
		l.model.write(l.held[l.from+int(at-l.taken):])
	}
	if l.closed && l.model.at == l.written {
		l.model.rest()
	}
	l.model.rows.again = false
	return l.Late(), nil
}

// An Input masks what is typed. Its stream is the bytes of all events of input, one after another: a mask keeps the length of
// each. It looks at the keys as they came, without arrows and other sequences, and at the line that they make: a deleted character
// (BS, DEL), word (^W) or line (^U) is taken back, a bracketed paste is text. It is for one goroutine.
type Input struct {
	o    Options
	keys *stripped
	lex  lexer
	skip int // bytes of a key that follow its sequence

	line    []typed // what stands before the cursor
	scanned bool    // line was looked at
	pasting bool
	hidden  bool // nothing is echoed

	holder
	at    int64
	first time.Duration // when the first byte came that is held
	last  time.Duration // when the last one came
}

// typed is a character of a line.
type typed struct {
	c      byte
	at     int64
	hidden bool
}

const (
	maxTyped    = 16 << 10 // bytes of a line that are looked at together
	agesOfInput = 15       // of Options.Age, for which what is being typed is held
)

// NewInput returns one that has seen nothing.
func NewInput(o *Options) *Input {
	in := &Input{o: o.withDefaults()}
	in.keys = newStripped(newRules(&in.o), &in.ledger)
	return in
}

// Write takes the bytes of the next event, which came at a time. It copies p.
func (in *Input) Write(p []byte, at time.Duration) {
	if in.last = at; in.from == len(in.held) {
		in.first = at
	}
	in.hold(p)
	for i := 0; i < len(p); {
		if in.skip > 0 {
			in.skip--
			i++
			continue
		}
		was := in.lex.state
		k, n := in.lex.next(p[i:])
		in.token(k, was, p[i:i+n], in.at+int64(i))
		i += n
	}
	in.at += int64(len(p))
	in.keys.at = in.at
}

// token takes a part of the keys at an offset; the lexer was in a state before it.
func (in *Input) token(k kind, was state, p []byte, at int64) {
	switch {
	case k == payload:
		in.keys.str.take(in.lex.osc, p, at)
		return
	case in.keys.str.isOpen:
		in.keys.str.end()
	}
	switch {
	case k == text || k == newline || k == carriage || k == tab:
		in.typed(p, at)
	case was == ground && k != quiet || len(p) == 1 && was == ground && p[0] != 0x1b:
		in.control(p[0])
	case was == escaped && p[0] == 'O': // a function key
		in.skip = 1
	case was == inCSI && in.lex.state == ground:
		in.sequence(p[len(p)-1])
	}
}

func (in *Input) sequence(final byte) {
	params := string(in.lex.params[:in.lex.n])
	switch {
	case final == 'M' && params == "" && in.lex.inter == 0: // the mouse, in three bytes
		in.skip = 3
	case final == '~' && params == "200":
		in.pasting = true
	case final == '~' && params == "201":
		in.pasting = false
		in.look()
	}
}

func (in *Input) typed(p []byte, at int64) {
	b := make([]byte, len(p))
	for i, c := range p {
		if c == '\r' {
			c = '\n'
		}
		b[i] = c
		if c == '\n' && !in.pasting {
			in.enter()
			continue
		}
		in.line = append(in.line, typed{c, at + int64(i), in.hidden})
		in.scanned = false
		if in.hidden && c >= ' ' && utf8.RuneStart(c) {
			_, size := utf8.DecodeRune(p[i:])
			in.hide(at+int64(i), size)
		}
		if len(in.line) > maxTyped {
			in.look()
			in.line = slices.Delete(in.line, 0, maxTyped/2)
		}
	}
	if !in.hidden {
		in.keys.typed(b, at)
	}
}

// hide masks a character that was not echoed. Those of one line count once.
func (in *Input) hide(at int64, size int) {
	n := len(in.line)
	in.add("typed", []span{{at, at + int64(size)}}, n > 1 && in.line[n-2].hidden)
}

func (in *Input) enter() {
	in.look()
	in.learn()
	in.line = in.line[:0]
}

// learn makes what was typed without echo known: a program may print it.
func (in *Input) learn() {
	var value []byte
	for _, c := range in.line {
		if c.hidden {
			value = append(value, c.c)
		}
	}
	if !masked(value) && in.o.Scrub != shapesAlone() { // which others use too
		in.o.Scrub.AddSecret("typed", string(value))
	}
}

func (in *Input) control(c byte) {
	const interrupt, backspace, killLine, killWord, suspend, del = 0x03, 0x08, 0x15, 0x17, 0x1a, 0x7f
	switch c {
	case backspace, del, killLine, killWord, interrupt, suspend:
		in.look()
	}
	n := len(in.line)
	switch c {
	case backspace, del:
		for n > 0 && in.line[n-1].c&0xc0 == 0x80 {
			n--
		}
		n = max(n-1, 0)
	case killWord:
		for n > 0 && in.line[n-1].c == ' ' {
			n--
		}
		for n > 0 && in.line[n-1].c != ' ' {
			n--
		}
	case killLine, interrupt, suspend:
		n = 0
	}
	in.line = in.line[:n]
}

func (in *Input) look() {
	if in.scanned {
		return
	}
	in.scanned = true
	b := make([]byte, len(in.line))
	for i, c := range in.line {
		b[i] = c.c
	}
	for _, f := range in.keys.rules.in(b) {
		var ranges []span
		for _, c := range in.line[f.Start:f.End] {
			ranges = append(ranges, span{c.at, c.at + 1})
		}
		in.add(f.Rule, united(ranges), f.Part)
	}
}

// NoEcho says whether what is typed from here on is not echoed: a password, which is hidden whatever it looks like, all but
// control characters, and becomes known to Options.Scrub. It is for a terminal in canonical mode (ICANON) without ECHO; a program
// that reads keys one by one turns echo off too, and shows them.
func (in *Input) NoEcho(on bool) { in.hidden = on }

// Take returns the bytes that need not be held any longer, masked. They follow those of the Take before and are valid until the
// next call. What is typed is held until its line ends, or nothing comes for Options.Age, or, while more comes, for 15 times that,
// or Options.Hold bytes.
func (in *Input) Take(now time.Duration) []byte {
	n := len(in.held) - in.from
	if n == 0 {
		return nil
	}
	if now-in.last >= in.o.Age || now-in.first >= agesOfInput*in.o.Age || n > in.o.Hold {
		in.look()
		return in.release(in.at)
	}
	to := min(in.at, in.keys.decided())
	if len(in.line) > 0 {
		to = min(to, in.line[0].at)
	}
	return in.release(to)
}

func (in *Input) release(to int64) []byte {
	if to <= in.taken {
		return nil
	}
	in.first = in.last
	return in.holder.release(in.beyond(to))
}

// Flush returns all that is held, masked. It is for the end of the stream.
func (in *Input) Flush() []byte {
	in.look()
	in.keys.close()
	return in.release(in.at)
}

// ScanInput is Scan for what was typed: the bytes of all events of input, one after another.
func ScanInput(b []byte, o *Options) []Hit {
	in := NewInput(o)
	in.keep = true
	in.Write(b, 0)
	in.Flush()
	return sorted(in.all)
}
