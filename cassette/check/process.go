package check

import (
	"strings"
)

// A processProbe wants the program to have ended in a way.
type processProbe struct {
	eventProbe
	want *processWant
}

func newProcessProbe(w *processWant) *processProbe {
	p := &processProbe{want: w}
	var all []string
	if w.ExitCode != nil {
		all = append(all, sprintf("exits with %d", *w.ExitCode))
	}
	if w.Signal != nil && *w.Signal == "none" {
		all = append(all, "is not ended by a signal")
	} else if w.Signal != nil {
		all = append(all, "is ended by "+*w.Signal)
	}
	if w.TimedOut != nil {
		all = append(all, map[bool]string{true: "has no time left", false: "has time left"}[*w.TimedOut])
	}
	p.v.wanted = "the program " + strings.Join(all, ", ")
	return p
}

func (p *processProbe) finish(end *ending) verdict {
	x, w := &end.process, p.want
	known := x.exited || x.signaled || x.timedOut
	ok := (w.ExitCode == nil || x.exited && x.code == *w.ExitCode) &&
		(w.Signal == nil || *w.Signal == "none" && !x.signaled || x.signaled && sameSignal(x.signal, *w.Signal)) &&
		(w.TimedOut == nil || *w.TimedOut == x.timedOut)
	switch {
	case !end.whole:
		p.settle(Unchecked, "the recording was not finished, the program's end is not known", end.context)
	case !known:
		p.settle(Unchecked, "the cassette does not say how it ended"+because(x.err), end.context)
	case ok:
		p.settle(Passed, "", nil)
	default:
		p.settle(Failed, "it "+x.String(), end.context)
	}
	return p.v
}

// String says how it ended, as in: exits with 1.
func (x *process) String() string {
	s := sprintf("exits with %d", x.code)
	if x.signaled {
		s = "is ended by " + signalName(x.signal)
	} else if !x.exited {
		s = "ends"
	}
	if x.timedOut {
		s += ", its time was up"
	}
	if x.err != "" {
		s += sprintf(" (%s)", x.err)
	}
	return s
}

// signalWords are the words that Go has for signals, which some producers write.
var signalWords = map[string]string{
	"HANGUP": "HUP", "INTERRUPT": "INT", "QUIT": "QUIT", "ILLEGAL INSTRUCTION": "ILL", "TRACE/BREAKPOINT TRAP": "TRAP",
	"ABORTED": "ABRT", "BUS ERROR": "BUS", "FLOATING POINT EXCEPTION": "FPE", "KILLED": "KILL", "USER DEFINED SIGNAL 1": "USR1",
	"SEGMENTATION FAULT": "SEGV", "USER DEFINED SIGNAL 2": "USR2", "BROKEN PIPE": "PIPE", "ALARM CLOCK": "ALRM",
	"TERMINATED": "TERM", "WINDOW CHANGED": "WINCH",
}

// signalName returns a signal as in SIGTERM.
func signalName(s string) string {
	s = strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(s)), "SIG")
	if name, ok := signalWords[s]; ok {
		s = name
	}
	return "SIG" + s
}

func sameSignal(a, b string) bool { return a == b || signalName(a) == signalName(b) }
