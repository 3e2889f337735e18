package vt_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/vt/conform"
)

const samples = "../../" + conform.Dir

// against are the cases that contradict xterm, and how.
var against = map[string]string{
	"11state_movecursor#28 Vertical Position Backward": "VPB is not in xterm",
	"decaln_reset":      "DECALN moves the cursor home in xterm",
	"saved_cursor_alt":  "an underscore stays one among line drawing",
	"selective_erasure": "DECSED erases what is not protected",
	"13state_edit#8 IL": "IL moves the cursor to the left margin",
	"61screen_unicode#4 10 combining accents should not crash": "a cell holds more than five marks",
}

func here(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the samples of terminals are not beside this checkout: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCases(t *testing.T) {
	cases, err := conform.Cases(samples)
	here(t, err)
	passed := 0
	for _, c := range cases {
		err := c.Run()
		why, known := against[c.Name]
		switch {
		case err == nil:
			passed++
			if known {
				t.Errorf("%s passes now, although %s", c.Name, why)
			}
		case !known:
			t.Errorf("%s %q: %v", c.Suite, c.Name, err)
		}
	}
	t.Logf("%d of %d cases", passed, len(cases))
}

func TestRecordings(t *testing.T) {
	for _, name := range conform.Recordings {
		t.Run(name, func(t *testing.T) {
			r, err := conform.Open(samples, name)
			here(t, err)
			result := r.Run()
			for _, bad := range result.Bad {
				t.Error(bad)
			}
			t.Logf("%d rows", result.Rows)
		})
	}
}
