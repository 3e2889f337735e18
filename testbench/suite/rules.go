package suite

import (
	"fmt"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// Rules returns the calls of models on the tape at path, or that of a recording, as rules of a fixture, in order. The error is that of
// the tape, or that a blob which a call names is missing; a tape without such a call has no rules.
func Rules(path string) ([]fixture.Rule, error) {
	path = testbench.TapePath(path)
	t, err := tape.Open(path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	rules, err := fixture.FromTape(t.Records(), t.Store)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}
