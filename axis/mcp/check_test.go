package mcp

import (
	"bytes"
	"testing"

	"github.com/tapedeck-dev/tapedeck/corpus"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func TestChecker(t *testing.T) {
	t.Parallel()
	open, text, end := &tape.MCPOpen{Conversation: 1}, &tape.MCPText{Conversation: 1}, &tape.MCPClose{Conversation: 1}
	call, foreign := &tape.MCPJSONRPC{Conversation: 1}, &tape.MCPJSONRPC{}
	for name, c := range map[string]struct {
		kinds []tape.Kind
		wrong int // index of the only one that does not fit; -1 for none
	}{
		"as written":               {[]tape.Kind{foreign, open, text, call, &tape.MCPOpen{Conversation: 2}, end, &tape.MCPText{Conversation: 2}}, -1},
		"twice":                    {[]tape.Kind{open, open, text}, 1},
		"without a number":         {[]tape.Kind{&tape.MCPOpen{}}, 0},
		"text of none":             {[]tape.Kind{open, &tape.MCPText{}}, 1},
		"the end of one unknown":   {[]tape.Kind{open, &tape.MCPClose{Conversation: 9}}, 1},
		"a call before it began":   {[]tape.Kind{call, open}, 0},
		"a call after its end":     {[]tape.Kind{open, end, call}, 2},
		"other kinds have nothing": {[]tape.Kind{&tape.ClockSleep{}, foreign}, -1},
	} {
		var check Checker
		for i, k := range c.kinds {
			if err := check.Check(k); (err != nil) != (i == c.wrong) {
				t.Errorf("%s: record %d: %v", name, i, err)
			}
		}
	}
}

// TestCheckerOfCorpus holds the tapes of the corpus to what they say of their conversations.
func TestCheckerOfCorpus(t *testing.T) {
	t.Parallel()
	cases, err := corpus.Tapes()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		r, err := tape.NewReader(bytes.NewReader(c.Body), c.Name)
		if err != nil || c.Get("expect") != "loads" {
			continue
		}
		got := ""
		var check Checker
		for rec, err := range r.Records() {
			if err != nil {
				t.Fatal(err)
			}
			if check.Check(rec.Kind) != nil {
				got = "unsound"
			}
		}
		if want := c.Get("conversations"); got != want {
			t.Errorf("%s: the conversations are %q, want %q", c.Name, got, want)
		}
	}
}
