package jail

import (
	"bytes"

	"golang.org/x/sys/unix"
)

const (
	maxPath  = 4096 // bytes of a path with its final zero: the kernel's PATH_MAX
	pageSize = 4096 // of the smallest pages: a read within one of these meets one of the program's pages
	firstGo  = 256  // bytes; most paths are shorter
)

// readMemory fills buf from the memory of a process. Pages that are not there make it EFAULT, as they do in the
// process's own call.
func readMemory(pid int, addr uint64, buf []byte) error {
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

// writeMemory does the reverse.
func writeMemory(pid int, addr uint64, buf []byte) error {
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(len(buf))
	n, err := unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(buf)}}, 0)
	if err == nil && n < len(buf) {
		err = unix.EFAULT
	}
	return err
}

// readString reads up to the zero byte, never past the page in which that lies: the next one may not be there.
func readString(pid int, addr uint64, buf *[maxPath]byte) (string, error) {
	for n := 0; n < len(buf); {
		part := min(len(buf)-n, pageSize-int((addr+uint64(n))%pageSize))
		if n == 0 {
			part = min(part, firstGo)
		}
		if err := readMemory(pid, addr+uint64(n), buf[n:n+part]); err != nil {
			return "", err
		}
		if i := bytes.IndexByte(buf[n:n+part], 0); i >= 0 {
			return string(buf[:n+i]), nil
		}
		n += part
	}
	return "", unix.ENAMETOOLONG
}
