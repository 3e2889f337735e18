package inspect

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// SocketPath returns the path in a struct sockaddr_un; an address of another family, or an abstract one, has none.
func SocketPath(addr []byte) (string, bool) {
	const family = 2 // bytes
	if len(addr) <= family || len(addr) > unix.SizeofSockaddrUnix || binary.NativeEndian.Uint16(addr) != unix.AF_UNIX || addr[family] == 0 {
		return "", false
	}
	return unix.ByteSliceToString(addr[family:]), true
}
