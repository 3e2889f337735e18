//go:build linux || darwin

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// PassOutput has the caller's terminal show what is written to it as it stands, and returns what undoes that: the output of a
// program on a terminal of its own has been through that one already, and each \r\n of it would become \r\r\n. Input, and the
// signals that keys send, stay as they are. For a file that is no terminal it does nothing.
func PassOutput(f *os.File) (restore func(), err error) {
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return func() {}, nil
	}
	was, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return nil, os.NewSyscallError("tcgetattr", err)
	}
	now := *was
	now.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(f.Fd()), setTermios, &now); err != nil {
		return nil, os.NewSyscallError("tcsetattr", err)
	}
	return func() { unix.IoctlSetTermios(int(f.Fd()), setTermios, was) }, nil
}
