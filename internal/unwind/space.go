package unwind

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path"
	"sort"
)

// A Memory reads len(b) bytes of a process at an address.
type Memory func(at uint64, b []byte) error

// A Space is the code that one process has mapped. Its zero value is not ready: New.
type Space struct {
	mem  Memory
	maps func() ([]byte, error) // /proc/PID/maps

	code   []mapping
	beyond map[uint64]bool // blocks of addresses where no file's code is
	rows   map[uint64]step
	called map[uint64]call
	page   page
}

// A mapping is code of a file.
type mapping struct {
	from, to uint64
	offset   uint64 // of from in the file
	file     string // without its folder
	module   *module
}

// A module is the tables of one file.
type module struct{ index, count, table uint64 }

// A step is what is known of an instruction.
type step struct {
	row   row
	start uint64 // of its function
	ok    bool
}

// New returns what a process has mapped, which is looked up in the text that maps returns where that has changed.
func New(mem Memory, maps func() ([]byte, error)) *Space {
	return &Space{mem: mem, maps: maps, beyond: make(map[uint64]bool), rows: make(map[uint64]step), called: make(map[uint64]call)}
}

// A Place is an instruction of a program file.
type Place struct {
	File   string
	Offset uint64
}

// block is how much memory is looked up in vain once.
const block = 21 // bits: 2 MiB

// Chain appends to list the places that the call of a thread returns to, the innermost first, at most as many as list has room for.
func (s *Space) Chain(list []Place, pc, sp uint64) []Place {
	w := walk{Space: s, pc: pc, sp: sp, fresh: true}
	if w.at() == nil { // code of the kernel's own, for the time, which has put nothing on the stack
		w.pc, w.sp = w.word(sp), sp+8
	}
	for w.at() != nil {
		m := w.at()
		list = append(list, Place{m.file, w.pc - m.from + m.offset})
		if len(list) == cap(list) || !w.out(m, len(list) == 1) {
			break
		}
	}
	return list
}

// Frames is Chain for a thread in code of the kernel's own, called with the frame pointer rbp by a program that keeps it in each function, as Go's do on
// stacks of their own; none for one that stands elsewhere.
func (s *Space) Frames(list []Place, pc, rbp uint64) []Place {
	w := walk{Space: s, pc: pc, rbp: rbp, fresh: true}
	if w.at() != nil {
		return list
	}
	for w.rbp != 0 && len(list) < cap(list) {
		w.pc = w.word(w.rbp + 8)
		m := w.at()
		if m == nil {
			break
		}
		list = append(list, Place{m.file, w.pc - m.from + m.offset})
		out := w.word(w.rbp)
		if out <= w.rbp {
			break
		}
		w.rbp = out
	}
	return list
}

// A walk is on its way from function to function.
type walk struct {
	*Space
	pc, sp, rbp uint64 // rbp is 0 while it is not known
	fresh       bool   // nothing of the stack was read yet
}

func (w *walk) at() *mapping { return w.of(w.pc) }

// out goes on in the caller; false where that cannot be found.
func (w *walk) out(m *mapping, innermost bool) bool {
	st := w.step(m, w.pc, innermost)
	if !st.ok && !innermost { // a program without tables may keep frame pointers
		st.row = row{base: regRBP, offset: 16, rbp: -16}
	}
	if !st.ok && innermost || st.row.base == regRBP && w.rbp == 0 {
		at := w.caller(&st)
		if at == 0 {
			return false
		}
		if !st.ok && innermost { // a C library without tables, which leaves the frame pointer alone
			w.pc, w.sp = w.word(at), at+8
			return true
		}
		w.rbp = at + 8 - uint64(st.row.offset)
	}
	end := w.sp
	if st.row.base == regRBP {
		end = w.rbp
	}
	end += uint64(st.row.offset)
	if end <= w.sp {
		return false
	}
	if st.row.rbp != 0 {
		w.rbp = w.word(end + uint64(st.row.rbp))
	}
	w.pc, w.sp = w.word(end-8), end
	return w.of(w.pc) != nil && w.call(w.pc).is // of a file that was mapped just now, perhaps
}

