package fidelity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// TestKeys: what another producer never says of a kind cannot differ; what it says of one record counts for all of the kind.
func TestKeys(t *testing.T) {
	theirs := func() []tape.Kind {
		return []tape.Kind{
			&tape.LLMCall{Exchange: tape.Exchange{RequestDigest: sum("r"), Response: inline("a")}},
			&tape.FileWrite{File: tape.File{Path: "a", ContentHash: sum("x"), LenBytes: 1}},
		}
	}
	ours := []tape.Kind{
		&tape.LLMCall{Exchange: tape.Exchange{RequestDigest: sum("r"), Response: inline("a"), RequestPayload: inline("r")}, Model: "m"},
		&tape.FileWrite{File: tape.File{Path: "a", ContentHash: sum("x"), LenBytes: 1, Content: inline("x")}},
	}
	compared := func(foreign []tape.Kind) []Category {
		keys, err := KeysOf(tapeOf(foreign...))
		if err != nil {
			t.Fatal(err)
		}
		return categories(mustCompare(t, ByteIdentical, tapeOf(foreign...), keys.Only(tapeOf(ours...))))
	}
	if got := compared(theirs()); len(got) > 0 {
		t.Errorf("keys of ours alone differ: %v", got)
	}
	rich := theirs()
	rich[1].(*tape.FileWrite).Mode = "100644"
	if diff := cmp.Diff([]Category{FileWriteMode}, compared(rich)); diff != "" {
		t.Error(diff)
	}
	other := theirs()
	other[0].(*tape.LLMCall).Response = inline("b")
	if diff := cmp.Diff([]Category{LLMResponseHash}, compared(other)); diff != "" {
		t.Error(diff)
	}
}

// TestKeysOfAnother: keys that only one side can have are taken away from it: those that are not known here too, and ordinals.
func TestKeysOfAnother(t *testing.T) {
	known := []tape.Field{{Name: "known", Value: []byte(`1`)}}
	theirs := func(yield func(*tape.Record, error) bool) {
		yield(&tape.Record{G: 7, Extra: append(known, tape.Field{Name: "line", Value: []byte(`2`)}), Kind: &tape.ClockRead{
			Source: "wall", ValueMS: 1, Extra: append(known, tape.Field{Name: "trace", Value: []byte(`"x"`)}),
		}}, nil)
	}
	ours := func(yield func(*tape.Record, error) bool) {
		yield(&tape.Record{Extra: known, Kind: &tape.ClockRead{Source: "wall", ValueMS: 1, Extra: known}}, nil)
	}
	keys, err := KeysOf(ours)
	if err != nil {
		t.Fatal(err)
	}
	if got := categories(mustCompare(t, ByteIdentical, keys.Only(theirs), ours)); len(got) > 0 {
		t.Errorf("%v", got)
	}
	if got := categories(mustCompare(t, ByteIdentical, theirs, ours)); len(got) != 3 {
		t.Errorf("as they stand: %v, want the ordinal and two extra keys", got)
	}
}
