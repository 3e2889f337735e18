package inspect

import (
	"bytes"

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
