package wsframe

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // see AcceptKey
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"net/textproto"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
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

// Deflate is what an answer to an upgrade says of permessage-deflate (RFC 7692). How large a window was agreed on does not matter to who
// inflates: 32 KiB hold any.
type Deflate struct {
	On                     bool
	ServerFresh            bool // server_no_context_takeover: no message of the server refers to one before
	ClientFresh            bool // the same of the client
	ClientBits, ServerBits bool // client_max_window_bits or server_max_window_bits was named
}

// permessage is the name of the extension.
const permessage = "permessage-deflate"

// ParseDeflate reads the fields Sec-WebSocket-Extensions of an answer, or of a request, of which it takes the first offer.
func ParseDeflate(fields []string) (d Deflate) {
	for _, list := range fields {
		for item := range strings.SplitSeq(list, ",") {
			if !d.On && IsDeflate(item) {
				d = parameters(item)
			}
		}
	}
	return d
}

// IsDeflate reports whether one item of such a field, with its parameters, is permessage-deflate.
func IsDeflate(item string) bool {
	name, _, _ := strings.Cut(item, ";")
	return strings.EqualFold(textproto.TrimString(name), permessage)
}

func parameters(item string) Deflate {
	d := Deflate{On: true}
	for p := range strings.SplitSeq(item, ";") {
		name, _, _ := strings.Cut(p, "=")
		switch strings.ToLower(textproto.TrimString(name)) {
		case "server_no_context_takeover":
			d.ServerFresh = true
		case "client_no_context_takeover":
			d.ClientFresh = true
		case "client_max_window_bits":
			d.ClientBits = true
		case "server_max_window_bits":
			d.ServerBits = true
		}
	}
	return d
}

const (
	windowSize  = 32 << 10  // bytes that a message may refer back
	maxInflated = 256 << 20 // bytes that one message may come to before it is given up
)

// tail is what a sender takes off a message (RFC 7692, 7.2.1), and an empty last block, so that a reader finds an end.
const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"

var (
	errTooLong  = errors.New("too long")
	errInflated = errors.New("it inflates to more than is read of a message")
)

// An inflater undoes the compression of one direction.
type inflater struct {
	fresh  bool   // no message refers to one before
	window []byte // the last bytes of what was inflated; nil where fresh
	out    []byte // memory
}

// A decoder holds what inflating needs, some 80 KiB.
type decoder struct {
	from bytes.Reader
	r    io.ReadCloser
}

// decoders are those that no message needs at the moment.
var decoders = sync.Pool{New: func() any {
	d := new(decoder)
	d.r = flate.NewReader(&d.from)
	return d
}}

// free gives the decoder back, which holds none of what it read.
func (d *decoder) free() {
	d.from.Reset(nil)
	decoders.Put(d)
}

// inflate returns a message, valid until the next call. Errors: errTooLong where it has more than limit bytes, and was read to its end for
// the sake of those after it; errInflated where it was not; else the decoder's.
func (f *inflater) inflate(packed []byte, limit int64) ([]byte, error) {
	d := decoders.Get().(*decoder)
	defer d.free()
	d.from.Reset(append(packed, tail...))
	if err := d.r.(flate.Resetter).Reset(&d.from, f.window); err != nil {
		return nil, err
	}
	out := f.out[:0]
	if cap(out) == 0 {
		out = make([]byte, 0, min(8*len(packed)+512, maxIdle))
	}
	total := int64(0)
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := d.r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		total += int64(n)
		if total > limit && len(out) > 4*windowSize { // its end alone is needed
			kept := copy(out, out[len(out)-windowSize:])
			out = out[:kept:min(cap(out), 8*windowSize)]
		}
		switch {
		case errors.Is(err, io.EOF):
			f.keep(out)
			if total > limit {
				return nil, errTooLong
			}
			return out, nil
		case err != nil:
			return nil, err
		case total > maxInflated:
			return nil, errInflated
		}
	}
}

// keep remembers the last bytes of what was inflated.
func (f *inflater) keep(out []byte) {
	if f.out = out; cap(out) > maxIdle {
		f.out = nil
	}
	if f.fresh {
		return
	}
	if len(out) >= windowSize {
		f.window = append(f.window[:0], out[len(out)-windowSize:]...)
		return
	}
	if over := len(f.window) + len(out) - windowSize; over > 0 {
		f.window = f.window[:copy(f.window, f.window[over:])]
	}
	f.window = append(f.window, out...)
}

// AcceptKey is the Sec-WebSocket-Accept that answers a Sec-WebSocket-Key (RFC 6455, 4.2.2).
func AcceptKey(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // the RFC wants it, and it proves nothing
	return base64.StdEncoding.EncodeToString(sum[:])
}
