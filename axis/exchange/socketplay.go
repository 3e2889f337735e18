package exchange

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// PlayOptions say how a recorded WebSocket is played. Nil and zero work.
type PlayOptions struct {
	// Speed is how fast the server's messages come: 0 as soon as they are due, 1 as recorded, N that many times as fast.
	Speed float64
	// Reveal changes the bytes of each message of the server; nil leaves them as they are.
	Reveal func([]byte) []byte
	// Patience is how long the end of a socket that the program had ended waits for it to do so again.
	Patience time.Duration
}

// socketSlack is how much longer than while recording a message of the program is waited for.
const socketSlack = 2 * time.Second

// A SocketPlay is a recorded WebSocket that plays the server's part to a program.
//
// A message of the server is due when the program's messages before it have come. Which of them one is follows from its content
// alone, masked as everything that is compared: of equal ones the first that has not come yet. A turn of a model is found by its key, on
// whichever socket it was recorded; its messages have the places of the turn that was recorded here at its turn. What does not
// come holds the others up once, for as long as it took then and two seconds.
type SocketPlay struct {
	sock   *Socket
	book   *Book
	opts   PlayOptions
	choice *choice  // nil where it is no other than rec
	ids    []string // of the request that opened the socket

	mu      sync.Mutex // guards what follows; taken after the Socket's
	rec     *Recorded
	changes int                     // of the choice, that rec follows
	entries []*socketEntry          // of its socket
	states  []entryState            // of these
	names   socketNames             // changed under the Socket's mu as well
	named   *Recorded               // whose opening the names are of
	open    int                     // no message of the program before it is waited for
	next    int                     // the entry that is played next
	bound   map[*Recorded]*Recorded // by the turn that has its place here: the one that was asked for
	extra   []*socketEntry          // messages of turns that have no place here
	gone    bool                    // the program has ended the socket
	closing *CloseCode              // its close frame; nil for none
	wake    chan struct{}           // closed when something has come
	last    time.Time               // when the entry before took place

	held  *Recorded // of Next alone: the turn whose messages bytes are
	bytes []byte
}

// entryState is how far an entry has been played.
type entryState struct {
	came   bool
	missed bool // it was waited for in vain
}

// A SocketOut is what the server does next.
type SocketOut struct {
	Message *SocketMessage // nil where the socket ends
	Close   *CloseCode     // of an end: its close frame; nil for none
	Reset   bool           // of an end: the connection is reset
	HeldOn  bool           // of an end: the program did not end the socket, as it had while recording
}

// A SocketRefusal says that a message of the program is not on the tape.
type SocketRefusal struct {
	Why     string
	Message []byte // a text message that says so to the program; nil where the socket is to be closed
}

// Play plays the socket that Take found to the program, on the tape of s, which Opened gave.
func (o *Open) Play(s *Socket, opts *PlayOptions, b *Book) *SocketPlay {
	p := &SocketPlay{
		sock: s, book: b, choice: o.choice, bound: make(map[*Recorded]*Recorded), wake: make(chan struct{}), last: time.Now(),
	}
	if opts != nil {
		p.opts = *opts
	}
	p.ids = idsOf(b.classifier, o.request)
	b.mu.Lock()
	if p.rec = o.taken; o.choice != nil {
		o.choice.play, p.rec, p.changes = p, o.choice.rec, o.choice.times
	}
	p.entries = p.rec.Socket.entries
	b.mu.Unlock()
	p.states = make([]entryState, len(p.entries))
	p.learnOpening()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.play = p
	return p
}

// Client takes a message of the program, and puts it on the tape. It returns why nothing recorded fits it; nil where something does. The
// error is the recorder's.
func (p *SocketPlay) Client(m *SocketMessage) (*SocketRefusal, error) {
	p.sock.mu.Lock()
	defer p.sock.mu.Unlock()
	p.sock.refusal = nil
	_, err := p.sock.message(FromProgram, m)
	return p.sock.refusal, err
}

// Ended says that the program has ended the socket: with a close frame, or nil where its connection has ended.
func (p *SocketPlay) Ended(c *CloseCode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return
	}
	p.gone, p.closing = true, c
	p.follow()
	p.noteEnd()
	p.woken()
}

// woken tells who waits. The caller holds mu.
func (p *SocketPlay) woken() {
	close(p.wake)
	p.wake = make(chan struct{})
}

// Next waits until the server does something, puts it on the tape and returns it; it is valid until the next call. After an end
// nothing follows. Errors: ctx's; one for a message that the tape names and does not hold, which the Book is told of
// (Damage); the recorder's.
func (p *SocketPlay) Next(ctx context.Context) (*SocketOut, error) {
	for {
		step := p.step()
		switch {
		case step.entry != nil:
			m, err := p.given(ctx, &step)
			if m != nil || err != nil {
				return &SocketOut{Message: m}, err
			}
		case step.end != nil:
			if err := p.pace(ctx, step.after, step.ms); err != nil {
				return nil, err
			}
			return step.end, nil
		case step.wake == nil:
		default:
			if err := p.await(ctx, &step); err != nil {
				return nil, err
			}
		}
	}
}

