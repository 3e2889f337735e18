//go:build !linux && !darwin

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
)

// A Caller is the terminal of who runs us; on this system no program runs on a terminal of its own, and there is none.
type Caller struct{ Keys *os.File }

// NewCaller returns nil.
func NewCaller([3]any) *Caller { return nil }

// Foreground is always true here.
func (*Caller) Foreground() bool { return true }

// DropKeys does nothing here.
func (*Caller) DropKeys() {}

// Take does nothing here.
func (*Caller) Take(bool) error { return nil }

// TakeDeaf does nothing here.
func (*Caller) TakeDeaf() error { return nil }

// Release does nothing here.
func (*Caller) Release(bool) {}

// Close does nothing here.
func (*Caller) Close() {}

// File returns nil.
func (*Caller) File() *os.File { return nil }

// Size is not known here.
func (*Caller) Size() (Size, bool) { return Size{}, false }

// Writer returns w.
func (*Caller) Writer(w io.Writer) io.Writer { return w }

// Modes returns "": they are not known here.
func Modes(*os.File) string { return "" }

func (p *PTY) unread() int { return 0 }

// NoEcho tells nothing here.
func (p *PTY) NoEcho() bool { return false }

// SetModes does nothing here.
func (p *PTY) SetModes(string) error { return nil }

// Follow does nothing where there is no SIGWINCH.
func Follow(*os.File, func(Size)) (stop func()) { return func() {} }

// SignalsOf names no signal: terminals here make none.
func (p *PTY) SignalsOf([]byte) []string { return nil }

// osStarter starts nothing on this system.
type osStarter struct{}

// Start implements Starter.
func (osStarter) Start(context.Context, *Program) (Process, error) { return nil, errNoSessions }

var errNoSessions = errors.New("no program runs on a terminal of its own on " + runtime.GOOS)

func openSession(Size) (*PTY, error) { return nil, errNoSessions }

func (p *PTY) setSize(Size) error { return errNoSessions }

func (p *PTY) foreground() int { return 0 }

func signalGroup(int, syscall.Signal) error { return errNoSessions }

func signalName(sig syscall.Signal) string { return sig.String() }

// The signals of the end of a terminal's session, where there are none.
const (
	hangUpSignal   = syscall.SIGHUP
	continueSignal = syscall.Signal(0x12)
	resizeSignal   = syscall.Signal(0x1c)
)
