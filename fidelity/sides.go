package fidelity

import "fmt"

// sides are what two tapes are called in what is told of them: by default what was recorded and its replay.
type sides [2]string

func (n sides) named() bool { return n != sides{} }

// of is the name of a side.
func (n sides) of(s Side) string {
	if n.named() {
		return n[s]
	}
	return s.String()
}

// tape is what the tape of a side is called.
func (n sides) tape(s Side) string {
	if n.named() {
		return n[s]
	}
	return s.String() + " tape"
}

// versus is what a message says of two values.
func (n sides) versus(was, now string) string {
	return ": " + n.of(Recorded) + " " + was + ", " + n.of(Replay) + " " + now
}

// alone says that one side has a record and the other has not.
func (n sides) alone(s Side) string {
	switch {
	case n.named():
		return "in " + n[s] + " and not in " + n[1-s]
	case s == Recorded:
		return "recorded and not in the replay"
	}
	return "in the replay and not recorded"
}

// counts says how many records the sides have.
func (n sides) counts(was, now int) string {
	if n.named() {
		return fmt.Sprintf("%s in %s, %d in %s", records(was), n[Recorded], now, n[Replay])
	}
	return fmt.Sprintf("%s recorded, %d on replay", records(was), now)
}
