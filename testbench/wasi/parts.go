package wasi

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
