package wasi

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Bounds of a module that WebAssembly leaves open. An engine takes a module's word for how much is to follow and makes room for it, so
// that twenty bytes could ask for all of the host's memory.
const (
	maxLocals = 50_000 // of a function, as in browsers
	allLocals = 16 << 20
	maxTable  = 1 << 20 // elements, whatever the module says; a table takes 8 bytes for each
	maxTables = 16
)

// Sections by their ids.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

// checker goes through a module once, before the engine sees it.
type checker struct {
	out      bytes.Buffer // the module that the engine gets
	imports  []Import
	start    bool // exports the function _start
	reactor  bool // exports the function _initialize
	memory   bound
	memories int
	locals   uint64
}

// check goes through code, and leaves in out what is to be compiled: code without its custom sections but for names, and with an upper bound for each
// table. It refuses what is no program for WASI preview 1, what asks for more than its limits, and what imports what is not there.
func (e *engine) check(code []byte) (*checker, error) {
	if err := checkHeader(code); err != nil {
		return nil, err
	}
	c := &checker{}
	c.out.Grow(len(code))
	c.out.Write(code[:8])
	if err := c.sections(&reader{b: code[8:], off: 8}); err != nil {
		return nil, &ModuleError{Reason: "no module of WebAssembly 2.0: " + err.Error()}
	}
	return c, e.fits(c)
}

// checkHeader tells apart what people take for modules.
func checkHeader(code []byte) error {
	switch {
	case len(code) >= 8 && binary.LittleEndian.Uint32(code[4:]) == 1 && bytes.HasPrefix(code, []byte("\x00asm")):
		return nil
	case len(code) >= 8 && bytes.HasPrefix(code, []byte("\x00asm\x0d\x00\x01\x00")):
		return &ModuleError{Reason: "want a module for WASI preview 1, got a component (WASI preview 2 or later); " +
			"compile for wasip1: the target wasm32-wasip1 of Rust and clang, GOOS=wasip1 of Go"}
	case bytes.HasPrefix(code, []byte("\x00asm")):
		return &ModuleError{Reason: "want a WebAssembly module of version 1, got another version, or not all of one"}
	}
	return &ModuleError{Reason: fmt.Sprintf("want a WebAssembly module, which begins with \"\\x00asm\", got %.8q", code)}
}

// fits says whether a module that is well formed can run here.
func (e *engine) fits(c *checker) error {
	var missing []Import
	for _, i := range c.imports {
		if i.Kind != "function" || !e.offers[i.Module][i.Name] {
			missing = append(missing, i)
		}
	}
	switch {
	case missing != nil:
		return &ImportError{Missing: missing}
	case c.reactor && !c.start:
		return &ModuleError{Reason: "want a program, which exports _start, got a library (a reactor), which exports _initialize"}
	case !c.start:
		return &ModuleError{Reason: "want a program for WASI preview 1, which exports the function _start; this module does not"}
	case c.memories == 0 && c.imports != nil:
		return &ModuleError{Reason: "want a memory, where the functions that the module imports find their arguments; it has none"}
	case c.memory.min > e.pages:
		return &LimitError{Limit: "memory", What: fmt.Sprintf("the module begins with %d bytes of memory and may have %d; "+
			"--memory, Options.Memory allow it more", uint64(c.memory.min)*pageSize, uint64(e.pages)*pageSize)}
	}
	return nil
}

func (c *checker) sections(r *reader) error {
	for r.left() > 0 && r.err == nil {
		id := r.byte()
		var body []byte // that the engine gets
		r.part(func(s *reader) { body = c.section(id, s) })
		if body != nil && r.err == nil {
			c.out.WriteByte(id)
			c.out.Write(binary.AppendUvarint(nil, uint64(len(body))))
			c.out.Write(body)
		}
	}
	return r.err
}

// section reads one, and returns what the engine gets of it; nil is nothing.
func (c *checker) section(id byte, s *reader) []byte {
	switch id {
	case sectionCustom:
		return custom(s)
	case sectionType:
		s.each(func() { s.functionType() })
	case sectionImport:
		s.each(func() { c.imported(s) })
	case sectionFunction:
		s.each(func() { s.u32() })
	case sectionTable:
		return tables(s)
	case sectionMemory:
		s.each(func() { c.memory = s.bound(); c.memories++ })
	case sectionGlobal:
		s.each(func() { s.globalType(); s.constant() })
	case sectionExport:
		s.each(func() { c.exported(s) })
	case sectionStart, sectionDataCount:
		s.u32()
	case sectionElement:
		s.each(func() { s.element() })
	case sectionCode:
		s.each(func() { c.function(s) })
	case sectionData:
		s.each(func() { s.data() })
	default:
		s.fail("section %d is none of WebAssembly 2.0", id)
	}
	return s.b
}

