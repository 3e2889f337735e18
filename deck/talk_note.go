package deck

import "fmt"

// talkNotes are what of a tape is not in its session log, and why: each reason once, with the record where it stood first.
type talkNotes struct {
	reasons []string
	first   map[string]place
	count   map[string]int
	missing map[string]bool // something of the conversation is lost
}

// maxTalkNotes bounds the reasons: each may quote what stood there.
const maxTalkNotes = 100

// add notes what could not be read.
func (n *talkNotes) add(at place, err error) {
	reason := "left out of the session log: " + err.Error()
	n.say(at, reason)
	n.missing[reason] = true
}

// say notes what is in its place, and may be looked for.
func (n *talkNotes) say(at place, reason string) {
	if n.first == nil {
		n.first, n.count, n.missing = make(map[string]place), make(map[string]int), make(map[string]bool)
	}
	if n.count[reason] == 0 {
		if len(n.reasons) == maxTalkNotes {
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
func (n *talkNotes) list() []string { return n.texts(func(string) bool { return true }) }
func (n *talkNotes) lost() []string { return n.texts(func(r string) bool { return n.missing[r] }) }

func (n *talkNotes) texts(wanted func(reason string) bool) []string {
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
