package fidelity

import (
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/mcptext"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// spaced puts what is not empty behind each other.
func spaced(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		if p != "" && b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(p)
	}
	return b.String()
}

// subjectOfCall names the tool, prompt or resource of a call whose request stands in its record; "" elsewhere.
func subjectOfCall(k *tape.MCPJSONRPC) string {
	if !inRecord(k.Request) {
		return ""
	}
	return shortened(mcptext.Subject(k.Method, []byte(k.Request.Text)))
}

// typeOfMessage is the "type" of a message that is JSON and stands in its record; "" elsewhere.
func typeOfMessage(k *tape.WSMessage) string {
	if !inRecord(k.Payload) {
		return ""
	}
	return shortened(mcptext.Member([]byte(k.Payload.Text), "type"))
}
