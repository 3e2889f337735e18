package fidelity

import (
	"fmt"
	"strings"
)

// A Mode says what must match.
type Mode uint8

// The modes.
const (
	// Semantic ignores phase, times, the duration of a process, the latency of MCP and the length of a file. Every hash,
	// digest, clock value and sleep counts. It is the default.
	Semantic Mode = iota
	// ByteIdentical compares every field of every record.
	ByteIdentical
	// Outcome compares what can be seen from outside: the files written and deleted, the exit code of the last process,
	// the number of model calls.
	Outcome
	// PhaseAware compares what the program did as ByteIdentical does, and what the runtime did after it as Semantic does,
	// without its clock reads.
	PhaseAware
)

// modeNames holds each mode's names, the first as people write it and the second as a report does.
var modeNames = [...][]string{
	Semantic:      {"semantic", "semantic"},
	ByteIdentical: {"byte-identical", "byte_identical", "byte"},
	Outcome:       {"outcome", "outcome"},
	PhaseAware:    {"phase-aware", "phase_aware", "byte-user-semantic-runtime"},
}

// ParseMode reads the name of a mode in any accepted spelling: byte-identical (byte, byte_identical), semantic, outcome,
// phase-aware (phase_aware, byte-user-semantic-runtime). The error for any other name lists the four.
func ParseMode(name string) (Mode, error) {
	var known []string
	for m, names := range modeNames {
		for _, n := range names {
			if n == name {
				return Mode(m), nil
			}
		}
		known = append(known, names[0])
	}
	return 0, fmt.Errorf("unknown mode %q: want one of %s", name, strings.Join(known, ", "))
}

// String returns the name as people write it: byte-identical, semantic, outcome, phase-aware.
func (m Mode) String() string { return m.name(0) }

// Snake returns the name as a report holds it: byte_identical, semantic, outcome, phase_aware.
func (m Mode) Snake() string { return m.name(1) }

func (m Mode) name(i int) string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("mode(%d)", uint8(m))
	}
	return modeNames[m][i]
}
