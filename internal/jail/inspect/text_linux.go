package inspect

import (
	"bytes"
	"encoding/binary"
)

// Bounds of the lists that are read from a process: how many strings, and of how many bytes in all.
const (
	MaxList     = 1024
	MaxArgBytes = 128 << 10
	MaxEnvBytes = 1 << 20
)

// A TextReader reads paths and lists of strings from processes.
type TextReader struct{ Buf [MaxPath]byte }

// Path reads a path.
func (r *TextReader) Path(pid int, addr uint64) (string, error) {
	return ReadString(pid, addr, &r.Buf)
}

// List reads what a null-terminated array of pointers points to. It stops before the string that would exceed a bound: left is that of
// the bytes.
func (r *TextReader) List(pid int, addr uint64, left int) ([]string, error) {
	const size = 8 // bytes of a pointer
	var out []string
	for addr != 0 && len(out) < MaxList {
		part := min(PageSize-int(addr%PageSize), size*64) &^ (size - 1)
		if part == 0 { // it lies across two pages
			part = size
		}
		pointers := make([]byte, part)
		if err := ReadMemory(pid, addr, pointers); err != nil {
			return nil, err
		}
		for at := 0; at < part && len(out) < MaxList; at += size {
			p := binary.NativeEndian.Uint64(pointers[at:])
			if p == 0 {
				return out, nil
			}
			text, whole, err := r.text(pid, p, left)
			if err != nil || !whole {
				return out, err
			}
			out = append(out, text)
			left -= len(text) + 1
		}
		addr += uint64(part)
	}
	return out, nil
}

// text reads a string of less than limit bytes; whole is false for a longer one.
func (r *TextReader) text(pid int, addr uint64, limit int) (text string, whole bool, err error) {
	var b []byte
	for len(b) < limit {
		at := addr + uint64(len(b))
		part := min(limit-len(b), len(r.Buf), PageSize-int(at%PageSize))
		if len(b) == 0 {
			part = min(part, firstGo)
		}
		if err := ReadMemory(pid, at, r.Buf[:part]); err != nil {
			return "", false, err
		}
		if i := bytes.IndexByte(r.Buf[:part], 0); i >= 0 {
			return string(append(b, r.Buf[:i]...)), true, nil
		}
		b = append(b, r.Buf[:part]...)
	}
	return "", false, nil
}
