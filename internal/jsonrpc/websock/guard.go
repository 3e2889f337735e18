package websock

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc"
	"github.com/tapedeck-dev/tapedeck/internal/wsframe"
)

// Opcodes of RFC 6455, section 5.2.
const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPong         = 10
)

// A guard follows the frames of a client, byte by byte as they come, and says where they break the rules. The bytes stay as they
// are: masked.
type guard struct {
	limit  int64
	binary bool // messages may be binary

	head   [14]byte // of the frame that has begun
	nhead  int
	op     byte
	fin    bool
	length int64 // of the frame's payload, of which
	left   int64 // are still to come
	mask   [4]byte

	open bool  // a message has begun and not ended
	text bool  // it is text
	size int64 // of it, so far

	carry  [utf8.UTFMax]byte // the beginning of a character of it
	ncarry int

	control [125]byte // the payload of a control frame, unmasked
}

// check follows b. It returns how many bytes of it may be passed on, all where nothing is wrong, and what is wrong.
func (g *guard) check(b []byte) (int, *jsonrpc.CloseError) {
	for i := 0; i < len(b); {
		n, why := g.step(b[i:])
		if why != nil {
			return i, why
		}
		i += n
	}
	return len(b), nil
}

// step follows the next bytes of a header or of a payload, and returns how many they were.
func (g *guard) step(b []byte) (int, *jsonrpc.CloseError) {
	if g.left > 0 {
		n := int(min(g.left, int64(len(b))))
		return n, g.payload(b[:n])
	}
	g.head[g.nhead] = b[0]
	g.nhead++
	switch g.nhead {
	case 1:
		return 1, g.first(b[0])
	case 2:
		return 1, g.second(b[0])
	case wsframe.HeaderLen(g.head[1]):
		g.nhead = 0
		return 1, g.begin()
	}
	return 1, nil
}

func protocol(why string) *jsonrpc.CloseError {
	return &jsonrpc.CloseError{Code: jsonrpc.CloseProtocol, Reason: why, Ours: true}
}

// first says what is wrong with the first byte of a header.
func (g *guard) first(b byte) *jsonrpc.CloseError {
	op := b & 0x0f
	switch {
	case b&0x70 != 0:
		return protocol("reserved bits are set")
	case op > opBinary && op < opClose || op > opPong:
		return protocol("unknown opcode")
	case op >= opClose && b&0x80 == 0:
		return protocol("fragmented control frame")
	case op == opContinuation && !g.open:
		return protocol("continuation of no message")
	case (op == opText || op == opBinary) && g.open:
		return protocol("a message begins within another")
	case op == opBinary && !g.binary:
		return &jsonrpc.CloseError{Code: jsonrpc.CloseUnsupported, Reason: "want text messages, got a binary one", Ours: true}
	}
	return nil
}

// second says what is wrong with the second.
func (g *guard) second(b byte) *jsonrpc.CloseError {
	switch {
	case b&0x80 == 0:
		return protocol("a client's frame has no mask")
	case g.head[0]&0x0f >= opClose && b&0x7f > 125:
		return protocol("control frame longer than 125 bytes")
	}
	return nil
}

// begin takes a header that is whole.
func (g *guard) begin() *jsonrpc.CloseError {
	g.op, g.fin = g.head[0]&0x0f, g.head[0]&0x80 != 0
	n, why := payloadLength(&g.head)
	if why != nil {
		return why
	}
	g.length, g.left = n, n
	copy(g.mask[:], g.head[wsframe.HeaderLen(g.head[1])-4:])
	if g.op < opClose {
		if g.op != opContinuation {
			g.open, g.text, g.size, g.ncarry = true, g.op == opText, 0, 0
		}
		if g.size += n; g.size > g.limit {
			return &jsonrpc.CloseError{Code: jsonrpc.CloseTooLong, Reason: "message longer than the limit", Ours: true}
		}
	}
	if n == 0 {
		return g.end()
	}
	return nil
}

// payloadLength reads the length in a header, which must be written in as few bytes as it can.
func payloadLength(head *[14]byte) (int64, *jsonrpc.CloseError) {
	switch n := int64(head[1] & 0x7f); n {
	case 126:
		if n = int64(binary.BigEndian.Uint16(head[2:])); n >= 126 {
			return n, nil
		}
	case 127:
		if n = int64(binary.BigEndian.Uint64(head[2:])); n > 0xffff {
			return n, nil
		}
	default:
		return n, nil
	}
	return 0, protocol("length of a frame in more bytes than it needs, or negative")
}

// payload follows bytes of a payload.
func (g *guard) payload(b []byte) *jsonrpc.CloseError {
	at := g.length - g.left
	g.left -= int64(len(b))
	switch {
	case g.op >= opClose:
		for i, c := range b {
			g.control[at+int64(i)] = c ^ g.mask[(at+int64(i))&3]
		}
	case g.text:
		if !g.utf8(b, at) {
			return &jsonrpc.CloseError{Code: jsonrpc.CloseNotUTF8, Reason: "text is not UTF-8", Ours: true}
		}
	}
	if g.left == 0 {
		return g.end()
	}
	return nil
}

// end is at the end of a frame.
func (g *guard) end() *jsonrpc.CloseError {
	switch {
	case g.op == opClose:
		return checkClose(g.control[:g.length])
	case g.op > opClose || !g.fin:
		return nil
	}
	g.open = false
	if g.text && g.ncarry > 0 {
		return &jsonrpc.CloseError{Code: jsonrpc.CloseNotUTF8, Reason: "text ends within a character", Ours: true}
	}
	return nil
}

// checkClose says what is wrong with the payload of a close frame.
func checkClose(p []byte) *jsonrpc.CloseError {
	if len(p) == 0 {
		return nil
	}
	if len(p) == 1 {
		return protocol("close frame with half a code")
	}
	code := binary.BigEndian.Uint16(p)
	known := code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006
	if !known && (code < 3000 || code > 4999) {
		return protocol("close frame with a code that may not be sent")
	}
	if !utf8.Valid(p[2:]) {
		return &jsonrpc.CloseError{Code: jsonrpc.CloseNotUTF8, Reason: "the reason of a close is not UTF-8", Ours: true}
	}
	return nil
}
