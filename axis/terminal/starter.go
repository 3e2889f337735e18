package terminal

import (
	"context"
	"os"
	"slices"
	"strings"
	"syscall"
)

// A Starter starts a session's program somewhere: on this machine (nil in SessionOptions), in a jail.
type Starter interface {
	// Start starts p. TTY is to be its controlling terminal and its three streams; the caller closes its own copy of it.
	Start(ctx context.Context, p *Program) (Process, error)
}

// A Program is what a Starter starts.
type Program struct {
	Argv []string
	Env  []string // its whole environment, NAME=VALUE
	Dir  string   // "" is the caller's
	TTY  *os.File
}

// A Process is a program that was started.
type Process interface {
	// Wait waits for its end and lets go of what it ran in, its terminal too. It is called once.
	Wait() (Status, error)
	// Signal sends a signal to its process group, or, where that is gone, does nothing.
	Signal(sig syscall.Signal) error
}

// A Status is how a program ended: Signal is 0 unless a signal ended it.
type Status struct {
	Code   int
	Signal syscall.Signal
}

// environ is the environment that an allowlist makes of have. TERM is term.
func environ(allow []string, term string, have []string) []string {
	var out []string
	add := func(entry string) {
		name, _, _ := strings.Cut(entry, "=")
		out = slices.DeleteFunc(out, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		out = append(out, entry)
	}
	for _, a := range allow {
		given := strings.Contains(a, "=")
		if given {
			add(a)
			continue
		}
		for _, e := range have {
			if a == "*" || strings.HasPrefix(e, a+"=") {
				add(e)
			}
		}
	}
	add("TERM=" + term)
	return out
}
