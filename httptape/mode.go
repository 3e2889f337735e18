package httptape

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A Mode says when a Transport records and when it answers.
type Mode uint8

// The modes. Their names and what they do are those of go-vcr, but for the zero Mode.
const (
	// ModeRecordOnce answers from the tape where there is one, and makes it where there is none. It is the zero Mode. Where
	// the variable CI is set it never records: see RecordVariable.
	ModeRecordOnce Mode = iota
	// ModeReplayOnly answers from the tape. One that is missing is a *MissingTapeError.
	ModeReplayOnly
	// ModeRecordOnly records, and replaces the tape that is there.
	ModeRecordOnly
	// ModeReplayWithNewEpisodes answers what the tape holds, sends on what it does not hold and adds it at the end. What
	// nobody asked for stays and is no error. Where the variable CI is set it never records.
	ModeReplayWithNewEpisodes
	// ModePassthrough sends everything on, and opens and keeps no tape.
	ModePassthrough
)

// String returns the mode in the words of its name: "record once".
func (m Mode) String() string {
	names := [...]string{"record once", "replay only", "record only", "replay with new episodes", "passthrough"}
	if int(m) < len(names) {
		return names[m]
	}
	return "mode " + strconv.Itoa(int(m))
}

// RecordVariable is the environment variable that decides for all tapes of a process that are not ModePassthrough:
//
//	TAPEDECK_RECORD=1   record anew, as ModeRecordOnly does, also where CI is set
//	TAPEDECK_RECORD=0   never record: ModeRecordOnce and ModeReplayWithNewEpisodes are ModeReplayOnly
//	unset               the latter where the variable CI is set to anything but 0 or false
//
// ModeRecordOnly, which somebody wrote down, records whatever CI says.
const RecordVariable = "TAPEDECK_RECORD"

// decided returns what a mode is in this environment.
func decided(m Mode) (Mode, error) {
	if m > ModePassthrough {
		return m, fmt.Errorf("no such mode: %d; the modes are %d to %d", m, ModeRecordOnce, ModePassthrough)
	}
	set := os.Getenv(RecordVariable)
	record, err := strconv.ParseBool(set)
	switch {
	case m == ModePassthrough:
		return m, nil
	case set != "" && err != nil:
		return m, fmt.Errorf("%s is %q: set it to 1 to record, to 0 never to", RecordVariable, set)
	case record:
		return ModeRecordOnly, nil
	case m == ModeRecordOnly && set == "":
		return m, nil
	case set != "" || inCI():
		return ModeReplayOnly, nil
	}
	return m, nil
}

func inCI() bool {
	switch strings.ToLower(os.Getenv("CI")) {
	case "", "0", "false":
		return false
	}
	return true
}
