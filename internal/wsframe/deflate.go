package wsframe

import (
	"bytes"
	"errors"
	"io"
	"net/textproto"
	"strings"
	"sync"

	"github.com/klauspost/compress/flate"
)

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
