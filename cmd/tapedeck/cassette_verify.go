package main

import (
	"errors"

	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// verifiedCassette is what verify --json prints of a cassette.
type verifiedCassette struct {
	Path  string         `json:"path"`
	State cassette.State `json:"state"`
	*cassette.Verification
}

// verifyCassette is verify of a cassette in dir.
func verifyCassette(o *verifyOptions, dir string, std streams) error {
	stop := progressFor(std, o.json).busy("verifying")
	v, err := verifiedOf(dir)
	stop()
	if err != nil {
		return err
	}
	if o.json {
		err = printJSON(std.out, v)
	} else {
		err = v.write(std)
	}
	if err == nil && (len(v.Findings) > 0 || v.State == cassette.StateUnfinished && o.strict) {
		err = &statusError{status: statusDiverged}
	}
	return err
}

// verifiedOf reads all of the cassette. Of one without a manifest, which its recorder writes last, what is whole is sound.
func verifiedOf(dir string) (*verifiedCassette, error) {
	r, err := cassette.Open(dir, &cassette.OpenOptions{Partial: true})
	if err == nil {
		defer r.Close()
	}
	if err != nil || !errors.Is(r.Unfinished(), cassette.ErrNoManifest) {
		v, err := cassette.Verify(dir)
		return &verifiedCassette{dir, cassette.StateFinished, v}, err
	}
	v := &cassette.Verification{ID: r.Manifest().ID, Bytes: r.Size(), Findings: []cassette.Finding{}}
	for e, err := range r.Events(&cassette.EventsOptions{NoBytes: true}) {
		if err != nil {
			return nil, err
		}
		v.Events++
		switch e.Stream {
		case cassette.StreamOutput:
			v.Chunks++
		case cassette.StreamFrames:
			v.Frames++
		}
	}
	return &verifiedCassette{dir, cassette.StateUnfinished, v}, nil
}

func (v *verifiedCassette) write(std streams) error {
	if v.State == cassette.StateUnfinished {
		visible.Fprintln(std.err, "tapedeck: unfinished: its recorder is still at work or came to no end; this is of what is whole")
	}
	for _, f := range v.Findings {
		visible.Fprintln(std.out, f.Text)
	}
	if v.More > 0 {
		visible.Fprintf(std.out, "and %d more\n", v.More)
	}
	verdict := "holds"
	if n := len(v.Findings) + v.More; n > 0 {
		verdict = "does not hold: " + plural(n, "problem", "problems")
	}
	_, err := visible.Fprintf(std.out, "%s (cassette, %s) %s: %s, %s of output\n", shortPath(v.Path), string(v.State), verdict,
		plural(v.Events, "event", "events"), size(v.Bytes))
	return err
}