// near is how far up the stack is looked.
const near = 1024

// caller finds where the return address stands that the function of a step was called with: the first one on the stack of a call that
// can have been of it. What else looks like one was left there by calls that are over.
func (w *walk) caller(st *step) uint64 {
	for at := w.sp; at < w.sp+near; at += 8 {
		c := w.call(w.word(at))
		switch {
		case !c.is:
		case c.target == 0, st.ok && c.target == st.start, !st.ok && c.target <= w.pc && w.pc < c.target+near:
			return at
		}
	}
	return 0
}

// A call is what stands before an address.
type call struct {
	is     bool
	target uint64 // 0 for one that is not known
}

// call looks at the instruction before pc, if that is of a file's code.
func (w *walk) call(pc uint64) call {
	if w.known(pc) == nil {
		return call{}
	}
	c, ok := w.called[pc]
	if !ok {
		var before [8]byte
		if w.mem(pc-8, before[:]) == nil {
			c.is = afterCall(&before)
			c.target = w.target(pc, &before)
		}
		bound(w.called)[pc] = c
	}
	return c
}

// target is what a call calls: directly, or by a pointer at a fixed place, as into another file.
func (s *Space) target(pc uint64, before *[8]byte) uint64 {
	to := pc + uint64(int64(int32(binary.LittleEndian.Uint32(before[4:]))))
	switch {
	case before[3] == 0xe8:
		return to
	case before[2] == 0xff && before[3] == 0x15:
		var b [8]byte
		if s.mem(to, b[:]) == nil {
			return binary.LittleEndian.Uint64(b[:])
		}
	}
	return 0
}

// A page is memory that was read in one piece.
type page struct {
	at    uint64
	bytes [4096]byte
}

// word reads one of the stack; 0 for none.
func (w *walk) word(at uint64) uint64 {
	p := &w.page
	if begin := at &^ (uint64(len(p.bytes)) - 1); p.at != begin || w.fresh {
		w.fresh = false
		if p.at = begin; w.mem(begin, p.bytes[:]) != nil {
			w.fresh = true
			return 0
		}
	}
	if at%8 != 0 {
		return 0
	}
	return binary.LittleEndian.Uint64(p.bytes[at-p.at:])
}

// afterCall reports whether the last of b is a call (the processor's E8, and FF /2 with any operand).
func afterCall(b *[8]byte) bool {
	if b[3] == 0xe8 {
		return true
	}
	for n := 2; n <= 7; n++ {
		if in := b[8-n:]; in[0] == 0xff && in[1]>>3&7 == 2 && n == 2+operand(in[1:]) {
			return true
		}
	}
	return false
}

// operand is how many bytes follow the byte that says what an instruction works on.
func operand(b []byte) int {
	mod, rm := b[0]>>6, b[0]&7
	n := 0
	if mod != 3 && rm == 4 {
		n++
		if mod == 0 && len(b) > 1 && b[1]&7 == 5 {
			n += 4
		}
	}
	switch {
	case mod == 0 && rm == 5, mod == 2:
		n += 4
	case mod == 1:
		n++
	}
	return n
}

// of finds the mapping of an address, which may be new.
func (s *Space) of(pc uint64) *mapping {
	if m := s.known(pc); m != nil || s.beyond[pc>>block] {
		return m
	}
	s.look()
	m := s.known(pc)
	if m == nil {
		bound(s.beyond)[pc>>block] = true
	}
	return m
}

// bound forgets what a map holds where that is very much.
func bound[K comparable, V any](m map[K]V) map[K]V {
	if len(m) >= 1<<16 {
		clear(m)
	}
	return m
}

func (s *Space) known(pc uint64) *mapping {
	i := sort.Search(len(s.code), func(i int) bool { return s.code[i].to > pc })
	if i == len(s.code) || pc < s.code[i].from {
		return nil
	}
	return &s.code[i]
}

// maxCode bounds the mappings of code that are known of a process: the headers of each file are read.
const maxCode = 4096

