package exchange

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A SocketPlay is a recorded WebSocket that plays the server's part to a program: a lane.Player of its entries. Which of them a message of
// the program is follows from its content alone, masked as everything that is compared. A turn of a model is found by its key, on
// whichever socket it was recorded.
type SocketPlay struct {
	player *lane.Player[messageKey, *socketEntry]
	sock   *Socket
	book   *Book
	opts   AnswerOptions
	choice *choice  // nil where it is no other than rec
	ids    []string // of the request that opened the socket

	mu      sync.Mutex // guards what follows; taken after the Socket's, and before the player's
	rec     *Recorded
	changes int            // of the choice, that rec follows
	entries []*socketEntry // of its socket
	names   lane.Names     // changed under the Socket's mu as well
	named   *Recorded      // whose opening the names are of
	gone    bool           // the program has ended the socket
	closing *CloseCode     // its close frame; nil for none

	held  *Recorded // of Next alone: the turn whose messages bytes are
	bytes []byte
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

// Play plays the socket to the program that asked for it, whose ids it gets. Of opts count Speed, Reveal (of each message
// of the server) and Patience (of the end of a socket that the program had ended).
func (s *Socket) Play(asked *Request, opts *AnswerOptions, b *Book) *SocketPlay {
	p := &SocketPlay{sock: s, book: b, choice: s.choice}
	if opts != nil {
		p.opts = *opts
	}
	p.ids = idsOf(b.classifier, asked)
	p.mu.Lock() // from when the choice has it others may change what it is
	b.mu.Lock()
	if p.rec = s.became; s.choice != nil {
		s.choice.play, p.rec, p.changes = p, s.choice.rec, s.choice.times
	}
	p.entries = p.rec.Socket.entries
	b.mu.Unlock()
	p.player = lane.NewPlayer(p.lines(), &lane.PlayerOptions[messageKey, *socketEntry]{
		Slack: slack, Speed: p.opts.Speed, SinceMS: p.rec.endedMS, Ends: true,
		Key: func(e *socketEntry) messageKey { return b.said(p.rec.Socket, e).key }, // who finds holds mu
	})
	p.learnOpening()
	p.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.play = p
	return p
}

// lines are the entries as they are played. The program's end, where nothing follows it, is waited for as long as the caller has patience.
func (p *SocketPlay) lines() []lane.Line[*socketEntry] {
	lines := make([]lane.Line[*socketEntry], len(p.entries))
	asked := make(map[*Recorded]int)
	for i, e := range p.entries {
		l := &lines[i]
		*l = lane.Line[*socketEntry]{Place: e.at, MS: e.ms, Counts: e.from == FromProgram, Value: e}
		switch {
		case e.isEnd() && i == len(lines)-1:
			l.Within = p.opts.Patience
		case e.from == FromServer:
			l.From = lane.Far
			if e.turn != nil && !e.turn.ownTurn {
				owner, ok := asked[e.turn]
				if !ok {
					owner = -1
				}
				l.Owners = []int{owner}
			}
		case e.turn != nil:
			asked[e.turn] = i
		}
	}
	return lines
}

// Client takes a message of the program, and puts it on the tape. It returns why nothing recorded fits it; nil where something does. The
// error is the recorder's.
func (p *SocketPlay) Client(m *SocketMessage) (*SocketRefusal, error) {
	p.sock.mu.Lock()
	defer p.sock.mu.Unlock()
	p.sock.refusal = nil
	err := p.sock.message(FromProgram, m)
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
	p.player.Ended()
}

// noteEnd notes that the program has ended the socket. The caller holds mu.
func (p *SocketPlay) noteEnd() {
	if i := slices.IndexFunc(p.entries, (*socketEntry).isEnd); i >= 0 {
		p.player.Came(i)
	}
}

// follow makes the play that of the recorded socket that the choice has become. The caller holds mu.
func (p *SocketPlay) follow() {
	if p.choice == nil {
		return
	}
	p.book.mu.Lock()
	rec, times := p.choice.rec, p.choice.times
	entries := rec.Socket.entries
	p.book.mu.Unlock()
	if times == p.changes {
		return
	}
	p.changes = times
	same := 0 // entries that stay: nothing that follows has had its turn
	for same < min(len(entries), len(p.entries)) && entries[same] == p.entries[same] {
		same++
	}
	p.rec, p.entries = rec, entries
	p.player.Replace(p.lines(), same)
	if p.gone {
		p.noteEnd()
	}
}

// changed tells a play that it may be of another recorded socket.
func (p *SocketPlay) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
}

