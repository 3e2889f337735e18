//go:build escape

package escape

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A mode is a set of the ways in which a try is made.
type mode int

const (
	recording mode = 1 << iota
	replaying
	isolating // recording with layers over the disk, in the long form

	always = recording | replaying | isolating
)

func (m mode) String() string {
	switch m {
	case recording:
		return "record"
	case replaying:
		return "replay"
	case isolating:
		return "record --isolated"
	case always:
		return "record, replay"
	}
	return ""
}

// A row is one way out of the jail.
type row struct {
	name  string
	tried string
	// how says how it is refused or, of what cannot be held, why not.
	how string
	// out are the modes in which it is expected to get out.
	out mode
	try func(in *inside) outcome
	// spaces are namespaces that are made for the try, with every capability in them.
	spaces uintptr
	// terminal rows are tried by a program with a terminal, the others by one without.
	terminal bool
	// untouched looks, outside and after the run, at what was aimed at; nil for what only the try itself can tell.
	untouched func(o *outside) error
}

// A group is a part of the table.
type group struct {
	title string
	rows  []row
}

var table = []group{
	{"Network", networkRows},
	{"Sockets and memory of the host", socketRows},
	{"Processes of the host", processRows},
	{"Process 1 and the recorder", recorderRows},
	{"Files and mounts", fileRows},
	{"Races against what the recorder reads", raceRows},
	{"Namespaces of its own", nestedRows},
	{"Calls to the kernel", kernelRows},
	{"Terminal", terminalRows},
}

func findRow(name string) *row {
	for _, g := range table {
		for i := range g.rows {
			if g.rows[i].name == name {
				return &g.rows[i]
			}
		}
	}
	return nil
}

// rowsFor lists the rows that a program with or without a terminal tries; only is a part of their names, or empty.
func rowsFor(terminal bool, only string) []*row {
	var list []*row
	for _, g := range table {
		for i := range g.rows {
			if r := &g.rows[i]; r.terminal == terminal && strings.Contains(r.name, only) {
				list = append(list, r)
			}
		}
	}
	return list
}

// What became of a try.
const (
	stateHeld     = "held"
	stateOut      = "OUT"
	stateNotTried = "not tried"
)

// An outcome is what a try saw.
type outcome struct {
	Row    string `json:"row"`
	State  string `json:"state"`
	Detail string `json:"detail"`
}

func held(format string, args ...any) outcome {
	return outcome{State: stateHeld, Detail: fmt.Sprintf(format, args...)}
}

func out(format string, args ...any) outcome {
	return outcome{State: stateOut, Detail: fmt.Sprintf(format, args...)}
}

func notTried(format string, args ...any) outcome {
	return outcome{State: stateNotTried, Detail: fmt.Sprintf(format, args...)}
}

// refused is held where err is one of the errors that mean a refusal. Another error came later: the call got further.
func refused(what string, err error, want ...syscall.Errno) outcome {
	var errno syscall.Errno
	switch {
	case err == nil:
		return out("%s was done", what)
	case !errors.As(err, &errno):
		return out("%s: %v", what, err)
	case slices.Contains(want, errno):
		return held("%s", unix.ErrnoName(errno))
	}
	return out("%s got as far as %s", what, unix.ErrnoName(errno))
}

// all joins tries: the first that got out, else the different ways in which they were held.
func all(outcomes ...outcome) outcome {
	var details []string
	tried := false
	for _, o := range outcomes {
		if o.State == stateOut {
			return o
		}
		tried = tried || o.State == stateHeld
		if o.State == stateHeld && !slices.Contains(details, o.Detail) {
			details = append(details, o.Detail)
		}
	}
	if !tried && len(outcomes) > 0 {
		return outcomes[0]
	}
	slices.Sort(details)
	return outcome{State: stateHeld, Detail: joined(details)}
}

func joined(list []string) string {
	s := ""
	for i, d := range list {
		if i > 0 {
			s += ", "
		}
		s += d
	}
	return s
}

// call makes a system call.
func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func errnoOf(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

func errnoName(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return fmt.Sprint(err)
}