// custom keeps names, which a trap's stack shows, where they are sound.
func custom(s *reader) []byte {
	name := s.name()
	if s.err == nil && name == "name" {
		if s.names(); s.err == nil && s.left() == 0 {
			return s.b
		}
	}
	s.at, s.err = len(s.b), nil
	return nil
}

func (c *checker) imported(s *reader) {
	i := Import{Module: s.name(), Name: s.name()}
	switch kind := s.byte(); kind {
	case 0:
		i.Kind = "function"
		s.u32()
	case 1:
		i.Kind = "table"
		s.valueType(s.byte())
		s.bound()
	case 2:
		i.Kind = "memory"
		s.bound()
	case 3:
		i.Kind = "global"
		s.globalType()
	default:
		s.fail("import of kind %d is none of WebAssembly 2.0", kind)
	}
	c.imports = append(c.imports, i)
}

func (c *checker) exported(s *reader) {
	name := s.name()
	kind := s.byte()
	s.u32()
	c.start = c.start || name == "_start" && kind == 0
	c.reactor = c.reactor || name == "_initialize" && kind == 0
}

// tables writes the section again with a bound for each: table.grow has none of its own.
func tables(s *reader) []byte {
	n := s.count()
	if n > maxTables {
		s.fail("want at most %d tables, got %d", maxTables, n)
	}
	out := binary.AppendUvarint(nil, uint64(n))
	for i := uint32(0); i < n && s.err == nil; i++ {
		kind := s.byte()
		s.valueType(kind)
		b := s.bound()
		if b.min > maxTable {
			s.fail("want a table of at most %d elements, got %d", maxTable, b.min)
		}
		if !b.has || b.max > maxTable {
			b.max = maxTable
		}
		out = binary.AppendUvarint(append(out, kind, 1), uint64(b.min))
		out = binary.AppendUvarint(out, uint64(b.max))
	}
	return out
}

// function reads the body of one: its locals. The engine checks its instructions.
func (c *checker) function(s *reader) {
	s.part(func(body *reader) {
		var locals uint64
		body.each(func() {
			locals += uint64(body.u32())
			body.valueType(body.byte())
		})
		if locals > maxLocals {
			body.fail("want at most %d local variables of a function, got %d", maxLocals, locals)
		}
		if c.locals += locals; c.locals > allLocals {
			body.fail("want at most %d local variables in all", allLocals)
		}
		body.at = len(body.b)
	})
}

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

// each reads a vector's count, and calls read for each of its elements.
func (r *reader) each(read func()) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		read()
	}
}

func (r *reader) functionType() {
	if form := r.byte(); form != 0x60 {
		r.fail("type of form %#x is none of WebAssembly 2.0", form)
	}
	r.valueTypes(r.count())
	r.valueTypes(r.count())
}

func (r *reader) globalType() {
	r.valueType(r.byte())
	if mutable := r.byte(); mutable > 1 {
		r.fail("a global is mutable, 1, or not, 0, got %d", mutable)
	}
}

func (r *reader) data() {
	switch mode := r.u32(); mode {
	case 0:
		r.constant()
	case 1:
	case 2:
		r.u32()
		r.constant()
	default:
		r.fail("data of mode %d is none of WebAssembly 2.0", mode)
	}
	r.bytes(r.u32())
}

// element reads a segment of a table: bit 0 of its mode says that it is passive or declarative, bit 1 that a table is named or that it
// is declarative, bit 2 that its elements are expressions.
func (r *reader) element() {
	mode := r.u32()
	if mode > 7 {
		r.fail("elements of mode %d are none of WebAssembly 2.0", mode)
	}
	if mode&1 == 0 {
		if mode&2 != 0 {
			r.u32()
		}
		r.constant()
	}
	if mode&3 != 0 {
		kind := r.byte()
		if mode&4 != 0 {
			r.valueType(kind)
		}
	}
	if mode&4 != 0 {
		r.each(r.constant)
	} else {
		r.each(func() { r.u32() })
	}
}

// names reads the section of that name: the module's, its functions', their variables'.
func (r *reader) names() {
	for r.left() > 0 && r.err == nil {
		id := r.byte()
		r.part(func(s *reader) {
			switch id {
			case 0:
				s.name()
			case 1:
				s.nameMap()
			case 2:
				s.each(func() { s.u32(); s.nameMap() })
			default:
				s.at = len(s.b)
			}
		})
	}
}

func (r *reader) nameMap() {
	r.each(func() { r.u32(); r.name() })
}
