package exchange

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Whole gives the body of a request that was passed on as it came, and how far it had come at each step of the answer: before its
// head, before each chunk, and before its end; nil where the whole request had come before the head, which is then one as any other.
func (o *Open) Whole(body []byte, after []int) {
	c := o.tap.clean(&Request{Method: o.request.Method, URL: o.request.URL, Header: o.request.Header, Body: body})
	id, err := o.tap.classifier.Classify(c.request)
	if err != nil {
		o.err = errors.Join(o.err, err)
		return
	}
	o.request, o.exchange.RequestDigest = c.request, id.Key.Request
	if o.taken != nil && o.exchange.Lane != Unmatched && o.sameCall(o.book.body(o.taken), c.request.Body) {
		o.exchange.RequestDigest = o.taken.Exchange.RequestDigest
	}
	if o.tap.rec == nil {
		return
	}
	o.unkept = c.stored
	o.keepRequest()
	if len(after) > 0 {
		list, _ := json.Marshal(after) // numbers always have a JSON form
		o.extra = append(o.extra, tape.Field{Name: keyAfter, Value: list})
	}
}

// sameCall reports whether the whole messages of two requests are equal after masks. What else had come of a call when it was cut is a
// matter of moments.
func (o *Open) sameCall(was, now []byte) bool {
	var digests [2]cas.Digest
	for i, body := range [][]byte{was, now} {
		rest := body
		for m := FirstMessage(rest); m != nil; m = FirstMessage(rest) {
			rest = rest[len(m):]
		}
		c := o.tap.clean(&Request{Method: o.request.Method, URL: o.request.URL, Header: o.request.Header, Body: body[:len(body)-len(rest)]})
		id, err := o.tap.classifier.Classify(c.request)
		if err != nil {
			return false
		}
		digests[i] = id.Key.Request
	}
	return digests[0] == digests[1]
}

// Recorded is what answers the request; nil for nothing, and before Take.
func (o *Open) Recorded() *Recorded { return o.taken }

// Opened makes the request, which asked for a WebSocket (Key.Socket), one that got it: h is the header of the answer 101. The record
// of that is with the kernel when it returns, and End has nothing left to do. Closed must follow. On a replay Take stands before it.
// The error is the recorder's, which has then ended.
func (o *Open) Opened(h http.Header) (*Socket, error) {
	if !o.key.Socket || o.ended {
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
	o.Begins()
	s := &Socket{
		tap: o.tap, connection: o.exchange.Arrival, opener: o.opener, lane: o.exchange.Lane, url: socketURL(o.exchange.URL),
		headers: o.exchange.RequestHeaders, start: o.start, open: make(map[uint64]*socketTurn), choice: o.choice,
	}
	if o.choice == nil {
		s.became = o.taken
	}
	s.turns = o.tap.classifier.Sockets(&Request{Method: o.exchange.Method, URL: s.url, Header: o.request.Header})
	return s, errors.Join(o.err, s.recordOpen(headerFields(o.tap.scrubber, h), o.asker()))
}

// asker is the key that says which MCP server asked; none where the program did.
func (o *Open) asker() []tape.Field {
	return slices.DeleteFunc(slices.Clone(o.extra), func(f tape.Field) bool { return f.Name != tape.ConversationKey })
}

// Play plays the socket that Take found to the program, on the tape of s, which Opened gave. Of opts count Speed, Reveal (of each message
// of the server) and Patience (of the end of a socket that the program had ended).
func (o *Open) Play(s *Socket, opts *AnswerOptions, b *Book) *SocketPlay {
	p := &SocketPlay{sock: s, book: b, choice: o.choice}
	if opts != nil {
		p.opts = *opts
	}
	p.ids = idsOf(b.classifier, o.request)
	p.mu.Lock() // from when the choice has it others may change what it is
	b.mu.Lock()
	if p.rec = o.taken; o.choice != nil {
		o.choice.play, p.rec, p.changes = p, o.choice.rec, o.choice.times
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

// keyAfter is the key of a record whose request was still coming when its answer began: a list of integers, how many of its messages
// had come, and one more once it had ended, before the head of the answer, before each chunk of "stream", and before its end.
const keyAfter = "answered_after"

// messageHead is the length in bytes of what stands before each message of gRPC: a flag, and the message's length in four bytes.
const messageHead = 5

// FirstMessage returns the first message of b, which are gRPC's, with its head; nil where b does not hold all of it.
func FirstMessage(b []byte) []byte {
	if len(b) < messageHead {
		return nil
	}
	if size := int64(binary.BigEndian.Uint32(b[1:])) + messageHead; size <= int64(len(b)) {
		return b[:size]
	}
	return nil
}

// A Call is how much of a recorded gRPC call had come when its answer ended.
type Call struct {
	Steps int  // how many messages, and one more for their end
	Ended bool // their end had
}

// streamKey names what calls of one method have in common.
type streamKey struct{ method, url string }

// A method is what the tape holds of the calls of one method.
type method struct {
	streams  bool // some were answered while they still came
	eager    bool // one before its first message
	patience time.Duration
}

// afterOf reads the further key of a record that tells how its request came; nil for none, and for one that tells nothing.
func afterOf(extra []tape.Field) []int {
	var after []int
	raw := tape.FieldValue(extra, keyAfter)
	if raw == nil || json.Unmarshal(raw, &after) != nil || len(after) < 2 {
		return nil
	}
	for i := range after {
		if after[i] < 0 || i > 0 && after[i] < after[i-1] {
			return nil
		}
	}
	return after
}

// streamReset is the error of a stream of HTTP/2 that was reset, which net/http gives to whoever asks for one of its shape
// (errors.As).
type streamReset struct {
	StreamID uint32
	Code     resetCode
	Cause    error
}

type resetCode uint32

// resetCodes are the error codes of HTTP/2 (RFC 9113, 7), by their number.
var resetCodes = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED", "FRAME_SIZE_ERROR",
	"REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// Error implements error.
func (e streamReset) Error() string { return StreamReset + e.code() }

func (e streamReset) code() string {
	if int(e.Code) < len(resetCodes) {
		return resetCodes[e.Code]
	}
	return strconv.FormatUint(uint64(e.Code), 10)
}
