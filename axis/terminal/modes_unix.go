//go:build linux || darwin

package terminal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Modes returns how a terminal treats what is typed and written, in the form that SetModes takes: four words of flags and
// the control characters, in hexadecimal, as `stty -g` has them. They are this system's. "" is what is no terminal.
func Modes(f *os.File) string {
	t, err := modesOf(f)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x:%x:%x:%x:%x", t.Iflag, t.Oflag, t.Cflag, t.Lflag, t.Cc[:])
}

// unread returns how many bytes the program has written that nobody has read yet.
func (p *PTY) unread() (n int) {
	control(p.Master, func(fd int) { n, _ = unix.IoctlGetInt(fd, getUnread) })
	return n
}

// NoEcho reports whether p's terminal takes lines (ICANON) and shows nothing of them (ECHO), as for a password. A program that
// reads keys one by one turns echo off too, and shows them itself.
func (p *PTY) NoEcho() bool {
	t, err := modesOf(p.Master) // which has those of the program's side
	return err == nil && t.Lflag&(unix.ICANON|unix.ECHO) == unix.ICANON
}

// SetModes gives p's terminal the modes that Modes returned; "" leaves it as it was made. A text that Modes does not return
// is an error.
func (p *PTY) SetModes(modes string) error {
	if modes == "" {
		return nil
	}
	t, err := modesOf(p.Slave)
	if err != nil {
		return err
	}
	if err := parseModes(modes, t); err != nil {
		return err
	}
	return setModes(p.Slave, setTermios, t)
}

// parseModes puts what Modes returned into t, whose speed stays.
func parseModes(modes string, t *unix.Termios) error {
	words, chars := strings.Split(modes, ":"), ""
	flags := make([]flag, 4)
	if len(words) == len(flags)+1 {
		chars = words[len(flags)]
		words = words[:len(flags)]
	}
	cc, err := hex.DecodeString(chars)
	if err != nil || len(words) != len(flags) || len(cc) != len(t.Cc) {
		return fmt.Errorf("modes of a terminal %q: want four words of flags and %d characters in hexadecimal", modes, len(t.Cc))
	}
	for i, w := range words {
		if _, err := fmt.Sscanf(w, "%x", &flags[i]); err != nil {
			return fmt.Errorf("modes of a terminal %q: flags %q: %w", modes, w, err)
		}
	}
	t.Iflag, t.Oflag, t.Cflag, t.Lflag = flags[0], flags[1], flags[2], flags[3]
	copy(t.Cc[:], cc)
	return nil
}

func modesOf(f conn) (t *unix.Termios, err error) {
	errControl := control(f, func(fd int) { t, err = unix.IoctlGetTermios(fd, getTermios) })
	if errControl != nil {
		return nil, errControl
	}
	return t, os.NewSyscallError("tcgetattr", err)
}

func setModes(f conn, request uint, t *unix.Termios) (err error) {
	errControl := control(f, func(fd int) { err = unix.IoctlSetTermios(fd, request, t) })
	if errControl != nil {
		return errControl
	}
	return os.NewSyscallError("tcsetattr", err)
}

// A conn is a file, or what holds one.
type conn interface {
	SyscallConn() (syscall.RawConn, error)
}

// control calls do with the descriptor of f, which File.Fd would make blocking.
func control(f conn, do func(fd int)) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Control(func(fd uintptr) { do(int(fd)) })
}

// SignalsOf names the signals that p's terminal makes of keys, in the modes that the program has given it.
func (p *PTY) SignalsOf(keys []byte) (names []string) {
	t, err := modesOf(p.Master)
	if err != nil || t.Lflag&unix.ISIG == 0 {
		return nil
	}
	for _, k := range keys {
		switch k {
		case 0: // what is switched off
		case t.Cc[unix.VINTR]:
			names = append(names, "SIGINT")
		case t.Cc[unix.VQUIT]:
			names = append(names, "SIGQUIT")
		case t.Cc[unix.VSUSP]:
			names = append(names, "SIGTSTP")
		}
	}
	return names
}

// setSize is Resize of a terminal whose slave is closed here.
func (p *PTY) setSize(s Size) (err error) {
	w := &unix.Winsize{Row: uint16(s.Rows), Col: uint16(s.Cols), Xpixel: uint16(s.Width), Ypixel: uint16(s.Height)}
	errControl := control(p.Master, func(fd int) { err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, w) })
	return errors.Join(errControl, os.NewSyscallError("TIOCSWINSZ", err))
}

// foreground is the terminal's foreground group, 0 for none.
func (p *PTY) foreground() (group int) {
	control(p.Master, func(fd int) { group, _ = unix.IoctlGetInt(fd, getForegroup) })
	return group
}
