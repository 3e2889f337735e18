package wasi

import "fmt"

// A reader reads a part of a module: numbers and vectors as WebAssembly 2.0 has them. Its first error sticks; then it reads zeros, and
// every loop over a vector asks for err.
type reader struct {
	b   []byte
	at  int // in b
	off int // of b in the module, for errors
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d: %s", r.off+r.at, fmt.Sprintf(format, args...))
		r.at = len(r.b)
	}
}

func (r *reader) left() int { return len(r.b) - r.at }

func (r *reader) byte() byte {
	if r.left() < 1 {
		r.fail("it ends too early")
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

func (r *reader) bytes(n uint32) []byte {
	if uint64(n) > uint64(r.left()) {
		r.fail("%d bytes are said to follow, %d do", n, r.left())
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

// part reads a part that says its own length, and has read read it to its end.
func (r *reader) part(read func(part *reader)) {
	size := r.u32()
	off := r.off + r.at
	body := r.bytes(size)
	part := &reader{b: body, off: off, err: r.err}
	if read(part); part.left() > 0 {
		part.fail("%d bytes too many", part.left())
	}
	if r.err == nil {
		r.err = part.err
	}
}

// number reads a LEB128 of at most so many bits, as if it had no sign.
func (r *reader) number(bits int) (v uint64) {
	for shift := 0; ; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
		if shift+7 >= bits {
			r.fail("a number has more than %d bits", bits)
			return 0
		}
	}
}

func (r *reader) u32() uint32 { return uint32(r.number(32)) }

// count reads how many elements a vector has, each of which takes at least a byte.
func (r *reader) count() uint32 {
	n := r.u32()
	if uint64(n) > uint64(r.left()) {
		r.fail("%d elements are said to follow in %d bytes", n, r.left())
		return 0
	}
	return n
}

func (r *reader) name() string { return string(r.bytes(r.u32())) }

// valueTypes reads n types of values, all of them a byte.
func (r *reader) valueTypes(n uint32) {
	for _, t := range r.bytes(n) {
		r.valueType(t)
	}
}

func (r *reader) valueType(t byte) {
	switch t {
	case 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f: // i32 to f64, v128, funcref, externref
	default:
		r.fail("type %#x is none of WebAssembly 2.0", t)
	}
}

// A bound is how large a table or a memory is, and may become.
type bound struct {
	min uint32
	max uint32
	has bool // max
}

func (r *reader) bound() (b bound) {
	switch flags := r.byte(); flags {
	case 0:
		b.min = r.u32()
	case 1:
		b.min, b.has = r.u32(), true
		b.max = r.u32()
	default:
		r.fail("limits %#x are none of WebAssembly 2.0", flags)
	}
	return b
}

// constant reads an expression that has one value.
func (r *reader) constant() {
	for r.err == nil {
		switch op := r.byte(); op {
		case 0x0b: // end
			return
		case 0x41:
			r.number(32)
		case 0x42:
			r.number(64)
		case 0x43:
			r.bytes(4)
		case 0x44:
			r.bytes(8)
		case 0x23, 0xd2: // global.get, ref.func
			r.u32()
		case 0xd0: // ref.null
			r.valueType(r.byte())
		case 0xfd: // v128.const
			if suffix := r.u32(); suffix != 12 {
				r.fail("vector instruction %d is no constant", suffix)
			}
			r.bytes(16)
		default:
			r.fail("instruction %#x is no constant", op)
		}
	}
}
