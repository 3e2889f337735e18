//go:build !linux && !darwin

package terminal

import (
	"io"
	"os"
)

// A Caller is the terminal of who runs us; on this system no program runs on a terminal of its own, and there is none.
type Caller struct{ Keys *os.File }

// NewCaller returns nil.
func NewCaller([3]any) *Caller { return nil }

// Foreground is always true here.
func (*Caller) Foreground() bool { return true }

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
