package derive

import (
	"fmt"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// notes are what of a tape is not in its session log, and why: each reason once, with the record where it stood first.
type notes struct {
	reasons []string
	first   map[string]place
	count   map[string]int
	missing map[string]bool // something of the conversation is lost
}

// maxNotes bounds the reasons: each may quote what stood there.
const maxNotes = 100

func (n *notes) add(at place, err error) {
	reason := "left out of the session log: " + err.Error()
	n.say(at, reason)
	n.missing[reason] = true
}

// say notes what is in its place, and may be looked for.
func (n *notes) say(at place, reason string) {
	if n.first == nil {
		n.first, n.count, n.missing = make(map[string]place), make(map[string]int), make(map[string]bool)
	}
	if n.count[reason] == 0 {
		if len(n.reasons) == maxNotes {
			reason = "and more of the kind"
		}
		if n.count[reason] == 0 {
			n.reasons = append(n.reasons, reason)
			n.first[reason] = at
		}
	}
	n.count[reason]++
}

// list returns all of them, lost those alone that something is lost by.
func (n *notes) list() []string { return n.texts(func(string) bool { return true }) }
func (n *notes) lost() []string { return n.texts(func(r string) bool { return n.missing[r] }) }

func (n *notes) texts(wanted func(reason string) bool) []string {
	var out []string
	for _, r := range n.reasons {
		if !wanted(r) {
			continue
		}
		text := fmt.Sprintf("%s: %s", n.first[r], r)
		if more := n.count[r] - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		out = append(out, text)
	}
	return out
}

// A logLine is one event and its place.
type logLine struct {
	seq   int // of the session log
	place place
	event sessionlog.Event
}

// append adds the line of an event, in the order of keys that the session log has. The error is the event's: b is then as it
// was.
func (l *logLine) append(b []byte) ([]byte, error) {
	n := len(b)
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, int64(l.seq), 10)
	b = append(b, `,"event":`...)
	b, err := sessionlog.AppendEvent(b, l.event)
	if err != nil {
		return b[:n], err
	}
	b = append(b, `,"g":`...)
	b = strconv.AppendUint(b, l.place.g, 10)
	b = append(b, `,"t_ms":`...)
	b = strconv.AppendInt(b, l.place.ms, 10)
	return append(b, "}\n"...), nil
}
