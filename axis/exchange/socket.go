package exchange

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// A SocketMessage is one message of a WebSocket, decoded.
type SocketMessage struct {
	Opcode  int    // TextMessage, BinaryMessage, or RawBytes
	Payload []byte // valid during a call alone
	// Lost says why the payload is not there; "" where it is.
	Lost string
	// Cut says that the connection ended in the middle of the message.
	Cut bool
	// Masked says that its frames were masked: of a program they have to be, of a server they must not.
	Masked bool
}

// RawBytes is the opcode of a SocketMessage that holds bytes which are no frame: whoever sent them broke the protocol.
const RawBytes = -1

// A SocketEnd is how a socket ended.
type SocketEnd struct {
	First  Side       // who sent the first close frame
	Code   int        // of it; NoStatus where it had none, Abnormal where there was no close frame
	Reason string     // of it
	Answer *CloseCode // the other side's close frame; nil for none
	Error  string     // how the connection ended where that was no side's decision, and what of the protocol was broken; "" for nothing
	Gone   Side       // who ended the connection
	At     uint64     // the ordinal of the first close frame; see Ordinal
}

// A CloseCode is what stands in a close frame.
type CloseCode struct {
	Code   int
	Reason string
}

// Codes that stand in no close frame (RFC 6455, 7.4.1).
const (
	NoStatus = 1005 // a close frame had none
	Abnormal = 1006 // there was no close frame
)

// A Socket puts the messages of one WebSocket on the tape. Its methods may be called by several goroutines at once: what was first
// is the order of the tape.
type Socket struct {
	tap        *Tap
	connection uint64
	lane       string
	url        string
	headers    []tape.HeaderField // of the request
	start      time.Time

	mu     sync.Mutex // guards what follows
	turns  Turns      // nil for none
	open   map[uint64]*socketTurn
	line   []byte // memory of a message of a turn
	closed bool
	told   uint64 // how many messages of the server that are of no turn have been told of (TapOptions.Answered)

	play    *SocketPlay    // on a replay
	choice  *choice        // there, while it is not known which recorded socket this is; nil else
	held    []heldRecord   // there, until that is known
	became  *Recorded      // there, when that is known
	giving  *socketEntry   // there, while it is said again
	refusal *SocketRefusal // of the program's last message there
	own     *Recorded      // the turn that the server begins with its next message there
}

// Opened makes the request, which asked for a WebSocket (Key.Socket), one that got it: h is the header of the answer 101. The record
// of that is with the kernel when it returns, and End has nothing left to do. Closed must follow. On a replay Take stands before it.
// The error is the recorder's, which has then ended.
func (o *Open) Opened(h http.Header) (*Socket, error) {
	if !o.identity.Key.Socket || o.ended {
		return nil, errors.New("opened: not a request for a socket, or one that has ended")
	}
	o.ended = true
	o.keepRequest()
	if o.given != "" {
		o.tap.opts.Lanes.Done(o.given, false)
	}
	if o.taken == nil {
		o.exchange.Lane = o.tap.opts.Lanes.Socket(o.exchange.URL)
	}
	o.answers()
	s := &Socket{
		tap: o.tap, connection: o.exchange.Arrival, lane: o.exchange.Lane, url: socketURL(o.exchange.URL),
		headers: o.exchange.RequestHeaders, start: o.start, open: make(map[uint64]*socketTurn), choice: o.choice,
	}
	if o.choice == nil {
		s.became = o.taken
	}
	if c, ok := o.tap.classifier.(SocketClassifier); ok {
		s.turns = c.Sockets(&Request{Method: o.exchange.Method, URL: s.url, Header: o.request.Header})
	}
	return s, errors.Join(o.err, s.recordOpen(headerFields(o.tap.scrubber, h), o.asker()))
}

// asker is the key that says which MCP server asked; none where the program did.
func (o *Open) asker() []tape.Field {
	return slices.DeleteFunc(slices.Clone(o.extra), func(f tape.Field) bool { return f.Name != tape.ConversationKey })
}

// socketURL is the URL of a socket whose request was for an http or https URL; httpURL undoes it.
func socketURL(u string) string {
	if rest, ok := strings.CutPrefix(u, "http"); ok {
		return "ws" + rest
	}
	return u
}

func httpURL(u string) string {
	if rest, ok := strings.CutPrefix(u, "ws"); ok {
		return "http" + rest
	}
	return u
}

// recordOpen puts the beginning on the tape.
func (s *Socket) recordOpen(answer []tape.HeaderField, asker []tape.Field) error {
	if s.tap.rec == nil {
		return nil
	}
	k := &tape.WSOpen{URL: s.url, Lane: s.lane, Arrival: s.connection, Status: http.StatusSwitchingProtocols, Extra: asker}
	var raw []tape.RawBytes
	k.RequestHeaders, raw = safeFields(rawRequest, s.headers, raw)
	k.ResponseHeaders, raw = safeFields(rawResponse, answer, raw)
	if err := s.put(k, raw); err != nil {
		return err
	}
	return s.tap.rec.Flush()
}

// Connection is the number of the socket on its tape: the arrival of its request.
func (s *Socket) Connection() uint64 { return s.connection }

// Ordinal is the next place in the order of the tape, for what is written later.
func (s *Socket) Ordinal() uint64 { return s.tap.rec.Ordinal() }

// Flush is the barrier of the messages before it: their records are with the kernel when it returns. What passes to the program
// waits for it.
func (s *Socket) Flush() error { return s.tap.rec.Flush() }

// Message puts a message on the tape, before its last byte is passed on. It is not flushed. An error is the recorder's, which has
// then ended; the message should not pass.
func (s *Socket) Message(from Side, m *SocketMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.tap.rec.Err(); err != nil {
		return err
	}
	_, err := s.message(from, m)
	return err
}

// Closed ends the socket: turns that are under way are cut, and its record and all before it are with the kernel when it returns.
// A second one does nothing. The error is the recorder's.
func (s *Socket) Closed(e *SocketEnd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := errors.Join(s.settle(), s.cutTurns(e))
	if s.tap.rec == nil {
		return err
	}
	return errors.Join(err, s.tap.rec.Record(s.closeRecord(e)), s.tap.rec.Flush())
}
