package unwind

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// errTable is returned for tables that cannot be read.
var errTable = errors.New("unwind: no table that is known")

// Numbers of registers in the tables (System V ABI, amd64).
const (
	regRBP = 6
	regRSP = 7
)

// A row says how a function finds the frame of its caller at one instruction: its end is at base plus offset, and the return address
// stands right below that.
type row struct {
	base   uint64 // the number of a register
	offset int64
	rbp    int64 // where the caller's frame pointer stands, from the end of the frame; 0 where it has not changed
}

// A reader reads a piece of a table, from its begin to its end: never back, and never beyond.
type reader struct {
	at   uint64 // the address of left
	left []byte
	fail error
}

// read takes a piece out of memory.
func read(mem Memory, at uint64, n int) reader {
	b := make([]byte, n)
	if err := mem(at, b); err != nil {
		return reader{fail: err}
	}
	return reader{at: at, left: b}
}

// bytes reads the next ones; none where there are fewer.
func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.left)) {
		r.fail, r.left = errTable, nil
		return nil
	}
	b := r.left[:n]
	r.at, r.left = r.at+n, r.left[n:]
	return b
}

// number reads one of so many bytes, at most 8.
func (r *reader) number(n uint64) uint64 {
	var b [8]byte
	copy(b[:], r.bytes(n))
	return binary.LittleEndian.Uint64(b[:])
}

func (r *reader) u8() byte    { return byte(r.number(1)) }
func (r *reader) u32() uint32 { return uint32(r.number(4)) }

