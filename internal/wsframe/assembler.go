package wsframe

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// NoStatus is the code of a close frame that holds none (RFC 6455, 7.4.1).
const NoStatus = 1005

// DefaultLimit is the longest message that is kept, in bytes, unless Options.Limit says otherwise: 64 MiB.
const DefaultLimit = 64 << 20

// maxIdle is the longest memory, in bytes, that is held between messages.
const maxIdle = 64 << 10

// A Kind says what an Event tells.
type Kind uint8

// The kinds of event.
const (
	Message Kind = iota // a whole message, or with Cut what came of one
	Control             // a ping or a pong
	Closing             // a close frame
	Broken              // what no frame may be; nothing is told after it
)

// Data is what a message holds, decoded.
type Data struct {
	Opcode  int // Text or Binary
	Payload []byte
	Lost    string // why the payload is not there; "" where it is
	Cut     bool   // the connection ended in the middle of the message
	Masked  bool   // its frames were masked: of a client they have to be, of a server they must not
}

// A CloseCode is what stands in a close frame.
type CloseCode struct {
	Code   int
	Reason string
}

// An Event is what an Assembler found. It and its Payload are valid until the Assembler is used again.
type Event struct {
	Kind      Kind
	Data             // of Control Ping or Pong; of Broken the frame's header, or all of the frame where it is the payload that is wrong
	CloseCode        // of Closing
	Why       string // of Broken
	End       int    // how many bytes of what was fed last belong to it or came before it
}

// Options say how an Assembler works. Nil and zero work.
type Options struct {
	Limit   int64 // bytes of a message; 0 is DefaultLimit
	Deflate bool  // permessage-deflate was agreed on
	Fresh   bool  // with it, that no message refers to one before
}

// An Assembler finds the messages in the bytes of one direction of a connection.
type Assembler struct {
	limit   int64
	deflate *inflater // nil where none was agreed on
	blind   bool      // what was inflated last is not known, so what refers to it cannot be read
	deaf    bool

	head  [maxHeader]byte
	nhead int
	in    bool   // in the payload of a frame
	frame Header // of that
	done  uint64 // bytes of it that have come

	control  [MaxControl]byte // payload of a control frame that comes in pieces
	event    Event
	begun    bool // a message
	first    Header
	packed   bool   // it is compressed
	lost     bool   // it is too long
	message  []byte // what has come of it
	borrowed bool   // message is the caller's memory
}

// NewAssembler returns one for a direction of a connection that has just been opened.
func NewAssembler(o *Options) *Assembler {
	a := &Assembler{limit: DefaultLimit}
	if o == nil {
		return a
	}
	if o.Limit > 0 {
		a.limit = o.Limit
	}
	if o.Deflate {
		a.deflate = &inflater{fresh: o.Fresh}
	}
	return a
}

// Feed takes the bytes that come next, in pieces of any size, and tells f of what ends in them, in order. The error is that of f, which
// ends it.
func (a *Assembler) Feed(b []byte, f func(*Event) error) error {
	for at := 0; !a.deaf; {
		if !a.in {
			n, ok := a.header(b[at:])
			at += n
			if !ok {
				return nil
			}
			if a.event.Kind == Broken {
				a.event.End = at
				return f(&a.event)
			}
		}
		n := int(min(uint64(len(b)-at), a.frame.Length-a.done))
		whole := a.payload(b[at : at+n])
		at += n
		if !whole {
			return nil
		}
		if a.in = false; !a.ended() {
			continue
		}
		a.event.End = at
		err := f(&a.event)
		a.free()
		if err != nil {
			return err
		}
	}
	return nil
}

// Finish says that nothing more comes. It returns the message that had not ended; nil for none.
func (a *Assembler) Finish() *Event {
	data := a.in && a.frame.Opcode < Close
	if a.deaf || !a.begun && !data {
		return nil
	}
	a.deaf = true
	a.event = Event{Kind: Message, Data: Data{Opcode: int(a.first.Opcode), Masked: a.first.Masked, Cut: true, Payload: a.message}}
	if a.packed {
		a.event.Payload = nil // nobody gets anything of it
	}
	if a.lost {
		a.event.Payload, a.event.Lost = nil, a.tooLong()
	}
	return &a.event
}

// header takes bytes of a header; ok says that it is whole, and a.in or a.event is set.
func (a *Assembler) header(b []byte) (n int, ok bool) {
	for a.nhead < 2 || a.nhead < HeaderLen(a.head[1]) {
		want := 2
		if a.nhead >= 2 {
			want = HeaderLen(a.head[1])
		}
		took := copy(a.head[a.nhead:want], b[n:])
		if took == 0 {
			return n, false
		}
		n += took
		a.nhead += took
	}
	h, size, err := ParseHeader(a.head[:a.nhead])
	a.nhead = 0
	a.frame, a.done, a.in = h, 0, true
	a.event = Event{}
	if why := a.wrong(&h, err); why != "" {
		a.broken(why, a.head[:size])
		return n, true
	}
	if h.Opcode == Text || h.Opcode == Binary {
		a.begun, a.first, a.packed, a.lost = true, h, h.RSV1, false
	}
	return n, true
}