// look reads what is mapped.
func (s *Space) look() {
	text, err := s.maps()
	if err != nil {
		return
	}
	s.code = s.code[:0]
	clear(s.rows)
	clear(s.called)
	begins := make(map[string]uint64) // of each file, where it is mapped from its first byte on
	for line := range bytes.Lines(text) {
		m := mapping{}
		var rights, device, file string
		var inode uint64
		n, _ := fmt.Sscanf(string(line), "%x-%x %s %x %s %d %s", &m.from, &m.to, &rights, &m.offset, &device, &inode, &file)
		if n < 7 || inode == 0 {
			continue
		}
		if m.offset == 0 {
			begins[file] = m.from
		}
		if begin, ok := begins[file]; ok && len(rights) > 2 && rights[2] == 'x' && len(s.code) < maxCode {
			m.file, m.module = path.Base(file), s.module(begin)
			s.code = append(s.code, m)
		}
	}
}

// Types of the headers of an ELF file.
const (
	ptLoad  = 1
	ptTable = 0x6474e550 // PT_GNU_EH_FRAME
)

const (
	headerSize = 56 // of each of them, in bytes
	maxHeaders = 64
)

// module reads where the tables of a file are that is mapped from begin on; nil where it has none.
func (s *Space) module(begin uint64) *module {
	head := read(s.mem, begin, 64)
	h := head.left
	if head.fail != nil || !bytes.HasPrefix(h, []byte("\x7fELF\x02\x01")) || binary.LittleEndian.Uint16(h[54:]) != headerSize {
		return nil
	}
	count := min(binary.LittleEndian.Uint16(h[56:]), maxHeaders)
	if count == 0 {
		return nil
	}
	r := read(s.mem, begin+binary.LittleEndian.Uint64(h[32:]), int(count)*headerSize)
	bias, found := begin, uint64(0)
	for len(r.left) > 0 {
		p := r.bytes(headerSize)
		offset, at := binary.LittleEndian.Uint64(p[8:]), binary.LittleEndian.Uint64(p[16:])
		switch binary.LittleEndian.Uint32(p) {
		case ptLoad:
			if offset == 0 {
				bias = begin - at
			}
		case ptTable:
			found = at
		}
	}
	if found == 0 {
		return nil
	}
	return s.index(bias + found)
}

// maxCount bounds the functions of a file: twenty times those of a web browser.
const maxCount = 1 << 24

// index reads the head of .eh_frame_hdr, which is followed by its first entry at least.
func (s *Space) index(at uint64) *module {
	r := read(s.mem, at, 20)
	h := r.bytes(4)
	if h == nil || h[0] != 1 || h[3] != peData|peSigned4 {
		return nil
	}
	r.pointer(h[1], at)
	count := r.pointer(h[2], at)
	if r.fail != nil || count > maxCount {
		return nil
	}
	return &module{index: at, count: count, table: r.at}
}

// entry is the entry of the last function that begins at pc or before it; 0 for none.
func (m *module) entry(mem Memory, pc uint64) uint64 {
	var b [8]byte
	lo, hi := uint64(0), m.count
	for lo < hi {
		at := (lo + hi) / 2
		if mem(m.table+8*at, b[:]) != nil {
			return 0
		}
		if m.index+uint64(int64(int32(binary.LittleEndian.Uint32(b[:])))) <= pc {
			lo = at + 1
		} else {
			hi = at
		}
	}
	if lo == 0 || mem(m.table+8*(lo-1), b[:]) != nil {
		return 0
	}
	return m.index + uint64(int64(int32(binary.LittleEndian.Uint32(b[4:]))))
}

// step finds out how the function of an instruction ends. Of one that has called, the call counts, which may be its last one.
func (s *Space) step(m *mapping, pc uint64, innermost bool) step {
	if st, ok := s.rows[pc]; ok || m.module == nil {
		return st
	}
	at := pc
	if !innermost {
		at--
	}
	var st step
	if entry := m.module.entry(s.mem, at); entry != 0 {
		var err error
		st.row, st.start, err = rowOf(s.mem, entry, at)
		st.ok = err == nil
	}
	bound(s.rows)[pc] = st
	return st
}
