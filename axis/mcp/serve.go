package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

// A Served is a recorded server, answered from its tape.
type Served struct {
	book       *Book
	transcript *transcript

	equals []*transcript   // of an equal spawn, transcript among them; see Settle
	heard  []byte          // what the client said to Settle
	given  map[string]bool // ids of the requests that Settle has answered

	merged []*transcript // what a lenient one answers from; nil: transcript alone
	once   sync.Once     // makes index
	index  *lenientIndex
}

// looseIndex is what lenient clients are answered by; it is made when the first one comes.
func (s *Served) looseIndex() *lenientIndex {
	s.once.Do(func() { s.index = newLenientIndex(s) })
	return s.index
}

// Asked reports whether every request of the recorded conversation has come, pings apart.
func (s *Served) Asked() bool {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	return !slices.ContainsFunc(s.transcript.calls, func(c *recordedCall) bool { return c.unasked() })
}

// ServeOptions say whom a Served answers, and how.
type ServeOptions struct {
	In  io.Reader // what the client says: lines
	Out io.Writer // what the server said; to an *os.File an answer behind a notification goes in a write of its own
	Err io.Writer // what the server wrote to its stderr; nil drops it
	// Log takes what passes on the tape of the replay; whoever gave it ends it. Nil is none.
	Log *Conversation
	// Speed is how fast answers come: 0 at once, 1 as recorded, N that many times as fast.
	Speed float64
	// Reveal puts the program's own secrets in the place of the tape's placeholders; nil changes nothing.
	Reveal func([]byte) []byte
	// Before is called before a recorded line of the server goes out, with the seq of its record: what the server did by then beside
	// what it said can be done in its place. An error ends Serve. Nil is not. Not for Lenient.
	Before func(seq uint64) error
	// Lenient answers any client as far as the tape goes, and any number of them: no order is waited for, initialize and repeats are
	// always answered. Such a Served counts nothing as asked or refused, and has no Log.
	Lenient bool
	// Say is told what a person should know of a lenient client: that it wants another protocol version. Nil is nobody.
	Say func(text string)
}

// Recorded says which conversation s is.
func (s *Served) Recorded() *Recorded { return &s.transcript.Recorded }

// Serve answers a client until the conversation has ended as it did on the tape, or the client ends it: In gives io.EOF, Out takes nothing
// any more, or ctx is done. It closes neither; whoever gave them does when it has returned, for it may still be reading In. What was to be written to Err
// by then is. exit is
// the exit status that the server had, 128+n where signal n ended it. An error is what kept an answer from being given: a tape that
// is damaged, a Log that failed, a line over MaxLine; whatever else the client does is none.
//
// A line of the server goes out at its place: when every request and response that the client had sent before it has come again.
// One that does not come holds it up once, for as long as it took while recording and two seconds, half a minute where nobody waits
// for an answer; never for ever.
func (s *Served) Serve(ctx context.Context, o *ServeOptions) (exit int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Lenient {
		return 0, s.serveLenient(ctx, o)
	}
	p := newPlayer(s, o)
	go func() {
		p.finish(readLines(io.MultiReader(bytes.NewReader(s.heard), o.In), p.hear))
	}()
	err = p.run(ctx)
	s.book.order.Close(p.transcript.stream)
	return p.end(), err
}

// serveLenient answers one client over lines.
func (s *Served) serveLenient(ctx context.Context, o *ServeOptions) error {
	gone, clientGone := context.WithCancel(ctx)
	v := newSession(gone, s, o)
	defer v.rest()
	defer clientGone()
	box := lane.NewPlayer(nil, &lane.PlayerOptions[requestKey, []byte]{})
	v.unasked = func(b []byte) { box.Say(b) }
	go func() {
		_ = readLines(o.In, func(line []byte) error {
			if msgs, _, err := Parse(bytes.Clone(line)); err == nil { // else it is passed by
				v.messages(ctx, msgs, v.unasked)
			}
			return nil
		})
		clientGone()
		v.rest()
		box.Ended()
	}()
	for {
		said, err := box.Next(ctx)
		if err == nil {
			_, err = o.Out.Write(append(said.Value, '\n'))
		}
		if err != nil { // the client has gone, or the context is done
			return nil
		}
	}
}

