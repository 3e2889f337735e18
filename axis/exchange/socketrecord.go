package exchange

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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

// number returns a field that is a number.
func number(name string, n uint64) tape.Field {
	return tape.Field{Name: name, Value: strconv.AppendUint(nil, n, 10)}
}

// numberIn returns the number of a field; 0 for none.
func numberIn(fields []tape.Field, name string) uint64 {
	n, _ := strconv.ParseUint(string(tape.FieldValue(fields, name)), 10, 64)
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
			extra = append(extra, field(refusedKey, why))
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

// answers tells whoever wants to know of exchanges that are answered of a message of the server, which is told as an answer: its number
// is made of that of the socket and which one it is there. Of a socket that says very much the first ones are told.
func (s *Socket) answers() {
	const message, most = 1 << 40, 16 // no exchange arrives as late; bits
	told := s.tap.opts.Answered
	if told == nil || s.told == 1<<most-1 {
		return
	}
	s.told++
	number := func(arrival uint64) uint64 { return message + arrival<<most + s.told }
	recorded := uint64(0)
	if s.became != nil {
		recorded = number(s.became.Arrival)
	}
	told(number(s.connection), recorded)
}

// extras are the further keys of a message.
func (s *Socket) extras(from Side, m *SocketMessage) (extra []tape.Field) {
	if m.Lost != "" {
		extra = append(extra, field(lostKey, s.tap.scrubber.String(m.Lost)))
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
		k.Extra = append(k.Extra, field(directionKey, directions[e.First]), number(placeKey, e.At))
	}
	if e.Answer != nil {
		answer := append(strconv.AppendInt([]byte{'['}, int64(e.Answer.Code), 10), ',')
		answer = append(answer, quote(s.tap.scrubber.String(strings.ToValidUTF8(e.Answer.Reason, "\uFFFD")))...)
		k.Extra = append(k.Extra, tape.Field{Name: answerKey, Value: append(answer, ']')})
	}
	if e.Answer == nil { // else both had said that they end, and who hangs up first says nothing
		k.Extra = append(k.Extra, field(goneKey, sides[e.Gone]))
	}
	if e.Error != "" {
		k.Extra = append(k.Extra, field(errorKey, s.tap.scrubber.String(e.Error)))
	}
	return k
}
