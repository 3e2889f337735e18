package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// PIDs says which PID the next process or thread inside gets: a socket to the jail's init, for only who is inside sees them from there. Nil
// knows nothing.
type PIDs struct{ socket int }

// PIDsOf takes over what ServePIDs returned.
func PIDsOf(socket int) *PIDs { return &PIDs{socket} }

// Close ends it.
func (p *PIDs) Close() {
	if p != nil {
		unix.Close(p.socket)
	}
}

// Last is the PID that was given last; 0 where that cannot be told. Where one is said, it is to have been that: the next one is the first free
// one behind it.
func (p *PIDs) Last(is int) int {
	if p == nil {
		return 0
	}
	var packet [4]byte
	binary.NativeEndian.PutUint32(packet[:], uint32(is))
	if n, err := unix.Write(p.socket, packet[:]); err != nil || n < len(packet) || !received(p.socket, packet[:]) {
		return 0
	}
	return int(binary.NativeEndian.Uint32(packet[:]))
}

// ServePIDs answers PIDs on the socket that it returns, until that is closed, from file, which is ns_last_pid of the kernel. It sleeps in the
// kernel, which wakes it without a scheduler.
func ServePIDs(file int) (socket int, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	go func() {
		defer unix.Close(fds[0])
		var packet [4]byte
		for received(fds[0], packet[:]) {
			if pid := int(binary.NativeEndian.Uint32(packet[:])); pid > 0 {
				SetLastPID(file, pid)
			}
			binary.NativeEndian.PutUint32(packet[:], uint32(lastPID(file)))
			if _, err := unix.Write(fds[0], packet[:]); err != nil {
				return
			}
		}
	}()
	return fds[1], nil
}

// received reads a packet, and reports whether there was one.
func received(socket int, packet []byte) bool {
	for {
		n, err := unix.Read(socket, packet)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n == len(packet)
		}
	}
}

// SetLastPID writes from the beginning of the file, which two of our stages share: the kernel passes over what is written elsewhere.
func SetLastPID(file, pid int) {
	unix.Pwrite(file, strconv.AppendInt(nil, int64(pid), 10), 0)
}

func lastPID(file int) int {
	var text [16]byte
	n, _ := unix.Pread(file, text[:], 0)
	pid, _ := strconv.Atoi(string(bytes.TrimSpace(text[:max(n, 0)]))) // 0 of what is no such file
	return pid
}