func (r *reader) uleb() (v uint64) {
	for shift := 0; shift < 64; shift += 7 {
		b := r.u8()
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
	r.fail, r.left = errTable, nil
	return 0
}

func (r *reader) sleb() (v int64) {
	for shift := 0; shift < 64; {
		b := r.u8()
		v |= int64(b&0x7f) << shift
		shift += 7
		if b&0x80 == 0 {
			if b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
	r.fail, r.left = errTable, nil
	return 0
}

// Encodings of a pointer (DW_EH_PE_*).
const (
	peAbsolute = 0x00
	peSigned4  = 0x0b
	peUnsign4  = 0x03
	pePC       = 0x10
	peData     = 0x30
)

// pointer reads one that is encoded so; data is what it may count from.
func (r *reader) pointer(encoding byte, data uint64) uint64 {
	at, v := r.at, uint64(0)
	switch encoding & 0x0f {
	case peAbsolute:
		v = r.number(8)
	case peSigned4:
		v = uint64(int64(int32(r.u32())))
	case peUnsign4:
		v = uint64(r.u32())
	default:
		r.fail = errTable
	}
	switch encoding & 0x70 {
	case pePC:
		v += at
	case peData:
		v += data
	case 0:
	default:
		r.fail = errTable
	}
	return v
}

// A common is what several entries share (a CIE).
type common struct {
	code     uint64 // unit of advances
	data     int64  // unit of offsets
	pointers byte   // how entries encode addresses
	extended bool   // entries have data of their own
	program  reader
}

// maxEntry bounds an entry, in bytes, each of which is at most one instruction; maxKept the states that it remembers at once: who reads
// is waited for.
const (
	maxEntry = 16 << 10
	maxKept  = 64
)

// entry reads one.
func entry(mem Memory, at uint64) reader {
	r := read(mem, at, 4)
	n := r.u32()
	if n == 0 || n > maxEntry {
		return reader{fail: errors.Join(errTable, r.fail)}
	}
	return read(mem, at+4, int(n))
}

func readCommon(mem Memory, at uint64) (c common, err error) {
	r := entry(mem, at)
	if r.u32() != 0 {
		return c, errTable
	}
	r.u8() // version
	var augmentation []byte
	for b := r.u8(); b != 0; b = r.u8() {
		augmentation = append(augmentation, b)
	}
	c.code, c.data = r.uleb(), r.sleb()
	r.uleb() // the register of the return address
	if bytes.HasPrefix(augmentation, []byte("z")) {
		c.extended = true
		c.augmentation(&r, augmentation[1:])
	}
	c.program = r
	return c, r.fail
}

func (c *common) augmentation(r *reader, letters []byte) {
	n := r.uleb()
	in := reader{at: r.at, left: r.bytes(n)}
	for _, letter := range letters {
		switch letter {
		case 'R':
			c.pointers = in.u8()
		case 'P':
			in.pointer(in.u8()&0x7f, 0)
		case 'L':
			in.u8()
		}
	}
	r.fail = errors.Join(r.fail, in.fail)
}

// rowOf runs the entry at address at up to the instruction pc. It tells where the function starts, too.
func rowOf(mem Memory, at, pc uint64) (is row, from uint64, err error) {
	r := entry(mem, at)
	here := r.at
	c, err := readCommon(mem, here-uint64(r.u32()))
	if err != nil {
		return row{}, 0, err
	}
	from = r.pointer(c.pointers, 0)
	size := r.pointer(c.pointers&0x0f, 0)
	if r.fail != nil || pc < from || pc >= from+size {
		return row{}, 0, errTable
	}
	if c.extended {
		r.bytes(r.uleb())
	}
	m := machine{common: &c}
	m.run(&c.program, 0, 1)
	m.first = m.row
	m.run(&r, from, pc)
	if m.row.base != regRSP && m.row.base != regRBP {
		return row{}, 0, errTable
	}
	return m.row, from, errors.Join(m.fail, c.program.fail, r.fail)
}

// A machine runs the instructions of an entry (DWARF 4, 6.4.2).
type machine struct {
	*common
	row, first row
	kept       []row
	fail       error
}

// run stops at the first instruction that is beyond pc.
func (m *machine) run(r *reader, at, pc uint64) {
	for len(r.left) > 0 && m.fail == nil {
		op := r.u8()
		arg := uint64(op & 0x3f)
		switch op >> 6 {
		case 1:
			at += arg * m.code
		case 2:
			m.saved(arg, int64(r.uleb())*m.data)
		case 3:
			m.restored(arg)
		default:
			at += m.advance(r, op)
			m.other(r, op)
		}
		if at > pc {
			return
		}
	}
}

// Instructions (DW_CFA_*).
const (
	cfaNop           = 0x00
	cfaAdvance1      = 0x02
	cfaAdvance2      = 0x03
	cfaAdvance4      = 0x04
	cfaOffsetExt     = 0x05
	cfaRestoreExt    = 0x06
	cfaUndefined     = 0x07
	cfaSameValue     = 0x08
	cfaRegister      = 0x09
	cfaRemember      = 0x0a
	cfaRestoreState  = 0x0b
	cfaDef           = 0x0c
	cfaDefRegister   = 0x0d
	cfaDefOffset     = 0x0e
	cfaDefExpression = 0x0f
	cfaExpression    = 0x10
	cfaOffsetSigned  = 0x11
	cfaDefSigned     = 0x12
	cfaDefOffSigned  = 0x13
	cfaValExpression = 0x16
	cfaArgsSize      = 0x2e
)

func (m *machine) advance(r *reader, op byte) uint64 {
	switch op {
	case cfaAdvance1:
		return uint64(r.u8()) * m.code
	case cfaAdvance2:
		return r.number(2) * m.code
	case cfaAdvance4:
		return uint64(r.u32()) * m.code
	}
	return 0
}

func (m *machine) other(r *reader, op byte) {
	switch op {
	case cfaNop, cfaAdvance1, cfaAdvance2, cfaAdvance4:
	case cfaOffsetExt:
		m.saved(r.uleb(), int64(r.uleb())*m.data)
	case cfaOffsetSigned:
		m.saved(r.uleb(), r.sleb()*m.data)
	case cfaRestoreExt:
		m.restored(r.uleb())
	case cfaUndefined, cfaSameValue, cfaArgsSize:
		r.uleb()
	case cfaRegister:
		r.uleb()
		r.uleb()
	case cfaRemember:
		if m.kept = append(m.kept, m.row); len(m.kept) > maxKept {
			m.fail = errTable
		}
	case cfaRestoreState:
		if n := len(m.kept); n > 0 {
			m.row, m.kept = m.kept[n-1], m.kept[:n-1]
		}
	default:
		m.frame(r, op)
	}
}

// frame takes instructions that say where a frame ends.
func (m *machine) frame(r *reader, op byte) {
	switch op {
	case cfaDef:
		m.row.base, m.row.offset = r.uleb(), int64(r.uleb())
	case cfaDefSigned:
		m.row.base, m.row.offset = r.uleb(), r.sleb()*m.data
	case cfaDefRegister:
		m.row.base = r.uleb()
	case cfaDefOffset:
		m.row.offset = int64(r.uleb())
	case cfaDefOffSigned:
		m.row.offset = r.sleb() * m.data
	case cfaDefExpression:
		r.bytes(r.uleb())
		m.row.base = 0 // none that is known
	case cfaExpression, cfaValExpression:
		r.uleb()
		r.bytes(r.uleb())
	default:
		m.fail = errTable
	}
}

func (m *machine) saved(reg uint64, at int64) {
	if reg == regRBP {
		m.row.rbp = at
	}
}

func (m *machine) restored(reg uint64) {
	if reg == regRBP {
		m.row.rbp = m.first.rbp
	}
}
