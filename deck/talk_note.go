package deck

import "fmt"

// talkNotes are what of a tape is not in its session log, and why: each reason once, with the record where it stood first.
type talkNotes struct {
	reasons []string
	first   map[string]place
	count   map[string]int
}

// maxTalkNotes bounds the reasons: each may quote what stood there.
const maxTalkNotes = 100

func (n *talkNotes) add(at place, err error) { n.say(at, "left out: "+err.Error()) }

func (n *talkNotes) say(at place, reason string) {
	if n.first == nil {
		n.first, n.count = make(map[string]place), make(map[string]int)
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

func (n *talkNotes) list() []string {
	var out []string
	for _, r := range n.reasons {
		text := fmt.Sprintf("%s: %s", n.first[r], r)
		if more := n.count[r] - 1; more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		out = append(out, text)
	}
	return out
}
