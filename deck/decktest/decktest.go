// Package decktest has go test replay recordings: each is a subtest that passes where the replay does what was recorded.
//
//	func TestRecordings(t *testing.T) {
//		decktest.Run(t, "testdata/recordings", nil)
//	}
//
// It is what "tapedeck test" does (package gate), with the same tapedeck.yaml. Only tests may import it: as the jail starts the test's
// own executable, importing it calls deck.Enter.
package decktest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/gate"
)

func init() { deck.Enter() }

// Options say how Run tries recordings. Nil and zero work.
type Options struct {
	gate.Options      // Jobs and Report do not count: subtests are parallel, as many at once as go test -parallel says
	Strict       bool // what is unsure fails, and so does what cannot be tried because there is no jail here
}

// Run replays each recording and script at and below path, a subtest each, in parallel. One that does not hold fails with what differs
// first and its cause. Where the jail cannot be made it is skipped, and says why.
func Run(t *testing.T, path string, o *Options) {
	t.Helper()
	if o == nil {
		o = new(Options)
	}
	cases, err := gate.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		name, err := filepath.Rel(path, c.Path)
		if err != nil || name == "." {
			name = filepath.Base(c.Path)
		}
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			o.try(t, c)
		})
	}
}

// try tries one case. What interrupts it is the end of the test.
func (o *Options) try(t *testing.T, c gate.Case) {
	one := o.Options
	one.Report = nil
	s, err := gate.Run(t.Context(), []gate.Case{c}, &one)
	if err != nil {
		defer t.Fatal(err) // after what says where
	}
	if len(s.Results) == 1 {
		o.say(t, s.Results[0])
		return
	}
	for _, r := range s.Results { // of a script's tests
		t.Run(strings.TrimPrefix(r.Name, c.Path+":"), func(t *testing.T) { o.say(t, r) })
	}
}

// say makes a result that of the test.
func (o *Options) say(t *testing.T, r *gate.Result) {
	text := strings.TrimSpace(r.Text() + "\n" + r.Output)
	switch exit := r.Status.Exit(o.Strict); {
	case r.Status == gate.Skipped, r.Status == gate.NoJail && !o.Strict:
		t.Skip(text)
	case exit != 0:
		t.Errorf("%s: %s", r.Status, text)
	case r.Status != gate.Faithful:
		t.Logf("%s: %s", r.Status, text)
	}
}
