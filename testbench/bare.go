package testbench

import (
	"slices"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// isBare reports whether records have the keys alone that every producer of the format writes, where ours would have more: what these
// say cannot be compared then, nor be needed for an answer.
func isBare(records []*tape.Record) bool {
	said := false // anything that ours says more of
	for _, rec := range records {
		switch k := rec.Kind.(type) {
		case *tape.LLMCall:
			if k.RequestPayload != nil {
				return false
			}
		case *tape.FileRead:
			if k.Content != nil {
				return false
			}
		case *tape.FileWrite:
			if k.Content != nil {
				return false
			}
		case *tape.FileDelete:
			if k.Before != nil {
				return false
			}
		default:
			continue
		}
		said = true
	}
	return said
}

// leaveOutLooks takes out of the replay that a path was looked at, where the tape never says so. at is a place among the records; it
// returns where that is then.
func (v *verdict) leaveOutLooks(at int) int {
	look := func(rec *tape.Record) bool {
		_, ok := rec.Kind.(*tape.FileStat)
		return ok
	}
	if slices.ContainsFunc(v.recorded, look) {
		return at
	}
	at = min(at, len(v.replayed))
	before := slices.DeleteFunc(slices.Clone(v.replayed[:at]), look)
	after := slices.DeleteFunc(slices.Clone(v.replayed[at:]), look)
	v.replayed = slices.Concat(before, after)
	return len(before)
}
