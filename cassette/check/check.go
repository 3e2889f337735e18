package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// Options say how a scenario is checked. Nil and zero work.
type Options struct {
	// Cassette is the cassette's directory in place of the one that the scenario names.
	Cassette string
	// Partial takes a cassette whose recording was not finished. What depends on its end is then unchecked.
	Partial bool
}

// File reads the scenario at path and checks it on its cassette: see Load and Scenario.Check.
func File(ctx context.Context, path string, o *Options) (*Result, error) {
	s, err := Load(path)
	if err != nil {
		return nil, err
	}
	return s.Check(ctx, o)
}

// Check opens the cassette that s is about and holds it against s. The error says why it could not be looked at: it cannot be
// opened, it is another one (cassette.ErrNotBound, both sides named). What s wants and is not so is in the Result.
func (s *Scenario) Check(ctx context.Context, o *Options) (*Result, error) {
	if o == nil {
		o = new(Options)
	}
	dir := o.Cassette
	if dir == "" && s.Cassette.Path != "" {
		dir = filepath.FromSlash(s.Cassette.Path)
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(filepath.FromSlash(s.File)), dir)
		}
	}
	if dir == "" {
		return nil, fmt.Errorf("%s: expected a cassette, got none: give its directory, or write it into the scenario as cassette.path", s.File)
	}
	r, err := cassette.Open(dir, &cassette.OpenOptions{Partial: o.Partial})
	if err != nil {
		return nil, fmt.Errorf("%s: cassette %s: %w", s.File, dir, err)
	}
	defer r.Close()
	return s.On(ctx, r)
}

// On holds an open cassette against s, in one pass. The error is that of reading, or of another cassette than s is about.
func (s *Scenario) On(ctx context.Context, r *cassette.Reader) (*Result, error) {
	m, sum, err := identity(r)
	if err != nil {
		return nil, fmt.Errorf("%s: cassette %s: %w", s.File, r.Dir(), err)
	}
	if err := s.bound(m, sum); err != nil {
		return nil, err
	}
	masks := s.masks()
	probes, seen := s.probes(masks)
	at := size{m.Terminal.InitialRows, m.Terminal.InitialCols}
	g := newEngine(at, probes, seen, masks)
	end, err := g.read(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s: cassette %s: %w", s.File, r.Dir(), err)
	}
	out := s.result(r, end, g.finish(end))
	out.Cassette.SHA256 = sum
	return out, nil
}

// identity returns what r is bound by. The manifest of a recording that was not finished has no digest: it is that of the output
// as far as it goes.
func identity(r *cassette.Reader) (m *cassette.Manifest, sum string, err error) {
	m = r.Manifest()
	if sum = strings.ToLower(m.ContentDigest.SHA256); sum != "" || r.State() == cassette.StateFinished {
		return m, sum, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, r.OutputReader()); err != nil {
		return nil, "", err
	}
	return m, hex.EncodeToString(h.Sum(nil)), nil
}

// bound refuses another cassette than the one that s is about, naming both.
func (s *Scenario) bound(m *cassette.Manifest, sum string) error {
	id := m.ID
	if e := s.Cassette.Emulator; e != nil && *e != m.Terminal.Emulator {
		return fmt.Errorf("%s: %w: the scenario wants %s %s, the cassette has %s %s", s.File, cassette.ErrEmulator, quote(e.Name), quote(e.Version),
			quote(m.Terminal.Emulator.Name), quote(m.Terminal.Emulator.Version))
	}
	if id == s.Cassette.ID && sum == s.Cassette.SHA256 {
		return nil
	}
	return fmt.Errorf("%s: %w: the scenario is about id %s with sha256 %s, this is id %s with sha256 %s; where the change is meant, write these into the scenario",
		s.File, cassette.ErrNotBound, quote(s.Cassette.ID), orNothing(s.Cassette.SHA256), quote(id), orNothing(sum))
}

