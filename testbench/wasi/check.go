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
