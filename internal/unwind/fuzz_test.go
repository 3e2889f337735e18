package unwind_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/unwind"
)

// Where image has what.
const (
	imageBase  = 0x400000
	imageIndex = 0x100
	imageCIE   = 0x120
	imageFDE   = 0x140
	imageCode  = 0x200
	imageCall  = imageCode + 0x20 // an instruction after a call
	imageStack = 0x300
	imageEnd   = 0x400
)

// image is a program of one function, whose entry in .eh_frame has these instructions, and its stack: each other word returns to
// the function.
func image(instructions ...byte) []byte {
	b := make([]byte, imageEnd)
	put := func(at int, what ...any) {
		for _, v := range what {
			at += must(binary.Encode(b[at:], binary.LittleEndian, v))
		}
	}
	copy(b, "\x7fELF\x02\x01")
	put(32, uint64(64))
	put(54, uint16(56), uint16(2))
	put(64, uint32(1))
	put(120, uint32(0x6474e550), uint32(0), uint64(0), uint64(imageIndex))
	put(imageIndex, []byte{1, 0x1b, 0x03, 0x3b}, int32(0), uint32(1), int32(imageCode-imageIndex), int32(imageFDE-imageIndex))
	put(imageCIE, uint32(imageFDE-imageCIE-4), uint32(0), []byte("\x01zR\x00\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"))
	put(imageFDE, uint32(4+4+4+1+len(instructions)), uint32(imageFDE+4-imageCIE), int32(imageCode-imageFDE-8), uint32(0x100), byte(0), instructions)
	b[imageCall-5] = 0xe8
	for at := imageStack + 8; at < imageEnd; at += 16 {
		put(at, uint64(imageBase+imageCall))
	}
	return b
}

func must(n int, err error) int {
	if err != nil {
		panic(err)
	}
	return n
}

// chain walks the stack of an image.
func chain(t *testing.T, image []byte) []unwind.Place {
	t.Helper()
	return chainFrom(t, image, imageBase+imageCode+0x10, imageBase+imageStack)
}

// chainFrom walks the stack at sp of a thread at pc, and fails a test that makes it read more than maxReads.
func chainFrom(t *testing.T, image []byte, pc, sp uint64) []unwind.Place {
	t.Helper()
	const maxReads = 8 * 600 // frames, each with the words on the stack that may be calls
	all, reads := make([]byte, 1<<16), 0
	copy(all, image)
	s := unwind.New(func(at uint64, b []byte) error {
		if reads++; reads > maxReads || len(b) == 0 || len(b) > 1<<15 {
			t.Fatalf("read %d is of %d bytes", reads, len(b))
		}
		if at -= imageBase; at > uint64(len(all)-len(b)) {
			return errors.New("not mapped")
		}
		copy(b, all[at:])
		return nil
	}, func() ([]byte, error) {
		return fmt.Appendf(nil, "%x-%x r-xp 00000000 00:01 7 /bin/program\n", imageBase, imageBase+len(all)), nil
	})
	return s.Chain(make([]unwind.Place, 0, 8), pc, sp)
}

// back is DW_CFA_remember_state and a DW_CFA_def_cfa_expression that is followed by itself: its length is -12.
var back = []byte("\x0a\x0f\xf4\xff\xff\xff\xff\xff\xff\xff\xff\x01")

// FuzzChain walks programs whose tables lie.
func FuzzChain(f *testing.F) {
	f.Add(image(0x0e, 16))
	f.Add(image(back...))
	f.Add(image([]byte("\x0a\x0f\xf4\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")...))
	noHeaders := image()
	noHeaders[54] = 0 // their size
	f.Add(noHeaders)
	f.Fuzz(func(t *testing.T, b []byte) {
		if places := chain(t, b); len(places) > 8 {
			t.Errorf("%d places", len(places))
		}
	})
}

// TestKernelCode: a call out of code that is of no file is of the function whose return address is the last on the stack.
func TestKernelCode(t *testing.T) {
	const kernel = 0x7fff00000000
	got := chainFrom(t, image(0x0e, 16), kernel, imageBase+imageStack+8)
	if len(got) != 8 || got[0] != (unwind.Place{File: "program", Offset: imageCall}) {
		t.Errorf("called from %+v", got)
	}
	if got := chainFrom(t, image(0x0e, 16), kernel, imageBase+imageStack); len(got) != 0 {
		t.Errorf("called from nowhere: %+v", got)
	}
}

// TestTables: a frame is found by the tables, and of tables that cannot be read by what stands on the stack.
func TestTables(t *testing.T) {
	remembering := make([]byte, 100)
	for i := range remembering {
		remembering[i] = 0x0a
	}
	for _, tt := range []struct {
		name         string
		instructions []byte
		want         int
	}{
		{"of two words", []byte{0x0e, 16}, 8},
		{"remembered and restored", []byte{0x0e, 16, 0x0a, 0x0e, 24, 0x0b}, 8},
		{"an expression of one byte", []byte{0x10, 3, 1, 0, 0x0e, 16}, 8},
		{"of one word, which is no return address", nil, 1},
		{"back to its begin", append([]byte{0x0e, 16}, back...), 1},
		{"beyond its end", []byte{0x0e, 16, 0x0f, 100}, 1},
		{"too much remembered", append([]byte{0x0e, 16}, remembering...), 1},
	} {
		if got := chain(t, image(tt.instructions...)); len(got) != tt.want {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}
