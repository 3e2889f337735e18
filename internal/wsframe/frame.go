package wsframe

import (
	"encoding/binary"
	"errors"
)

// The opcodes (RFC 6455, 5.2).
const (
	Continuation = 0x0
	Text         = 0x1
	Binary       = 0x2
	Close        = 0x8
	Ping         = 0x9
	Pong         = 0xA
)

// MaxControl is the longest payload of a control frame, in bytes.
const MaxControl = 125

// maxHeader is the longest header of a frame, in bytes.
const maxHeader = 14

// A Header is that of one frame.
type Header struct {
	Fin              bool
	RSV1, RSV2, RSV3 bool
	Opcode           byte
	Masked           bool
	Key              [4]byte // of the mask
	Length           uint64  // of the payload, in bytes
}

// errLength is the error of a length whose highest bit is set.
var errLength = errors.New("a frame's length is beyond 63 bits")

// ParseHeader reads the header that b begins with, of n bytes; n is 0 where b does not hold all of it. The error is that of a length of
// more than 63 bits; n is then that of the header all the same.
func ParseHeader(b []byte) (h Header, n int, err error) {
	if len(b) < 2 {
		return h, 0, nil
	}
	h = Header{
		Fin: b[0]&0x80 != 0, RSV1: b[0]&0x40 != 0, RSV2: b[0]&0x20 != 0, RSV3: b[0]&0x10 != 0,
		Opcode: b[0] & 0x0F, Masked: b[1]&0x80 != 0, Length: uint64(b[1] & 0x7F),
	}
	n = HeaderLen(b[1])
	if len(b) < n {
		return Header{}, 0, nil
	}
	switch h.Length {
	case 126:
		h.Length = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if h.Length = binary.BigEndian.Uint64(b[2:]); h.Length>>63 != 0 {
			err = errLength
		}
	}
	if h.Masked {
		copy(h.Key[:], b[n-4:n])
	}
	return h, n, err
}

// HeaderLen is the length of a header, in bytes, by its second byte.
func HeaderLen(second byte) int {
	n := 2
	switch second & 0x7F {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if second&0x80 != 0 {
		n += 4
	}
	return n
}

// Append appends the header, its length in the shortest form.
func (h *Header) Append(dst []byte) []byte {
	first := h.Opcode
	for i, set := range []bool{h.Fin, h.RSV1, h.RSV2, h.RSV3} {
		if set {
			first |= 0x80 >> i
		}
	}
	var second byte
	if h.Masked {
		second = 0x80
	}
	switch {
	case h.Length < 126:
		dst = append(dst, first, second|byte(h.Length))
	case h.Length <= 0xFFFF:
		dst = binary.BigEndian.AppendUint16(append(dst, first, second|126), uint16(h.Length))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, first, second|127), h.Length)
	}
	if h.Masked {
		dst = append(dst, h.Key[:]...)
	}
	return dst
}

// AppendFrame appends a frame with the header h, whose length is set to that of the payload, which is masked where h says so.
func AppendFrame(dst []byte, h Header, payload []byte) []byte {
	h.Length = uint64(len(payload))
	dst = h.Append(dst)
	from := len(dst)
	dst = append(dst, payload...)
	if h.Masked {
		Mask(h.Key, 0, dst[from:])
	}
	return dst
}

// AppendClose appends the payload of a close frame: nothing for NoStatus. A reason is cut where the frame ends.
func AppendClose(dst []byte, code int, reason string) []byte {
	if code == NoStatus {
		return dst
	}
	dst = binary.BigEndian.AppendUint16(dst, uint16(code))
	return append(dst, reason[:min(len(reason), MaxControl-2)]...)
}

// Mask masks b, or undoes it. pos is the place of its first byte in the payload.
func Mask(key [4]byte, pos uint64, b []byte) {
	var turned [8]byte
	for i := range turned {
		turned[i] = key[(pos+uint64(i))%4]
	}
	word := binary.LittleEndian.Uint64(turned[:])
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^word)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= turned[i]
	}
}