// wrong says what is wrong with a header; "" for nothing.
func (a *Assembler) wrong(h *Header, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case h.RSV2 || h.RSV3 || h.RSV1 && (a.deflate == nil || h.Opcode != Text && h.Opcode != Binary):
		return "a frame has a reserved bit that nobody agreed on"
	case h.Opcode > Pong || h.Opcode > Binary && h.Opcode < Close:
		return fmt.Sprintf("a frame has the reserved opcode %d", h.Opcode)
	case h.Opcode >= Close && !h.Fin:
		return "a control frame is fragmented"
	case h.Opcode >= Close && h.Length > MaxControl:
		return fmt.Sprintf("a control frame has %d bytes", h.Length)
	case h.Opcode == Continuation && !a.begun:
		return "a fragment continues no message"
	case (h.Opcode == Text || h.Opcode == Binary) && a.begun:
		return "a message begins in the middle of another"
	}
	return ""
}

func (a *Assembler) broken(why string, raw []byte) {
	a.event = Event{Kind: Broken, Data: Data{Payload: raw}, Why: why}
	a.deaf = true
}

// payload takes bytes of the frame's payload, and reports whether it is whole.
func (a *Assembler) payload(b []byte) bool {
	at := a.done
	a.done += uint64(len(b))
	if a.frame.Opcode >= Close {
		to := a.control[at:a.done]
		copy(to, b)
		if a.frame.Masked {
			Mask(a.frame.Key, at, to)
		}
	} else if !a.lost {
		a.add(at, b)
	}
	return a.done == a.frame.Length
}

// add takes bytes of a message.
func (a *Assembler) add(at uint64, b []byte) {
	have := len(a.message)
	if int64(have)+int64(len(b)) > a.limit {
		a.lost, a.message = true, nil
		return
	}
	if have == 0 && a.frame.Fin && !a.frame.Masked && !a.packed && uint64(len(b)) == a.frame.Length {
		a.message, a.borrowed = b, true // the whole message lies in it
		return
	}
	if have == 0 && a.message == nil { // no more is taken than what came says, nor on its word alone
		a.message = make([]byte, 0, min(a.frame.Length, uint64(max(len(b), maxIdle)))+uint64(len(tail)))
	}
	a.message = append(a.message, b...)
	if a.frame.Masked {
		Mask(a.frame.Key, at, a.message[have:])
	}
}

// ended takes the end of a frame, and reports whether something is to be told.
func (a *Assembler) ended() bool {
	switch {
	case a.frame.Opcode == Close:
		a.closing(a.control[:a.frame.Length])
	case a.frame.Opcode > Close:
		a.event = Event{Kind: Control, Data: Data{Opcode: int(a.frame.Opcode), Payload: a.control[:a.frame.Length], Masked: a.frame.Masked}}
	case !a.frame.Fin:
		return false
	default:
		a.begun = false
		a.whole()
	}
	return true
}

// closing takes a close frame.
func (a *Assembler) closing(b []byte) {
	if len(b) == 1 {
		h := a.frame
		a.broken("a close frame has half a code", AppendFrame(nil, h, b))
		return
	}
	a.event = Event{Kind: Closing, Data: Data{Payload: b, Masked: a.frame.Masked}, CloseCode: CloseCode{Code: NoStatus}}
	if len(b) >= 2 {
		a.event.Code, a.event.Reason = int(binary.BigEndian.Uint16(b)), string(b[2:])
	}
	a.deaf = true
}

// whole takes the end of a message.
func (a *Assembler) whole() {
	a.event = Event{Kind: Message, Data: Data{Opcode: int(a.first.Opcode), Payload: a.message, Masked: a.first.Masked}}
	switch {
	case a.lost:
		a.event.Payload, a.event.Lost = nil, a.tooLong()
		a.blind = a.blind || a.packed && !a.deflate.fresh
	case a.packed && a.blind:
		a.event.Payload, a.event.Lost = nil, "it is compressed with what an earlier message held, which could not be read"
	case a.packed:
		a.unpack()
	}
}

// unpack inflates the message.
func (a *Assembler) unpack() {
	out, err := a.deflate.inflate(a.message, a.limit)
	switch {
	case err == nil:
		a.event.Payload = out
	case errors.Is(err, errTooLong):
		a.event.Payload, a.event.Lost = nil, a.tooLong()
	case errors.Is(err, errInflated):
		a.event.Payload, a.event.Lost = nil, errInflated.Error()
		a.blind = !a.deflate.fresh
	default:
		h := Header{Fin: true, RSV1: true, Opcode: a.first.Opcode, Masked: a.first.Masked, Key: a.first.Key}
		a.broken("a message cannot be inflated: "+err.Error(), AppendFrame(nil, h, a.message))
	}
}

func (a *Assembler) tooLong() string {
	return fmt.Sprintf("a message is longer than %d bytes, which is the most that is kept", a.limit)
}

// free lets go of what was told, control frames in the middle of a message apart.
func (a *Assembler) free() {
	if a.begun {
		return
	}
	if a.borrowed || cap(a.message) > maxIdle {
		a.message = nil
	}
	a.message, a.borrowed = a.message[:0], false
}