// errTooLong is the error of a line over MaxLine.
var errTooLong = errors.New("a line of the client is over 64 MiB, and none that long is on a tape")

// readLines gives each line of r to f, with its line end, the last perhaps without one, until r ends or f fails. A line is valid
// until f returns. The end of r, whatever ended it, is no error.
func readLines(r io.Reader, f func(line []byte) error) error {
	for lines := jsonscan.NewLines(untilEnd{r}, MaxLine); ; {
		line, err := lines.Next()
		switch {
		case errors.As(err, new(*jsonscan.LongLineError)):
			return errTooLong
		case err != nil:
			return nil
		}
		if err := f(line); err != nil {
			return err
		}
	}
}

// untilEnd is a reader that ends, whatever ended it: what it had said of a last line counts.
type untilEnd struct{ io.Reader }

func (r untilEnd) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		err = io.EOF
	}
	return n, err
}

// nearestTo is the conversation that a request is compared with: one that has its method.
func (s *Served) nearestTo(method string) *transcript {
	for _, t := range s.merged {
		if t.Methods[method] > 0 {
			return t
		}
	}
	return s.transcript
}

// Settle finds out which of several equal spawns s is: their programs may be started in another order than was recorded, and each is to
// be answered from its own conversation. Until the client asks what not all of them were asked, it is answered what all of them
// answered alike. Of a Served that Spawn had no choice about, Settle does nothing. Serve goes on where it ended; the record of what was
// said until then is its own. Of o count In, Out and Reveal. changed reports whether the recorded server of a conversation had changed
// anything, beside what it said, before the record of that seq; nil is never. An error is none of the client's.
func (s *Served) Settle(ctx context.Context, o *ServeOptions, changed func(conversation, seq uint64) bool) error {
	if len(s.equals) < 2 {
		return nil
	}
	st := &settling{s: s, o: o, changed: changed, ctx: ctx, fits: s.equals, asked: make(map[requestKey]int)}
	var heard bytes.Buffer
	err := readLines(io.TeeReader(o.In, &heard), st.hear)
	s.heard = heard.Bytes()
	s.settleOn(st.fits)
	if errors.Is(err, errSettled) || errors.Is(err, errClientGone) || errors.Is(err, errTooLong) || ctx.Err() != nil {
		return nil // the last three Serve finds so, too
	}
	return err
}

// settleOn makes s the first of the conversations that is nobody's.
func (s *Served) settleOn(fits []*transcript) {
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	for _, t := range slices.Concat(fits, s.equals) {
		if !t.settled {
			s.transcript, t.settled = t, true
			return
		}
	}
}

// A settling is a Served while it is not known which conversation it is.
type settling struct {
	s       *Served
	o       *ServeOptions
	changed func(conversation, seq uint64) bool
	ctx     context.Context
	fits    []*transcript // that were asked what the client has asked
	asked   map[requestKey]int
}

// errSettled ends the listening.
var errSettled = errors.New("settled")

// hear takes one line of the client.
func (st *settling) hear(line []byte) error {
	msgs, batch, err := Parse(line)
	clean := st.s.book.log.Redact(Client, line)
	switch {
	case err != nil || len(msgs) == 1 && !batch && !msgs[0].IsRequest():
		return nil
	case batch || len(clean.Messages) != 1 || msgs[0].Method == methodPing:
		return errSettled
	}
	m := &msgs[0]
	k := st.s.book.log.keyOf(&clean.Messages[0])
	var fits []*transcript
	var calls []*recordedCall
	st.s.book.mu.Lock()
	for _, t := range st.fits {
		if c := t.nth(k, st.asked[k]); c != nil && !t.settled {
			fits, calls = append(fits, t), append(calls, c)
		}
	}
	st.s.book.mu.Unlock()
	if len(fits) > 0 {
		st.fits = fits
	}
	if len(fits) < 2 || !st.alike(calls) {
		return errSettled
	}
	st.asked[k]++
	return st.answer(m, st.s.transcript.nth(k, st.asked[k]-1), calls[0])
}

