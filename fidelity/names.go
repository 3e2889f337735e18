package fidelity

import (
	"fmt"
	"strings"
)

// sideNames are what two tapes are called in what is told of them: by default what was recorded and its replay.
type sideNames [2]string

func (n sideNames) named() bool { return n != sideNames{} }

// of is the name of a side.
func (n sideNames) of(s Side) string {
	if n.named() {
		return n[s]
	}
	return s.String()
}

// tape is what the tape of a side is called.
func (n sideNames) tape(s Side) string {
	if n.named() {
		return n[s]
	}
	return s.String() + " tape"
}

// versus is what a message says of two values.
func (n sideNames) versus(was, now string) string {
	return ": " + n.of(Recorded) + " " + was + ", " + n.of(Replay) + " " + now
}

// alone says that one side has a record and the other has not.
func (n sideNames) alone(s Side) string {
	switch {
	case n.named():
		return "in " + n[s] + " and not in " + n[1-s]
	case s == Recorded:
		return "recorded and not in the replay"
	}
	return "in the replay and not recorded"
}

// counts says how many records the sides have.
func (n sideNames) counts(was, now int) string {
	if n.named() {
		return fmt.Sprintf("%s in %s, %d in %s", counted(was, "record"), n[Recorded], now, n[Replay])
	}
	return fmt.Sprintf("%s recorded, %d on replay", counted(was, "record"), now)
}

// Uncovered says in one line what was not covered; "" for nothing. First and whole comes what is particular to these
// recordings, then what usual has a short form for: what all of them leave out, and no reader looks for twice.
func Uncovered(gaps []string, usual map[string]string) string {
	var own, always []string
	for _, g := range gaps {
		if short, ok := usual[g]; ok {
			always = append(always, short)
		} else {
			own = append(own, g)
		}
	}
	line := strings.Join(own, ", ")
	if len(always) == 0 {
		return line
	}
	if line != "" {
		line += "; and "
	}
	return line + "as always " + strings.Join(always, ", ") + " (tapedeck show REC --coverage)"
}
