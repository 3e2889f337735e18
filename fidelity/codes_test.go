package fidelity

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestTitleOfWhatStoodThere reads as words, not as its category.
func TestTitleOfWhatStoodThere(t *testing.T) {
	write := func(before string) tape.Kind {
		return &tape.FileWrite{File: tape.File{Path: "a.txt", ContentHash: sum("new"), LenBytes: 3, Content: inline("new"), Before: inline(before)}}
	}
	r := mustCompare(t, ByteIdentical, tapeOf(write("old")), tapeOf(write("other")))
	if len(r.Divergences) != 1 || !strings.HasPrefix(r.Divergences[0].Message, "what stood there before changed") {
		t.Errorf("%+v", r.Divergences)
	}
}
