package jail

import "golang.org/x/sys/unix"

// clockCode is what takes the place of functions of the vDSO, by their names; nothing for those that stay.
var clockCode = map[string][]byte{
	"clock_gettime": again(unix.SYS_CLOCK_GETTIME),
	"gettimeofday":  again(unix.SYS_GETTIMEOFDAY),
	"time":          again(unix.SYS_TIME),
	"getrandom": {
		0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, // mov rax, -ENOSYS: the C library makes the call
		0xc3, // ret
	},
	"clock_getres":      nil,
	"getcpu":            nil,
	"sgx_enter_enclave": nil,
}

// again makes a call until no signal has interrupted it.
func again(nr byte) []byte {
	return []byte{
		0xb8, nr, 0x00, 0x00, 0x00, // mov eax, nr
		0x0f, 0x05, //                 syscall
		0x83, 0xf8, 0xfc, //           cmp eax, -EINTR
		0x74, 0xf4, //                 je  to the first
		0xc3, //                       ret
		0xcc, 0xcc, 0xcc,
	}
}