// nth is the request of a key behind n others of it; nil for none.
func (t *transcript) nth(k requestKey, n int) *recordedCall {
	for _, c := range t.calls {
		if c.requestKey != k {
			continue
		}
		if n == 0 {
			return c
		}
		n--
	}
	return nil
}

// alike reports whether the conversations gave the same answers to calls, one of each, and until the next request did nothing but that.
func (st *settling) alike(calls []*recordedCall) bool {
	var first []byte
	for i, c := range calls {
		t := st.fits[i]
		if c.answer == nil || c.cancelled > 0 || !t.plain(c) || st.changed != nil && st.changed(t.Conversation, c.seq) {
			return false
		}
		b, err := st.s.book.message(c.answerPart(), &caller{id: []byte("0")}, nil)
		if err != nil || i > 0 && !bytes.Equal(b, first) {
			return false
		}
		first = b
	}
	return true
}

// plain reports whether the server did nothing but answer, c and what was asked before it, until the request behind c came: there is
// nothing that a client could wait for instead of asking. Its stderr may come later.
func (t *transcript) plain(c *recordedCall) bool {
	next := uint64(math.MaxUint64)
	if i := slices.Index(t.calls, c) + 1; i < len(t.calls) {
		next = t.calls[i].place
	}
	if t.end.byServer || c.replied > next {
		return false
	}
	return !slices.ContainsFunc(t.lines, func(l *recordedLine) bool {
		return l.place < next && !l.stderr && (l.text || len(l.parts) != 1 || !l.parts[0].answer)
	})
}

// answer gives the answer to c. Among those of other servers it has the place that it has in the conversation which s is for now: so
// every place is taken once, whoever turns out to be who.
func (st *settling) answer(m *Message, place, c *recordedCall) error {
	s := st.s
	b, err := s.book.message(c.answerPart(), &caller{id: m.ID}, st.o.Reveal)
	if err != nil {
		return errSettled
	}
	if place != nil {
		for _, l := range s.transcript.linesOf(place) {
			s.book.order.wait(st.ctx, l)
			defer s.book.order.wrote(l)
		}
	}
	if s.given == nil {
		s.given = make(map[string]bool)
	}
	s.given[idName(m.ID)] = true
	if _, err := st.o.Out.Write(append(bytes.Clone(b), '\n')); err != nil {
		return errClientGone
	}
	return nil
}

// linesOf are the lines of the server that belong to a request.
func (t *transcript) linesOf(c *recordedCall) (lines []*recordedLine) {
	for _, l := range t.lines {
		if slices.ContainsFunc(l.parts, func(p recordedPart) bool { return p.call == c }) {
			lines = append(lines, l)
		}
	}
	return lines
}

// wasGiven reports whether Settle has written a line already, and says so once.
func (s *Served) wasGiven(p *player, l *recordedLine) bool {
	if len(s.given) == 0 || len(l.parts) != 1 || !l.parts[0].answer {
		return false
	}
	p.mu.Lock()
	id := idName(p.served[l.parts[0].call].id)
	p.mu.Unlock()
	was := s.given[id]
	delete(s.given, id)
	return was
}

// A serversOrder keeps what several servers answer at once, and write to their stderr, in the order in which it passed while recording: a
// program may act on whichever answer it sees first, and one stderr may be that of them all. An answer waits until every earlier one of
// another conversation has gone out and its client has read it. Those that are late hold it up together, and once: a program may use
// fewer servers now.
type serversOrder struct{ *lane.Order[*recordedLine] }