func orNothing(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

// masks returns what makes screens stable.
func (s *Scenario) masks() masker {
	if s.normalise == nil || s.normalise.Off {
		return newMasker(nil) // for an assertion that asks for it
	}
	return newMasker(s.normalise.options())
}

// probes returns what looks at a cassette for each assertion.
func (s *Scenario) probes(masks masker) (all []probe, seen []*sightings) {
	on := s.normalise != nil && !s.normalise.Off
	for _, a := range s.all {
		p, more := a.probe(masks, on)
		all, seen = append(all, p), append(seen, more...)
	}
	return all, seen
}

func (a *assertion) probe(masks masker, on bool) (probe, []*sightings) {
	switch {
	case a.Frame != nil:
		if a.Frame.Normalise != nil {
			on = *a.Frame.Normalise
		}
		if !on {
			masks = nil
		}
		if a.Frame.Stable > 0 || a.node.Field("frame").Field("stable") != nil {
			return newStableProbe(a.Frame, masks), nil
		}
		return newScreenProbe(a.Frame.whenWant, newTextCondition(a.Frame, masks)), nil
	case a.State != nil:
		return newScreenProbe(a.State.whenWant, newStateCondition(a.State)), nil
	case a.Timing != nil:
		return a.Timing.probe()
	case a.Input != nil:
		return a.Input.probe(), nil
	case a.Service != nil:
		return newServiceProbe(a.Service), nil
	}
	return newProcessProbe(a.Process), nil
}

func (w *timingWant) probe() (probe, []*sightings) {
	switch {
	case w.Order != nil:
		return newOrderProbe(w.Order)
	case w.MaxGap != nil:
		return newGapProbe(time.Duration(*w.MaxGap), w.Between), nil
	case w.Delay != nil:
		return newDelayProbe(w.Delay)
	}
	return newTotalProbe(w.Total), nil
}

func (w *inputWant) probe() probe {
	switch {
	case w.Equals != nil:
		return newBytesProbe([]byte(*w.Equals), true, w.Between)
	case w.Base64 != nil:
		return newBytesProbe(*w.Base64, true, w.Between)
	case w.Contains != "":
		return newBytesProbe([]byte(w.Contains), false, w.Between)
	case w.Keys != nil:
		return newKeysProbe(w.Keys, w.Between)
	case w.Paste != nil:
		return newPasteProbe(w.Paste, w.Between)
	case w.Resizes != nil:
		all := make([]string, len(*w.Resizes))
		for i, s := range *w.Resizes {
			all[i] = sprintf("%dx%d", s.Rows, s.Cols)
		}
		return newListProbe("resizes", isResize, all, w.Between)
	}
	return newListProbe("signals", isSignal, *w.Signals, w.Between)
}

func (s *Scenario) result(r *cassette.Reader, end *ending, all []verdict) *Result {
	m := r.Manifest()
	out := &Result{Version: ResultVersion, Scenario: s.File, Cassette: Checked{
		Path: filepath.ToSlash(r.Dir()), ID: m.ID, DurationMS: ms(end.end),
		Screens: end.moments, Finished: end.whole}}
	for i, v := range all {
		a := s.all[i]
		o := Outcome{Name: a.Name, Family: a.family(), Line: a.node.Line, Column: a.node.Column, Status: v.status, Source: a.source}
		if v.status != Passed {
			o.Wanted, o.Came, o.Evidence = v.wanted, v.came, v.evidence
		}
		out.add(o)
	}
	return out
}

// A processProbe wants the program to have ended in a way.
type processProbe struct {
	eventProbe
	want *processWant
}

func newProcessProbe(w *processWant) *processProbe {
	p := &processProbe{want: w}
	var all []string
	if w.ExitCode != nil {
		all = append(all, sprintf("exits with %d", *w.ExitCode))
	}
	if w.Signal != nil && *w.Signal == "none" {
		all = append(all, "is not ended by a signal")
	} else if w.Signal != nil {
		all = append(all, "is ended by "+*w.Signal)
	}
	if w.TimedOut != nil {
		all = append(all, map[bool]string{true: "has no time left", false: "has time left"}[*w.TimedOut])
	}
	p.v.wanted = "the program " + strings.Join(all, ", ")
	return p
}

func (p *processProbe) finish(end *ending) verdict {
	x, w := &end.process, p.want
	known := x.exited || x.signaled || x.timedOut
	ok := (w.ExitCode == nil || x.exited && x.code == *w.ExitCode) &&
		(w.Signal == nil || *w.Signal == "none" && !x.signaled || x.signaled && sameSignal(x.signal, *w.Signal)) &&
		(w.TimedOut == nil || *w.TimedOut == x.timedOut)
	switch {
	case !end.whole:
		p.settle(Unchecked, "the recording was not finished, the program's end is not known", end.context)
	case !known:
		p.settle(Unchecked, "the cassette does not say how it ended"+because(x.err), end.context)
	case ok:
		p.settle(Passed, "", nil)
	default:
		p.settle(Failed, "it "+x.String(), end.context)
	}
	return p.v
}

// String says how it ended, as in: exits with 1.
func (x *process) String() string {
	s := sprintf("exits with %d", x.code)
	if x.signaled {
		s = "is ended by " + signalName(x.signal)
	} else if !x.exited {
		s = "ends"
	}
	if x.timedOut {
		s += ", its time was up"
	}
	if x.err != "" {
		s += sprintf(" (%s)", x.err)
	}
	return s
}

// signalWords are the words that Go has for signals, which some producers write.
var signalWords = map[string]string{
	"HANGUP": "HUP", "INTERRUPT": "INT", "QUIT": "QUIT", "ILLEGAL INSTRUCTION": "ILL", "TRACE/BREAKPOINT TRAP": "TRAP",
	"ABORTED": "ABRT", "BUS ERROR": "BUS", "FLOATING POINT EXCEPTION": "FPE", "KILLED": "KILL", "USER DEFINED SIGNAL 1": "USR1",
	"SEGMENTATION FAULT": "SEGV", "USER DEFINED SIGNAL 2": "USR2", "BROKEN PIPE": "PIPE", "ALARM CLOCK": "ALRM",
	"TERMINATED": "TERM", "WINDOW CHANGED": "WINCH",
}

// signalName returns a signal as in SIGTERM.
func signalName(s string) string {
	s = strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(s)), "SIG")
	if name, ok := signalWords[s]; ok {
		s = name
	}
	return "SIG" + s
}

func sameSignal(a, b string) bool { return a == b || signalName(a) == signalName(b) }
