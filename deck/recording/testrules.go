package recording

import (
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// TestRules are what tapedeck.yaml says under test: what package gate holds recordings to.
type TestRules struct {
	Mode    string        `yaml:"mode"`    // as fidelity.ParseMode has it; "" is semantic
	Watch   []string      `yaml:"watch"`   // paths that gate too, as in deck.ReplayOptions
	Timeout time.Duration `yaml:"timeout"` // of one replay; 0 is what the caller says
	Expect  []Expect      `yaml:"expect"`
}

// An Expect is a divergence that is known: one whose category is Diverges, or whose message holds it.
type Expect struct {
	Diverges   string `yaml:"diverges"`
	Recordings string `yaml:"recordings"` // a pattern of path.Match for their names; "" is all
	Reason     string `yaml:"reason"`
	Until      string `yaml:"until"` // a day as 2027-03-01, from which on it is red again; "" is for ever
}

// Over reports whether an expectation holds no more on the day now.
func (e *Expect) Over(now time.Time) bool {
	return e.Until != "" && now.Format(time.DateOnly) >= e.Until
}

func (r *TestRules) check() error {
	if r == nil {
		return nil
	}
	if _, err := fidelity.ParseMode(r.Mode); r.Mode != "" && err != nil {
		return fmt.Errorf("test: mode: %w", err)
	}
	if r.Timeout < 0 {
		return fmt.Errorf("test: timeout: %v is less than nothing", r.Timeout)
	}
	for i := range r.Expect {
		if err := r.Expect[i].check(); err != nil {
			return fmt.Errorf("test: expect: %w", err)
		}
	}
	return nil
}

func (e *Expect) check() error {
	_, wrong := path.Match(e.Recordings, "")
	switch {
	case e.Diverges == "":
		return errors.New("diverges is missing: a category such as missing_in_recorded, or a part of the message of a divergence")
	case e.Reason == "":
		return fmt.Errorf("%s: reason is missing", e.Diverges)
	case wrong != nil:
		return fmt.Errorf("%s: recordings: %w", e.Diverges, wrong)
	}
	if e.Until == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, e.Until); err != nil {
		return fmt.Errorf("%s: until %q: want a day, as in 2027-03-01", e.Diverges, e.Until)
	}
	return nil
}