// learnOpening learns ids from how the socket was opened. The caller holds the Socket's mu and mu, or is alone yet.
func (p *SocketPlay) learnOpening() {
	if p.named == p.rec || len(p.ids) == 0 {
		return
	}
	p.named = p.rec
	p.names.Learn(idsOf(p.book.classifier, p.book.request(p.rec)), p.ids, true)
}

// match finds the recorded message that one of the program is, scrubbed, and returns why there is none; "" where there is. The caller
// holds the Socket's mu.
func (p *SocketPlay) match(m *SocketMessage, b []byte) (why string) {
	now, surface := saying{key: messageKey{opcode: opcodeName(m.Opcode)}}, []byte(nil)
	if m.Lost == "" {
		now, surface = sayingOf(p.book.classifier, p.sock.url, now.key.opcode, b)
	}
	p.hear(&now)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	p.learnOpening()
	ids := func(e *socketEntry) []string { return p.book.said(p.rec.Socket, e).ids }
	i, ok := p.player.Find(now.key, len(now.ids), func(e *socketEntry) int { return p.names.Likeness(ids(e), now.ids) })
	if !ok {
		return p.nearest(now.key, surface)
	}
	p.names.Learn(ids(p.entries[i]), now.ids, true)
	p.player.Came(i)
	return ""
}

// hear tells the choice of the socket, where there is one, what the program says. The caller holds the Socket's mu.
func (p *SocketPlay) hear(now *saying) {
	if c := p.sock.choice; c != nil && !c.made {
		c.hear(now, &p.names)
	}
}

// bind gives the turn that was asked for its place. One that was not recorded here is said at once, in the place of the next one that was.
// The caller holds the Socket's mu.
func (p *SocketPlay) bind(asked *Recorded) {
	p.hear(turnSaying(asked.Key))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.follow()
	place, ok := p.player.FindFunc(func(e *socketEntry) bool { return e.turn == asked })
	if !ok {
		if place, ok = p.player.FindFunc(func(e *socketEntry) bool { return e.turn != nil }); ok {
			p.player.Said(p.answers(p.entries[place].turn)...) // never
		}
		for i := range asked.Exchange.Stream {
			p.player.Say(&socketEntry{from: FromServer, turn: asked, part: i, seq: asked.Seq})
		}
	}
	if ok {
		p.player.Came(place)
	}
}

// answers are the places of what the server says in a turn. The caller holds mu.
func (p *SocketPlay) answers(turn *Recorded) (places []int) {
	for i, e := range p.entries {
		if e.turn == turn && e.from == FromServer {
			places = append(places, i)
		}
	}
	return places
}

// nearest says what of the socket is most like a message that is not on it. The caller holds mu.
func (p *SocketPlay) nearest(key messageKey, surface []byte) string {
	var left []*socketEntry
	for _, e := range p.player.Missing {
		if e.message != nil {
			left = append(left, e)
		}
	}
	best, least, ok := lane.Nearest(left, func(e *socketEntry) ([]fidelity.Change, bool) {
		was, err := p.book.payload(e.message.Payload)
		if err != nil {
			return nil, false
		}
		_, was = sayingOf(p.book.classifier, p.sock.url, e.message.Opcode, was)
		changes := fidelity.DiffJSON(was, surface)
		if e.message.Opcode != key.opcode {
			changes = append(changes, change("opcode", e.message.Opcode, key.opcode))
		}
		return changes, true
	})
	if !ok {
		return fmt.Sprintf("the program sent nothing more on this socket while recording (%s)", nameOf(p.rec))
	}
	return fmt.Sprintf("nearest is record %d (lane %s), %s", best.seq, p.rec.Lane, lane.Differences(least, unlikeness))
}

