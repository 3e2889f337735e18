package deck

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// TestDiagnosis: what is only less seen keeps nothing from being recorded.
func TestDiagnosis(t *testing.T) {
	for name, tt := range map[string]struct {
		checks []jail.Check
		works  bool
	}{
		"all":           {[]jail.Check{{Name: "overlay", OK: true}, {Name: "files", OK: true, Evidence: true}}, true},
		"less evidence": {[]jail.Check{{Name: "overlay", OK: true}, {Name: "files", Evidence: true}}, true},
		"no overlay":    {[]jail.Check{{Name: "overlay"}, {Name: "files", OK: true, Evidence: true}}, false},
	} {
		if d := diagnosis(tt.checks); d.Works != tt.works || len(d.Checks) != len(tt.checks) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
