package wasi_test

import (
	"encoding/binary"
	"slices"
)

// Modules by hand. A part is bytes as they stand in a module.
type part = []byte

func u32(n uint64) part { return binary.AppendUvarint(nil, n) }

func text(s string) part { return append(u32(uint64(len(s))), s...) }

func join(parts ...part) part { return slices.Concat(parts...) }

// vec is a vector: how many, then each.
func vec(parts ...part) part { return append(u32(uint64(len(parts))), join(parts...)...) }

func section(id byte, body ...part) part {
	b := join(body...)
	return join(part{id}, u32(uint64(len(b))), b)
}

func module(sections ...part) part { return join(part("\x00asm\x01\x00\x00\x00"), join(sections...)) }

// A function imported from a module, of the type of that index.
func function(module, name string, typ uint64) part {
	return join(text(module), text(name), part{0}, u32(typ))
}

// body is a function's code without local variables.
func body(code ...byte) part { return bodyWith(part{0}, code...) }

func bodyWith(locals part, code ...byte) part {
	b := join(locals, code, part{opEnd})
	return join(u32(uint64(len(b))), b)
}

const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opBr          = 0x0c
	opBrIf        = 0x0d
	opEnd         = 0x0b
	opCall        = 0x10
	opDrop        = 0x1a
	opI32Const    = 0x41
	opI32Store    = 0x36
	opMemoryGrow  = 0x40
	opI32Eqz      = 0x45
	opI32Ne       = 0x47
	noResult      = 0x40
)

var (
	// Types 0 to 4: (), (i32,i32)->i32, (i32)->(), (i32,i32,i32,i32)->i32, (i32)->i32.
	types = section(1, vec(part{0x60, 0, 0}, part{0x60, 2, 0x7f, 0x7f, 1, 0x7f}, part{0x60, 1, 0x7f, 0},
		part{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}, part{0x60, 1, 0x7f, 1, 0x7f}))
	oneFunction = section(3, vec(u32(0)))
	onePage     = section(5, vec(part{0, 1}))
	startIsZero = section(7, vec(join(text("_start"), part{0, 0})))
)

// program is a module that does code, with no imports and one page of memory.
func program(code ...byte) part {
	return module(types, oneFunction, onePage, startIsZero, section(10, vec(body(code...))))
}

// importing is a program that has those functions, which come first in the numbering of functions.
func importing(functions []part, code ...byte) part {
	start := section(7, vec(join(text("_start"), part{0}, u32(uint64(len(functions)))), join(text("memory"), part{2, 0})))
	return module(types, section(2, vec(functions...)), oneFunction, onePage, start, section(10, vec(body(code...))))
}
