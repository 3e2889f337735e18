package exchange

import (
	"errors"
	"net/http"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A socketTurn is a turn under way.
type socketTurn struct {
	open   *Open
	opcode int // of the server's messages; 0 before the first
	count  int // of these
}

// message records a message where it belongs. The caller holds mu.
func (s *Socket) message(from Side, m *SocketMessage) error {
	turn := s.turnOf(from, m)
	switch {
	case turn.Part == TurnBegins && from == FromProgram:
		if t, err := s.begin(from, &turn); t != nil || err != nil {
			return err
		}
	case from == FromServer && turn.Part != TurnOutside:
		return s.answer(m, &turn)
	}
	return s.record(from, m)
}

// turnOf asks what a message is to a turn. One that was not kept whole is none.
func (s *Socket) turnOf(from Side, m *SocketMessage) (turn Turn) {
	if s.turns == nil || m.Lost != "" || m.Cut || m.Opcode == RawBytes || m.Masked != (from == FromProgram) {
		return turn
	}
	if from == FromProgram {
		return s.turns.Client(m.Opcode, m.Payload)
	}
	return s.turns.Server(m.Opcode, m.Payload)
}

// begin begins a turn; nil where its request cannot be classified, so that it is none.
func (s *Socket) begin(from Side, turn *Turn) (*socketTurn, error) {
	if turn.Request == nil {
		return nil, nil
	}
	if was := s.open[turn.Of]; was != nil {
		delete(s.open, turn.Of)
		if err := was.open.End(NoAnswer); err != nil {
			return nil, err
		}
	}
	o, err := s.beginOpen(turn.Request)
	if err != nil || o == nil {
		return nil, err
	}
	t := &socketTurn{open: o}
	taken := s.play == nil || s.take(o, from)
	if err := s.settle(); err != nil {
		return t, err
	}
	o.extra = append(o.extra, tape.NumberField(placeKey, s.tap.rec.Ordinal())...)
	if from == FromServer {
		o.extra = append(o.extra, bare.TextField(begunKey, sides[from]))
	}
	if !taken {
		return t, s.refuse(t, turn)
	}
	s.open[turn.Of] = t
	return t, nil
}

// take finds the recorded turn that one of a replay is.
func (s *Socket) take(o *Open, from Side) bool {
	rec, ok := o.Take(s.play.book)
	if own := s.own; from == FromServer && own != nil {
		if s.own = nil; !ok {
			rec, ok = own, o.takeThis(s.play.book, own)
		}
	}
	if ok && from == FromProgram {
		s.play.bind(rec)
	}
	return ok
}

// refuse says that a turn is on no tape.
func (s *Socket) refuse(t *socketTurn, turn *Turn) error {
	_, why := s.play.book.Nearest(t.open.Identity(), t.open.request)
	t.open.Refuse(why)
	s.refusal = &SocketRefusal{Why: why}
	if turn.Refuse != nil {
		s.refusal.Message = turn.Refuse(Refusal(t.open.request, why))
	}
	if s.refusal.Message == nil {
		return t.open.End("")
	}
	s.turns.Server(TextMessage, s.refusal.Message)
	err := t.first(TextMessage)
	if err == nil {
		err = t.open.Chunk(append(s.refusal.Message, '\n'))
	}
	return errors.Join(err, t.open.End(""))
}

// beginOpen begins the exchange that a turn is.
func (s *Socket) beginOpen(r *Request) (*Open, error) {
	tap := s.tap
	o := &Open{tap: tap, start: time.Now()}
	if !tap.opts.Replay {
		o.arrive()
	}
	c := tap.clean(r)
	id, err := tap.classifier.Classify(c.request)
	if err != nil {
		return nil, nil //nolint:nilerr // a message like any other
	}
	if tap.opts.Asked != nil {
		if err := tap.opts.Asked(r, id.Key); err != nil {
			return nil, err
		}
	}
	if id.Key.Kind != LLM {
		return nil, nil
	}
	id.Key.Socket = true
	o.connection = s.connection
	o.key, o.identity, o.request, o.named = id.Key, id, c.request, c.named
	x := &o.exchange
	x.Method, x.URL, x.RequestHeaders, x.RequestDigest = http.MethodGet, s.url, s.headers, id.Key.Request
	if tap.rec != nil {
		o.unkept = c.request.Body
	}
	if !tap.opts.Replay {
		o.live()
	}
	return o, o.err
}

// answer records a server's message of a turn.
func (s *Socket) answer(m *SocketMessage, turn *Turn) error {
	t := s.open[turn.Of]
	if turn.Part == TurnBegins || turn.Part == TurnWhole {
		var err error
		if t, err = s.begin(FromServer, turn); err != nil {
			return err
		}
	}
	if t == nil || t.opcode != 0 && t.opcode != m.Opcode || t.count >= maxChunks {
		return s.record(FromServer, m)
	}
	if t.opcode == 0 {
		if err := t.first(m.Opcode); err != nil {
			return err
		}
	}
	t.count++
	s.line = append(append(s.line[:0], m.Payload...), '\n')
	err := t.open.Chunk(s.line)
	if cap(s.line) > maxLine {
		s.line = nil
	}
	if err == nil && (turn.Part == TurnEnds || turn.Part == TurnWhole) {
		delete(s.open, turn.Of)
		err = t.open.End("")
	}
	return err
}

// maxLine is the longest memory, in bytes, that is held for the next message of a turn.
const maxLine = 1 << 20

// lines is the Content-Type of the messages of a turn, as they are stored.
const lines = "application/x-ndjson"

// first begins the answer of a turn.
func (t *socketTurn) first(opcode int) error {
	t.opcode = opcode
	if opcode != TextMessage {
		t.open.opcode = opcodeName(opcode)
	}
	return t.open.Response(http.StatusSwitchingProtocols, http.Header{"Content-Type": {lines}})
}

// cutTurns ends what is under way. The caller holds mu.
func (s *Socket) cutTurns(e *SocketEnd) (err error) {
	why := CutShort
	if e.Gone == FromProgram && (e.Code == Abnormal || e.First == FromProgram) {
		why = tape.Cancelled
	}
	for of, t := range s.open {
		delete(s.open, of)
		if t.opcode == 0 && why == CutShort {
			why = NoAnswer
		}
		if end := t.open.End(why); err == nil {
			err = end
		}
	}
	return err
}

// A Side is one end of a socket.
type Side uint8

// The sides of a socket.
const (
	FromProgram Side = iota
	FromServer
)

// The opcodes of messages (RFC 6455, 5.2).
const (
	TextMessage   = wsframe.Text
	BinaryMessage = wsframe.Binary
)

// A TurnPart says what a message of a socket is to a conversation with a model.
type TurnPart uint8

// The parts of a turn.
const (
	TurnOutside TurnPart = iota // no part of a turn: it stands on the tape by itself
	TurnBegins                  // it begins a turn
	TurnWithin                  // it belongs to one that has begun
	TurnEnds                    // the same, and ends it
	TurnWhole                   // of a server: it begins a turn and ends it
)

// A Turn is what Turns says of one message.
//
// A turn is one call of a model. Its request is what the program's message that began it asks (Request), its answer the server's
// messages of it: they stand in its llm_call alone. What the program sends within one stands on the tape by itself, as what is
// outside does. A turn that has not ended when the socket does is cut there.
type Turn struct {
	Part TurnPart
	// Of tells turns of one socket apart that are under way together, by any number; one may be used again when its turn has ended.
	Of uint64
	// Request, of TurnBegins and TurnWhole, is what the turn would have asked by HTTP: it is classified, its key is what a replay finds
	// the turn by, and its body is what the tape holds, so that who reads a tape needs no other record for it. Its body need not be
	// what was sent, for a message may mean what stood in those before it. It has not been scrubbed.
	Request *Request
	// Refuse makes, of TurnBegins by a program whose turn is on no tape, the text message that says so to it; the socket goes on. Nil
	// closes it.
	Refuse func(message string) []byte
}

// Turns follows the messages of one socket, in the order in which they pass. What it is given is what passed, with its secrets
// while recording, and it keeps none of it: a payload is valid until it returns. It is used by one goroutine at a time.
type Turns interface {
	Client(opcode int, payload []byte) Turn // a message that the program sent
	Server(opcode int, payload []byte) Turn // one that it received
}