// A step is what a play does next: give an entry, end, wait, or, where it is none of these, look again.
type step struct {
	entry *socketEntry
	of    *Recorded // the socket that it is of
	turn  *Recorded // that the entry's bytes are of
	end   *SocketOut
	after int64         // when what comes before it took place
	ms    int64         // when it took place itself
	wake  chan struct{} // what is waited for
	limit time.Duration
	state *entryState // of the entry that is waited for
}

func (p *SocketPlay) step() step {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	if len(p.extra) > 0 {
		e := p.extra[0]
		p.extra = p.extra[1:]
		return step{entry: e, of: p.rec, turn: e.turn}
	}
	if p.next == len(p.entries) {
		return p.ending()
	}
	e, st := p.entries[p.next], &p.states[p.next]
	switch {
	case e.from == FromProgram && !st.came && !st.missed && p.gone:
		return p.ending() // what follows was said to what it did not say
	case e.from == FromProgram && !st.came && !st.missed:
		return step{wake: p.wake, limit: p.limit(e), state: st}
	}
	p.next++
	if e.from == FromProgram {
		p.last = time.Now()
		return step{}
	}
	s := step{entry: e}
	if e.turn != nil {
		s = p.turnStep(e)
	}
	s.of, s.after, s.ms = p.rec, p.msBefore(p.next-1), e.ms
	return s
}

// limit is how long a message of the program is waited for: as long as it took, and a little; its end, behind which nothing comes, for
// as long as the caller has patience. The caller holds mu.
func (p *SocketPlay) limit(e *socketEntry) time.Duration {
	if e.isEnd() && p.next == len(p.states)-1 {
		return p.opts.Patience
	}
	return time.Duration(max(e.ms-p.msBefore(p.next), 0))*time.Millisecond + socketSlack
}

// msBefore is when the entry before one took place.
func (p *SocketPlay) msBefore(i int) int64 {
	if i == 0 {
		return p.rec.endedMS
	}
	return p.entries[i-1].ms
}

// turnStep is the step of a turn's message: of the turn that was asked for where this one has its place, of which there may be more
// or fewer. The caller holds mu.
func (p *SocketPlay) turnStep(e *socketEntry) step {
	if e.turn.ownTurn {
		return step{entry: e, turn: e.turn}
	}
	asked := p.bound[e.turn]
	if asked == nil {
		return step{} // nobody asked for it
	}
	if asked == e.turn {
		return step{entry: e, turn: asked}
	}
	if e.last {
		p.extra = append(p.extra, rest(asked, e.part+1, e.ms)...)
	}
	if e.part >= len(asked.Exchange.Stream) {
		return step{}
	}
	return step{entry: &socketEntry{from: FromServer, turn: asked, part: e.part, ms: e.ms, seq: asked.Seq}, turn: asked}
}

// rest are the messages of a turn from one on, at one moment.
func rest(turn *Recorded, from int, ms int64) (entries []*socketEntry) {
	for i := from; i < len(turn.Exchange.Stream); i++ {
		entries = append(entries, &socketEntry{from: FromServer, turn: turn, part: i, ms: ms, seq: turn.Seq})
	}
	return entries
}

// await waits for what a step waits for, and gives it up in the end.
func (p *SocketPlay) await(ctx context.Context, s *step) error {
	timer := time.NewTimer(s.limit)
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
		p.mu.Lock()
		s.state.missed = true
		p.mu.Unlock()
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ending is how the socket ends. The caller holds mu.
func (p *SocketPlay) ending() step {
	was := p.rec.Socket
	s := step{after: p.msBefore(len(p.states))}
	s.ms = s.after
	switch end := &was.end; {
	case p.gone:
		s.end = &SocketOut{Close: p.reply()}
	case !was.ended:
		s.end = &SocketOut{Reset: true}
	case was.endsByProgram():
		s.end = &SocketOut{Close: &CloseCode{goingAway, tape.HeldOn}, HeldOn: true}
	default:
		s.ms = was.endMS
		s.end = &SocketOut{Reset: end.Gone == FromServer && strings.Contains(end.Error, Reset)}
		if end.Code != Abnormal {
			s.end.Close = &CloseCode{end.Code, end.Reason}
		}
	}
	return s
}

// goingAway is the code of a side that ends for reasons of its own.
const goingAway = 1001

// reply is the close frame that answers the program's; nil for none. The caller holds mu.
func (p *SocketPlay) reply() *CloseCode {
	was := p.rec.Socket
	switch {
	case p.closing == nil:
		return nil
	case was.ended && was.end.Code != Abnormal && was.end.First == FromProgram:
		return was.end.Answer
	}
	return &CloseCode{Code: p.closing.Code}
}

// pace waits until what took place at ms, after something else, is due.
func (p *SocketPlay) pace(ctx context.Context, after, ms int64) error {
	if p.opts.Speed <= 0 {
		return nil
	}
	gap := time.Duration(float64(max(ms-after, 0)) / p.opts.Speed * float64(time.Millisecond))
	p.mu.Lock()
	due := time.Until(p.last.Add(gap))
	p.mu.Unlock()
	err := sleep(ctx, due)
	p.mu.Lock()
	p.last = time.Now()
	p.mu.Unlock()
	return err
}
