package gate

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// rulesFor returns the directory of the tapedeck.yaml by which a case goes, and what it says of tests; "" and nil where there is none.
func rulesFor(c *Case) (dir string, rules *recording.TestRules, err error) {
	at, err := filepath.Abs(c.Path)
	if err != nil {
		return "", nil, err
	}
	for dir = filepath.Dir(at); ; dir = filepath.Dir(dir) {
		if recording.Exists(filepath.Join(dir, recording.ConfigName)) {
			config, err := recording.ReadConfig(dir)
			return dir, config.Test, err
		}
		if recording.Exists(filepath.Join(dir, ".git")) || dir == filepath.Dir(dir) {
			return "", nil, nil
		}
	}
}

// An Expectation is one of tapedeck.yaml's that a case has met, or has not.
type Expectation struct {
	Diverges string `json:"diverges"`
	Reason   string `json:"reason"`
	Until    string `json:"until,omitempty"`
	Met      int    `json:"met"`               // divergences that it stands for
	Expired  bool   `json:"expired,omitempty"` // it stands for none any more
}

// expected holds a report against what is expected of the recording called name on the day now. all says that every divergence is: one that
// follows from another needs an expectation of its own, for what it follows from may be the very change that nobody expects.
func expected(rules *recording.TestRules, name string, r *fidelity.Report, now time.Time) (met []Expectation, all bool) {
	if rules == nil {
		return nil, false
	}
	for _, e := range rules.Expect {
		if fits, _ := path.Match(e.Recordings, name); fits || e.Recordings == "" {
			met = append(met, Expectation{Diverges: e.Diverges, Reason: e.Reason, Until: e.Until, Expired: e.Over(now)})
		}
	}
	all = r.Total() > 0 && r.Omitted == 0
	for i := range r.Divergences {
		known := meets(met, &r.Divergences[i]) // counted in each
		all = all && known
	}
	return met, all
}

// meets counts a divergence for each expectation that stands for it.
func meets(all []Expectation, d *fidelity.Divergence) (met bool) {
	for i := range all {
		e := &all[i]
		if e.Diverges == string(d.Category) || strings.Contains(d.Message, e.Diverges) {
			e.Met++
			met = met || !e.Expired
		}
	}
	return met
}

// String says what became of an expectation.
func (e *Expectation) String() string {
	switch {
	case e.Expired:
		return fmt.Sprintf("expected until %s: %s (%s)", e.Until, e.Diverges, e.Reason)
	case e.Met == 0:
		return fmt.Sprintf("expected and not met: %s (%s)", e.Diverges, e.Reason)
	}
	return fmt.Sprintf("expected: %s (%s)", e.Diverges, e.Reason)
}