// newServersOrder returns the order of the lines of transcripts that hold an answer, and of stderr; what may come as often as it likes
// has no place in it, and of what a server asked the tape tells when it was answered, not when it was asked.
func newServersOrder(all []*transcript, hold time.Duration) *serversOrder {
	var lines []lane.Line[*recordedLine]
	var open []uint64
	for i, t := range all {
		t.stream = uint64(i + 1)
		answered := t.firstAnswer()
		for _, l := range t.lines {
			l.turn = -1
			if l.stderr && l.place < answered { // the tape had it when the server had told its name: that is not when it came
				continue
			}
			if t.Transport == Stdio && t.Within == 0 && l.ordered() { // else what carried it keeps it in order; or nobody comes with it
				lines = append(lines, lane.Line[*recordedLine]{Place: l.seq, MS: l.at, From: lane.Far, Stream: t.stream, Value: l})
			}
		}
		open = append(open, t.stream)
	}
	slices.SortStableFunc(lines, func(a, b lane.Line[*recordedLine]) int { return cmp.Compare(a.Place, b.Place) })
	for i := range lines {
		lines[i].Value.turn = i
	}
	o := &serversOrder{lane.NewOrder(lines, hold, nil)}
	o.Open(open...)
	return o
}

// firstAnswer is the place of the first line that holds an answer; beyond all of them where none does.
func (t *transcript) firstAnswer() uint64 {
	first := uint64(math.MaxUint64)
	for _, l := range t.lines {
		if l.answers() {
			first = min(first, l.place)
		}
	}
	return first
}

// ordered reports whether a line has a place among those of other conversations.
func (l *recordedLine) ordered() bool {
	return l.stderr || slices.ContainsFunc(l.parts, func(p recordedPart) bool { return p.answer && p.call.method != methodPing })
}

// asked is when the last request that l answers came, in ms of the recording; nobody asks for stderr.
func (l *recordedLine) asked() (at int64) {
	if l.stderr {
		return l.at
	}
	for i := range l.parts {
		if p := &l.parts[i]; p.answer {
			at = max(at, p.call.at)
		}
	}
	return at
}

// wait returns when it is l's turn, or ctx is done, which who writes finds so too.
func (o *serversOrder) wait(ctx context.Context, l *recordedLine) {
	if l.turn >= 0 {
		_ = o.Await(ctx, l.turn, o.Lines()[l.turn].Stream, l.asked())
	}
}

// wrote says that l went out, or never will, and with it every line before.
func (o *serversOrder) wrote(l *recordedLine) {
	if l.turn >= 0 {
		o.Passed(l.turn)
	}
}

// settleFor is how long an answer waits for the client to read what went out before it and answers nothing, and settleStep how often
// it is looked whether it has.
const (
	settleFor  = 50 * time.Millisecond
	settleStep = 100 * time.Microsecond
)

// settle waits until a client has read what was written to out, for at most that long. Clients forget a request with its answer: progress of it that one
// read brings together with the answer is lost to some, and whether one read does is a matter of moments. So an answer comes in a read
// of its own behind a notification, while recording and on a replay.
func settle(out *os.File, most time.Duration) {
	for end := time.Now().Add(most); unread(out) > 0 && time.Now().Before(end); {
		time.Sleep(settleStep) // nothing tells when a pipe was read
	}
}

// A lastOut is where something went out last, of all conversations of a run: what goes out elsewhere waits until that was read.
type lastOut struct {
	mu sync.Mutex
	f  *os.File
}

// turn waits until what went out last elsewhere was read. The next turn is out's.
func (l *lastOut) turn(out *os.File) {
	l.mu.Lock()
	last := l.f
	l.f = out
	l.mu.Unlock()
	if last != nil && last != out {
		settle(last, settleFor)
	}
}
