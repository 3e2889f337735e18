package websock

import (
	"context"
	"encoding/binary"
	"io"
	"time"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// broken is the error of a peer that broke a rule.
func broken(code int, why string) error {
	return &jsonrpc.CloseError{Code: code, Reason: why, Ours: true}
}

// A message is one that comes in.
type message struct {
	op    byte // wsframe.Continuation before its first frame
	b     []byte
	sound int   // so much of b is whole characters
	held  int64 // of the budget
	late  *time.Timer
}

// read reads frames until the last one of a message.
func (s *Stream) read(m *message) error {
	for {
		h, err := s.header(m.op != wsframe.Continuation)
		if err != nil {
			return err
		}
		if h.Opcode >= wsframe.Close {
			if err := s.control(&h); err != nil {
				return err
			}
			continue
		}
		if h.Opcode != wsframe.Continuation {
			m.op = h.Opcode
		}
		if err := s.payload(m, &h); err != nil || h.Fin {
			return err
		}
	}
}

// header reads the header of a frame; within says that a message has begun. Each byte that breaks a rule is refused before the next one is
// waited for.
func (s *Stream) header(within bool) (h wsframe.Header, err error) {
	var b, shortest [14]byte
	if b[0], err = s.in.ReadByte(); err == nil {
		err = s.first(b[0], within)
	}
	if err != nil {
		return h, err
	}
	if b[1], err = s.in.ReadByte(); err == nil {
		err = s.second(b[0], b[1])
	}
	if err != nil {
		return h, err
	}
	all := b[:wsframe.HeaderLen(b[1])]
	if _, err := io.ReadFull(s.in, all[2:]); err != nil {
		return h, err
	}
	h, _, err = wsframe.ParseHeader(all)
	if err != nil || len(h.Append(shortest[:0])) != len(all) {
		return h, broken(jsonrpc.CloseProtocol, "length of a frame in more bytes than it needs, or negative")
	}
	return h, nil
}

// first says what is wrong with the first byte of a header.
func (s *Stream) first(b byte, within bool) error {
	op := b & 0x0f
	switch {
	case b&0x70 != 0:
		return broken(jsonrpc.CloseProtocol, "reserved bits are set")
	case op > wsframe.Binary && op < wsframe.Close || op > wsframe.Pong:
		return broken(jsonrpc.CloseProtocol, "unknown opcode")
	case op >= wsframe.Close && b&0x80 == 0:
		return broken(jsonrpc.CloseProtocol, "fragmented control frame")
	case op == wsframe.Continuation && !within:
		return broken(jsonrpc.CloseProtocol, "continuation of no message")
	case (op == wsframe.Text || op == wsframe.Binary) && within:
		return broken(jsonrpc.CloseProtocol, "a message begins within another")
	case op == wsframe.Binary && !s.o.binary:
		return broken(jsonrpc.CloseUnsupported, "want text messages, got a binary one")
	}
	return nil
}

// second says what is wrong with the second.
func (s *Stream) second(first, b byte) error {
	switch masked := b&0x80 != 0; {
	case !masked && !s.client:
		return broken(jsonrpc.CloseProtocol, "a client's frame has no mask")
	case masked && s.client:
		return broken(jsonrpc.CloseProtocol, "a server's frame has a mask")
	case first&0x0f >= wsframe.Close && b&0x7f > wsframe.MaxControl:
		return broken(jsonrpc.CloseProtocol, "control frame longer than 125 bytes")
	}
	return nil
}

// control takes a ping, a pong or a close, whose error is that of the end. A pong says by its bytes alone that the peer is there.
func (s *Stream) control(h *wsframe.Header) error {
	var room [wsframe.MaxControl]byte
	p := room[:h.Length]
	if _, err := io.ReadFull(s.in, p); err != nil {
		return err
	}
	if h.Masked {
		wsframe.Mask(h.Key, 0, p)
	}
	switch h.Opcode {
	case wsframe.Ping:
		_ = s.send(wsframe.Pong, p, false) // whoever writes finds out
	case wsframe.Close:
		closed, err := closeOf(p)
		if err != nil {
			return err
		}
		_ = s.send(wsframe.Close, p[:min(len(p), 2)], false)
		return closed
	}
	return nil
}

// closeOf reads the payload of a close frame.
func closeOf(p []byte) (*jsonrpc.CloseError, error) {
	if len(p) == 0 {
		return &jsonrpc.CloseError{Code: jsonrpc.CloseNoCode}, nil
	}
	if len(p) == 1 {
		return nil, broken(jsonrpc.CloseProtocol, "close frame with half a code")
	}
	code := binary.BigEndian.Uint16(p)
	known := code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006
	switch {
	case !known && (code < 3000 || code > 4999):
		return nil, broken(jsonrpc.CloseProtocol, "close frame with a code that may not be sent")
	case !utf8.Valid(p[2:]):
		return nil, broken(jsonrpc.CloseNotUTF8, "the reason of a close is not UTF-8")
	}
	return &jsonrpc.CloseError{Code: int(code), Reason: string(p[2:])}, nil
}

// payload reads that of a frame of a message.
func (s *Stream) payload(m *message, h *wsframe.Header) error {
	if h.Length > uint64(s.o.Limit-len(m.b)) {
		return broken(jsonrpc.CloseTooLong, "message longer than the limit")
	}
	left := int(h.Length)
	for at := uint64(0); left > 0; {
		if len(m.b) == cap(m.b) {
			if err := s.grow(m, left); err != nil {
				return err
			}
		}
		room := m.b[len(m.b):cap(m.b)]
		n, err := s.in.Read(room[:min(len(room), left)])
		if err != nil {
			return err
		}
		if h.Masked {
			wsframe.Mask(h.Key, at, room[:n])
		}
		m.b, at, left = m.b[:len(m.b)+n], at+uint64(n), left-n
		if m.op == wsframe.Text && !m.follow() {
			return broken(jsonrpc.CloseNotUTF8, "text is not UTF-8")
		}
	}
	return nil
}

// grow makes room for more of a message: for all of its frame, up to what a connection may hold by itself, and beyond that once the
// budget has room for the longest one.
func (s *Stream) grow(m *message, left int) error {
	most := jsonrpc.DefaultAllowance
	if len(m.b) >= most {
		most = s.o.Limit
		if m.late == nil {
			if err := s.long(m); err != nil {
				return err
			}
		}
	}
	m.b = append(make([]byte, 0, min(max(len(m.b)+left, 2*cap(m.b)), most)), m.b...)
	return nil
}

// long begins to read a message that is longer than a connection may hold by itself.
func (s *Stream) long(m *message) error {
	if s.short {
		return jsonrpc.ErrShort
	}
	m.late = time.AfterFunc(jsonrpc.LongFrame, func() { _ = s.wire.SetReadDeadline(time.Unix(1, 0)) })
	soon, stop := context.WithTimeout(s.ending, jsonrpc.LongFrame)
	defer stop()
	var ok bool
	if m.held, ok = s.o.Budget.Take(soon, int64(s.o.Limit)); !ok {
		return broken(jsonrpc.CloseTryAgain, "no memory for a long message")
	}
	return nil
}

// follow reports whether what has come of a text can be the beginning of one in UTF-8.
func (m *message) follow() bool {
	p := m.b[m.sound:]
	if utf8.Valid(p) {
		m.sound = len(m.b)
		return true
	}
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		whole, last := p[:len(p)-n], p[len(p)-n:]
		if utf8.RuneStart(last[0]) {
			m.sound += len(whole)
			return !utf8.FullRune(last) && utf8.Valid(whole)
		}
	}
	return false
}

// whole is at the end of a message, or where reading it failed: what it holds of the budget is then no more than it needs.
func (s *Stream) whole(m *message, err error) error {
	if m.late != nil {
		m.late.Stop()
	}
	if err == nil && m.op == wsframe.Text && m.sound < len(m.b) {
		err = broken(jsonrpc.CloseNotUTF8, "text ends within a character")
	}
	needs := int64(0)
	if err == nil && m.held > 0 {
		needs = min(int64(len(m.b)), m.held)
	}
	s.o.Budget.Give(m.held - needs)
	m.held = needs
	return err
}