// Next waits until the server does something, puts it on the tape and returns it; it is valid until the next call. After an end
// nothing follows. Errors: ctx's; one for a message that the tape names and does not hold, which the Book is told of
// (Damage); the recorder's.
func (p *SocketPlay) Next(ctx context.Context) (*SocketOut, error) {
	due, err := p.player.Next(ctx)
	if errors.Is(err, lane.ErrEnd) {
		return p.ending(ctx)
	}
	if err != nil {
		return nil, err
	}
	m, err := p.given(due.Value)
	return &SocketOut{Message: m}, err
}

// ending is how the socket ends, when that is due.
func (p *SocketPlay) ending(ctx context.Context) (*SocketOut, error) {
	p.mu.Lock()
	was, gone := p.rec.Socket, p.gone
	reply := p.reply()
	p.mu.Unlock()
	switch end := &was.end; {
	case gone:
		return &SocketOut{Close: reply}, nil
	case !was.ended:
		return &SocketOut{Reset: true}, nil
	case was.endsByProgram():
		return &SocketOut{Close: &CloseCode{Code: goingAway, Reason: tape.HeldOn}, HeldOn: true}, nil
	default:
		out := &SocketOut{Reset: end.Gone == FromServer && strings.Contains(end.Error, Reset)}
		if end.Code != Abnormal {
			out.Close = &CloseCode{Code: end.Code, Reason: end.Reason}
		}
		return out, lane.Pause(ctx, nil, time.Until(p.player.Paced(was.endMS)))
	}
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

// given is the message of an entry. It is on the tape then.
func (p *SocketPlay) given(e *socketEntry) (*SocketMessage, error) {
	m, err := p.recorded(e)
	if err != nil {
		p.mu.Lock()
		of := cmp.Or(e.turn, p.rec)
		p.mu.Unlock()
		p.book.Damage(of, err)
		return nil, fmt.Errorf("recorded message is damaged: %w", err)
	}
	if m.Opcode == TextMessage {
		p.mu.Lock()
		m.Payload = rename(p.book.classifier, &p.names, m.Payload)
		p.mu.Unlock()
	}
	if p.opts.Reveal != nil && m.Opcode != RawBytes {
		m.Payload = p.opts.Reveal(m.Payload)
	}
	p.sock.mu.Lock()
	defer p.sock.unlock()
	if e.turn != nil && e.turn.ownTurn && e.part == 0 {
		p.sock.own = e.turn
	}
	p.sock.giving = e
	err = p.sock.message(FromServer, m)
	p.sock.giving = nil
	return m, err
}

// recorded reads the message of an entry.
func (p *SocketPlay) recorded(e *socketEntry) (*SocketMessage, error) {
	turn := e.turn
	if turn == nil {
		b, err := p.book.whole(e.message.Payload)
		if why := textIn(e.message.Extra, lostKey); err != nil && why != "" {
			err = errors.Join(err, errors.New(why))
		}
		if err != nil {
			return nil, err
		}
		return &SocketMessage{
			Opcode: opcodeOf(e.message.Opcode), Payload: b, Cut: string(tape.FieldValue(e.message.Extra, cutKey)) == "true",
			Masked: string(tape.FieldValue(e.message.Extra, maskKey)) == "true",
		}, nil
	}
	if p.held != turn { // of the last one that was asked for they are in memory
		b, err := p.book.whole(turn.Exchange.Response)
		if err != nil {
			return nil, err
		}
		p.held, p.bytes = turn, b
	}
	b, c := p.bytes, turn.Exchange.Stream[e.part]
	if c.Offset < 0 || c.Length < 0 || c.Length > int64(len(b))-c.Offset {
		return nil, errors.New("its chunks do not fit its bytes")
	}
	return &SocketMessage{Opcode: turn.opcode, Payload: bytes.TrimSuffix(b[c.Offset:c.Offset+c.Length], []byte("\n"))}, nil
}
