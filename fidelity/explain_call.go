package fidelity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// callChanges lists how two messages of JSON-RPC differ, by the paths in what they ask for or answer. What is made up anew in
// each run (ids, progress tokens) is left out where anything else differs.
func (x *explainer) callChanges(was, now []byte) []Change {
	all := bodies.Diff(was, now, x.o.masked)
	told := slices.DeleteFunc(slices.Clone(all), func(c Change) bool { return madeUpInCall[c.Path] })
	if len(told) == 0 {
		return all
	}
	for i := range told {
		told[i].Path = withinCall(told[i].Path)
	}
	return told
}

// madeUpInCall are the paths of what a client or a server makes up anew in each run.
var madeUpInCall = map[string]bool{
	"id": true, "params._meta.progressToken": true, "params.progressToken": true, "params.requestId": true,
}

// withinCall is a path without the member of the message that holds all of it.
func withinCall(path string) string {
	for _, outer := range []string{"params.", "result."} {
		if p, ok := strings.CutPrefix(path, outer); ok {
			return p
		}
	}
	return path
}

// maxTold is how many characters of a value a message of one line tells.
const maxTold = 60

// tellTalk puts what differs between two messages into the message of their divergence: what was called, the path, both values.
func (d *Divergence) tellTalk(p part) {
	c := &d.Changes[0]
	what := d.subject
	if p == answer {
		what += ", the answer"
	}
	was, now := toldValue(c.Was), toldValue(c.Now)
	switch c.Op {
	case Changed:
		what += fmt.Sprintf(": %s: %s → %s", c.Heading(), was.text, now.text)
	case Added:
		what += fmt.Sprintf(": %s: %s", c.Heading(), now.text)
	case Removed:
		what += fmt.Sprintf(": %s: %s", c.Heading(), was.text)
	default:
		what += ": " + c.Heading()
	}
	whole := was.whole && now.whole && c.Coarse == ""
	if more := len(d.Changes) - 1 + d.MoreChanges; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
		whole = false
	}
	d.Message, d.whole = what, whole
}

// nameOfTalk names a recorded message of a conversation: tools/call read_file, message session.update.
func (x *explainer) nameOfTalk(k tape.Kind) string {
	switch k := k.(type) {
	case *tape.MCPJSONRPC:
		return spaced(k.Method, x.subjectIn(k, Recorded))
	case *tape.WSMessage:
		return spaced(cmp.Or(k.Direction, "message"), typeOfMessage(k))
	case *tape.MCPText:
		return spaced("text of", k.From)
	}
	return k.Name()
}

// told is a value in a message.
type told struct {
	text  string
	whole bool
}

func toldValue(s string) told {
	if utf8.RuneCountInString(s) <= maxTold {
		return told{s, true}
	}
	return told{string([]rune(s)[:maxTold-1]) + "…", false}
}
