package exchange

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
	"github.com/tapedeck-dev/tapedeck/tape"
)

type (
	// A SocketMessage is one message of a WebSocket, decoded. Its Opcode is TextMessage, BinaryMessage, or RawBytes, and its Payload is valid
	// during a call alone.
	SocketMessage = wsframe.Data
	// A CloseCode is what stands in a close frame.
	CloseCode = wsframe.CloseCode
)

// RawBytes is the opcode of a SocketMessage that holds bytes which are no frame: whoever sent them broke the protocol.
const RawBytes = -1

// A SocketEnd is how a socket ended.
type SocketEnd struct {
	First  Side       // who sent the first close frame
	Code   int        // of it; wsframe.NoStatus where it had none, Abnormal where there was no close frame
	Reason string     // of it
	Answer *CloseCode // the other side's close frame; nil for none
	Error  string     // how the connection ended where that was no side's decision, and what of the protocol was broken; "" for nothing
	Gone   Side       // who ended the connection
	At     uint64     // the ordinal of the first close frame; see Ordinal
}

// Abnormal is the code of a socket without a close frame (RFC 6455, 7.4.1).
const Abnormal = 1006

// A Socket puts the messages of one WebSocket on the tape. Its methods may be called by several goroutines at once: what was first
// is the order of the tape.
type Socket struct {
	tap        *Tap
	connection uint64
	opener     uint64 // see Request
	lane       string
	url        string
	headers    []tape.HeaderField // of the request

	mu     sync.Mutex // guards what follows
	turns  Turns      // nil for none
	open   map[uint64]*socketTurn
	line   []byte // memory of a message of a turn
	closed bool
	told   uint64 // how many messages of the server that are of no turn have been told of (TapOptions.Answered)
	tell   func() // tells of the last of them; nil where that has been done

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
	if !o.key.Socket || o.ended {
		return nil, errors.New("opened: not a request for a socket, or one that has ended")
	}
	o.ended = true
	o.keepRequest()
	if o.given != "" {
		o.tap.lanes.Done(o.given, false)
	}
	if o.taken == nil {
		o.exchange.Lane = o.tap.lanes.Socket(o.exchange.URL)
	}
	o.answers()
	o.Begins()
	s := &Socket{
		tap: o.tap, connection: o.exchange.Arrival, opener: o.opener, lane: o.exchange.Lane, url: socketURL(o.exchange.URL),
		headers: o.exchange.RequestHeaders, open: make(map[uint64]*socketTurn), choice: o.choice,
	}
	if o.choice == nil {
		s.became = o.taken
	}
	s.turns = o.tap.classifier.Sockets(&Request{Method: o.exchange.Method, URL: s.url, Header: o.request.Header})
	answer := headerFields(o.tap.scrubber, h)
	if s.tap.rec == nil {
		return s, o.err
	}
	k := &tape.WSOpen{
		URL: s.url, Lane: s.lane, Arrival: s.connection, Status: http.StatusSwitchingProtocols,
		Extra: slices.DeleteFunc(slices.Clone(o.extra), func(f tape.Field) bool { return f.Name != tape.ConversationKey }), // which MCP server asked
	}
	var raw []tape.RawBytes
	k.RequestHeaders, raw = safeFields(rawRequest, s.headers, raw)
	k.ResponseHeaders, raw = safeFields(rawResponse, answer, raw)
	return s, cmp.Or(o.err, s.put(k, raw), o.tap.rec.Flush())
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

// Ordinal is the next place in the order of the tape, for what is written later.
func (s *Socket) Ordinal() uint64 { return s.tap.rec.Ordinal() }

// Flush is the barrier of the messages before it: their records are with the kernel when it returns. What passes to the program
// waits for it.
func (s *Socket) Flush() error { return s.tap.rec.Flush() }

// Message puts a message on the tape, before its last byte is passed on. It is not flushed. An error is the recorder's, which has
// then ended; the message should not pass.
func (s *Socket) Message(from Side, m *SocketMessage) error {
	s.mu.Lock()
	defer s.unlock()
	if err := s.tap.rec.Err(); err != nil {
		return err
	}
	return s.message(from, m)
}

// unlock lets go of mu, and tells of what was answered by a message before that passes: who is told may wait, and the program goes on.
func (s *Socket) unlock() {
	tell := s.tell
	s.tell = nil
	s.mu.Unlock()
	if tell != nil {
		tell()
	}
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

// A heldRecord waits until it is known which lane it stands in.
type heldRecord struct {
	kind  tape.Kind
	raw   []tape.RawBytes
	entry *socketEntry // that it is said again; nil for none
}

// put puts a record on the tape, or has it wait. The caller holds mu, or is alone yet.
func (s *Socket) put(k tape.Kind, raw []tape.RawBytes) error {
	h := heldRecord{k, raw, s.giving}
	if s.choice != nil && !s.choice.made && len(s.held) < maxUndecided {
		s.held = append(s.held, h)
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	return s.write(&h)
}

// settle ends a choice, and puts on the tape what has waited for it. The caller holds mu.
func (s *Socket) settle() error {
	c := s.choice
	if c == nil {
		return nil
	}
	s.choice = nil
	c.decide()
	s.became = c.rec
	held := s.held
	s.held = nil
	for i := range held {
		if err := s.write(&held[i]); err != nil {
			return err
		}
	}
	return nil
}

// write writes a record in the lane of what the socket has become. What was said on another socket while recording says where it stands.
func (s *Socket) write(h *heldRecord) error {
	if s.became != nil {
		switch k := h.kind.(type) {
		case *tape.WSOpen:
			k.Lane = s.became.Lane
		case *tape.WSMessage:
			if h.entry != nil && h.entry.on != nil && h.entry.on != s.became.Socket {
				k.Extra = append(k.Extra, tape.NumberField(tape.ElsewhereKey, h.entry.seq)...)
			}
		}
	}
	return s.tap.rec.RecordRaw(h.kind, h.raw)
}

// The keys that are added to the records of sockets.
const (
	placeKey     = tape.PlaceKey // of an exchange: the ordinal at which its request came, or the message that began it; of ws_close: of the first close frame, or of the end
	begunKey     = "begun_by"    // of an llm_call: "server" where no message of the program began it
	lostKey      = "payload_lost"
	cutKey       = "cut"     // of ws_message: true where the connection ended in the middle of it
	maskKey      = "masked"  // of ws_message: whether its frames were masked, where they must not be as they were
	refusedKey   = "refused" // of ws_message, on the tape of a replay: why nothing recorded fits it
	directionKey = "direction"
	answerKey    = "answer" // of ws_close: [code, reason] of the other side's close frame
	errorKey     = "error"
	goneKey      = "gone" // of ws_close: who ended the connection, "program" or "server"
)

// directions are those of ws_message, by who sent it.
var directions = [...]string{FromProgram: "sent", FromServer: "received"}

// sides are the names of the sides.
var sides = [...]string{FromProgram: "program", FromServer: "server"}

// opcodeName is how a record names an opcode.
func opcodeName(opcode int) string {
	switch opcode {
	case TextMessage:
		return "text"
	case BinaryMessage:
		return "binary"
	}
	return "raw"
}

// opcodeOf undoes opcodeName; what no opcode has that name is text.
func opcodeOf(name string) int {
	switch name {
	case "binary":
		return BinaryMessage
	case "raw":
		return RawBytes
	}
	return TextMessage
}

// numberIn returns the number of a field; 0 for none.
func numberIn(fields []tape.Field, name string) uint64 {
	n, _ := tape.FieldNumber(fields, name)
	return n
}

// textIn returns the text of a field; "" for none.
func textIn(fields []tape.Field, name string) (text string) {
	if raw := tape.FieldValue(fields, name); raw != nil {
		_ = json.Unmarshal(raw, &text) // what is no text is none
	}
	return text
}

// record puts a message on the tape that belongs to no turn. On a replay one of the program is looked for in what was recorded.
func (s *Socket) record(from Side, m *SocketMessage) error {
	if from == FromServer {
		s.answers()
	}
	var clean []byte
	if m.Lost == "" && (s.tap.rec != nil || s.play != nil) {
		clean = s.clean(from, m.Payload)
	}
	var extra []tape.Field
	if s.play != nil && from == FromProgram {
		if why := s.play.match(m, clean); why != "" {
			why = s.tap.scrubber.String(why)
			s.refusal = &SocketRefusal{Why: why}
			extra = append(extra, bare.TextField(refusedKey, why))
		}
	}
	if s.tap.rec == nil {
		return nil
	}
	k := &tape.WSMessage{Connection: s.connection, Direction: directions[from], Opcode: opcodeName(m.Opcode), Extra: append(extra, s.extras(from, m)...)}
	if m.Lost == "" {
		p, err := s.tap.rec.Borrow(clean)
		if err != nil {
			return err
		}
		k.Payload = p
	}
	return s.put(k, nil)
}

// answers has unlock tell whoever wants to know of exchanges that are answered of a message of the server, which is told as an answer: its number
// is made of that of the socket and which one it is there. Of a socket that says very much the first ones are told.
func (s *Socket) answers() {
	const message, most = 1 << 40, 16 // no exchange arrives as late; bits
	told := s.tap.opts.Answered
	if told == nil || s.told == 1<<most-1 {
		return
	}
	s.told++
	numberOf := func(arrival uint64) uint64 { return message + arrival<<most + s.told }
	arrival, recorded := numberOf(s.connection), uint64(0)
	if s.became != nil {
		recorded = numberOf(s.became.Arrival)
	}
	s.tell = func() {
		begins, _ := told(s.opener, arrival, recorded)
		begins()
	}
}

// extras are the further keys of a message.
func (s *Socket) extras(from Side, m *SocketMessage) (extra []tape.Field) {
	if m.Lost != "" {
		extra = append(extra, bare.TextField(lostKey, s.tap.scrubber.String(m.Lost)))
	}
	if m.Cut {
		extra = append(extra, tape.Field{Name: cutKey, Value: []byte("true")})
	}
	if m.Opcode != RawBytes && m.Masked != (from == FromProgram) {
		extra = append(extra, tape.Field{Name: maskKey, Value: strconv.AppendBool(nil, m.Masked)})
	}
	return extra
}

// clean scrubs a message. What its names give away is learnt first.
func (s *Socket) clean(from Side, b []byte) []byte {
	t := s.tap
	t.naming.RLock()
	defer t.naming.RUnlock()
	var named []scrub.Named
	if from == FromProgram {
		named = t.scrubber.Named("", b)
	} else {
		named = t.scrubber.NamedInAnswer("", b)
	}
	if len(named) > 0 {
		_, over := t.scrubber.LearnAll(named)
		b = t.scrubber.HideAt(b, over)
	}
	b, _ = t.scrubber.LearnBytes(b)
	return b
}

// closeRecord is the end of the socket.
func (s *Socket) closeRecord(e *SocketEnd) *tape.WSClose {
	k := &tape.WSClose{Connection: s.connection, Code: e.Code, Reason: s.tap.scrubber.String(strings.ToValidUTF8(e.Reason, "\uFFFD"))}
	if e.Code != Abnormal {
		k.Extra = append(append(k.Extra, bare.TextField(directionKey, directions[e.First])), tape.NumberField(placeKey, e.At)...)
	}
	if e.Answer != nil {
		answer := []any{e.Answer.Code, s.tap.scrubber.String(strings.ToValidUTF8(e.Answer.Reason, "\uFFFD"))}
		k.Extra = append(k.Extra, tape.Field{Name: answerKey, Value: jsonscan.MustMarshal(answer)})
	}
	if e.Answer == nil { // else both had said that they end, and who hangs up first says nothing
		k.Extra = append(k.Extra, bare.TextField(goneKey, sides[e.Gone]))
	}
	if e.Error != "" {
		k.Extra = append(k.Extra, bare.TextField(errorKey, s.tap.scrubber.String(e.Error)))
	}
	return k
}

// protocolField is where a request for a WebSocket names subprotocols. Browsers let a page set no other field, so keys travel in it:
// "openai-insecure-api-key.KEY", "base64url.bearer.authorization.k8s.io.TOKEN", "access_token, TOKEN".
const protocolField = "Sec-Websocket-Protocol"

// withoutKeys is a request for a WebSocket whose subprotocols hold no secrets any more. Those that did are known from then on.
func withoutKeys(s *scrub.Scrubber, r *Request) *Request {
	given, ok := r.Header[protocolField]
	if !ok {
		return r
	}
	out := *r
	out.Header = r.Header.Clone()
	var hidden []string
	for _, list := range given {
		items, before := strings.Split(list, ","), "" // what the item before said of this one
		for i, item := range items {
			name := strings.TrimSpace(item)
			blanks := item[:len(item)-len(strings.TrimLeft(item, " \t"))]
			items[i] = blanks + name
			if prefix, value := keyIn(name); value != "" {
				items[i] = blanks + prefix + "." + hideValue(s, prefix, value)
			} else if before != "" {
				items[i] = blanks + hideValue(s, before, name)
			}
			if before = ""; saysKey(name) {
				before = name
			}
		}
		hidden = append(hidden, strings.Join(items, ","))
	}
	out.Header[protocolField] = hidden
	return &out
}

// keyIn parts a subprotocol into what says that a secret follows, and that; both are "" where none says so.
func keyIn(protocol string) (prefix, value string) {
	for i := range len(protocol) {
		if protocol[i] == '.' && i+1 < len(protocol) && saysKey(protocol[:i]) {
			return protocol[:i], protocol[i+1:]
		}
	}
	return "", ""
}

// saysKey reports whether a name says that a secret follows it.
func saysKey(name string) bool {
	if names.SaySecret(name) {
		return true
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '.' || r == '-' || r == '_' })
	if len(words) == 0 {
		return false
	}
	switch words[len(words)-1] {
	case "bearer", "authorization", "auth", "jwt":
		return true
	}
	return false
}

// hideValue is the placeholder of a secret, which is known from then on.
func hideValue(s *scrub.Scrubber, name, value string) string {
	field := http.CanonicalHeaderKey(strings.ReplaceAll(name, ".", "-") + "-key")
	s.LearnHeader(http.Header{field: {value}})
	return s.Header(field, value)
}
