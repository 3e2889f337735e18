package check

import (
	"context"
	"path/filepath"
)

// Run checks the scenario file on the cassette in dir, as a test: each assertion that does not pass is an error of t. Where dir is
// "" it is the cassette that the scenario names.
func Run(t TB, dir, scenario string) {
	t.Helper()
	s, err := Load(scenario)
	if err != nil {
		t.Fatalf("scenario: %v", err)
		return
	}
	r, err := s.Check(context.Background(), &Options{Cassette: dir})
	if err != nil {
		t.Fatalf("scenario: %v", err)
		return
	}
	for i := range r.Assertions {
		if o := &r.Assertions[i]; o.Status != Passed {
			t.Errorf("%s", o.Text(filepath.ToSlash(scenario)))
		}
	}
}
