package deck

import (
	"errors"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestRecordingOfNewerRules: a replay with other shapes than the recording's does not begin.
func TestRecordingOfNewerRules(t *testing.T) {
	for version, known := range map[int]bool{0: true, 1: true, scrub.Rules: true, scrub.Rules + 5: false} {
		m := &recording.Manifest{Argv: []string{"p"}, ScrubRules: version}
		_, err := newReplayRedactor(t.TempDir(), "", playOf(m, nil), &recording.Roots{}, &recording.Masking{})
		var unknown *scrub.UnknownRulesError
		if errors.As(err, &unknown) == known {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
