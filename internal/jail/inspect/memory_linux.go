package inspect

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Bounds of what is read of a program.
const (
	MaxPath  = 4096 // bytes of a path with its final zero: the kernel's PATH_MAX
	PageSize = 4096 // of the smallest pages: a read within one of these meets one of the program's pages
	firstGo  = 256  // bytes; most paths are shorter
)

// ReadMemory fills buf from the memory of a process. Pages that are not there make it EFAULT, as they do in the
// process's own call.
func ReadMemory(pid int, addr uint64, buf []byte) error {
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}, 0)
	if err != nil {
		return err
	}
	if n < len(buf) {
		return unix.EFAULT
	}
	return nil
}

// WriteMemory does the reverse.
func WriteMemory(pid int, addr uint64, buf []byte) error {
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	n, err := unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}, 0)
	if err == nil && n < len(buf) {
		err = unix.EFAULT
	}
	return err
}

// ReadString reads up to the zero byte, never past the page in which that lies: the next one may not be there.
func ReadString(pid int, addr uint64, buf *[MaxPath]byte) (string, error) {
	for n := 0; n < len(buf); {
		part := min(len(buf)-n, PageSize-int((addr+uint64(n))%PageSize))
		if n == 0 {
			part = min(part, firstGo)
		}
		if err := ReadMemory(pid, addr+uint64(n), buf[n:n+part]); err != nil {
			return "", err
		}
		if i := bytes.IndexByte(buf[n:n+part], 0); i >= 0 {
			return string(buf[:n+i]), nil
		}
		n += part
	}
	return "", unix.ENAMETOOLONG
}

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
