package testbench

import (
	"os"
	"strconv"
	"sync"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/internal/bare"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// latencyField is how long the answer of a model took, in ms.
func latencyField(extra []tape.Field) int64 {
	ms, err := strconv.ParseInt(string(tape.FieldValue(extra, fixture.LatencyKey)), 10, 64)
	if err != nil {
		return 0
	}
	return ms
}

// bareMasker masks what differs from run to run and says nothing, as every bare tape has it. Making one takes longer than a small
// run, and it keeps nothing of a run: benches share it, as long as the directories are the same that it masks.
func bareMasker() (*masks.Masker, error) {
	home, _ := os.UserHomeDir()
	dir, _ := os.Getwd()
	key := [...]string{home, os.TempDir(), dir}
	if m, ok := maskers.Load(key); ok {
		return m.(*masks.Masker), nil
	}
	m, err := bare.NewMasker(nil)
	if err == nil {
		maskers.Store(key, m)
	}
	return m, err
}

var maskers sync.Map // of [home, temporary, working directory] to *masks.Masker
