package deck

import (
	"os"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// CompareOptions say how Compare compares. Nil and zero work.
type CompareOptions struct {
	Mode    fidelity.Mode
	Aligned bool // bare tapes: align the records, so that an inserted one reads as one
}

// Compare compares two recordings lane by lane, or two tapes by position: a recording beside a bare tape counts as its
// tape.
func Compare(a, b string, o *CompareOptions) (*fidelity.Report, error) {
	if o == nil {
		o = new(CompareOptions)
	}
	sa, err := openSide(a)
	if err != nil {
		return nil, err
	}
	defer sa.tape.Close()
	sb, err := openSide(b)
	if err != nil {
		return nil, err
	}
	defer sb.tape.Close()
	if sa.rec == nil || sb.rec == nil {
		compare := fidelity.Compare
		if o.Aligned {
			compare = fidelity.CompareAligned
		}
		return compare(o.Mode, sa.tape.Records(), sb.tape.Records())
	}
	mask, err := sa.rec.Manifest.Masking.masker(&sa.rec.Manifest.Roots)
	if err != nil {
		return nil, err
	}
	lanes := laneOptions(sa.tape.Store, sb.tape.Store, mask)
	for _, s := range []*side{sa, sb} {
		if !s.rec.Finished() {
			lanes.NotCompared = append(lanes.NotCompared, s.rec.Dir+" is unfinished: its recorder was killed")
		}
	}
	return fidelity.CompareLanes(o.Mode, sa.tape.Records(), sb.tape.Records(), lanes)
}

// A side is one of the two things that are compared.
type side struct {
	rec  *Recording // nil for a bare tape
	tape *tape.Tape
}

func openSide(path string) (*side, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		f, err := tape.Open(path, nil)
		return &side{tape: f}, err
	}
	rec, err := Open(path)
	if err != nil {
		return nil, err
	}
	f, err := rec.OpenTape()
	return &side{rec: rec, tape: f}, err
}

// laneOptions are what comparing two recordings needs to explain what it finds.
func laneOptions(recorded, replay cas.Store, m *scrub.Masker) *fidelity.LaneOptions {
	return &fidelity.LaneOptions{
		MaskArg: func(s string) string { return string(m.Mask(scrub.Renumber([]byte(s)))) },
		Payload: func(p *tape.Payload, s fidelity.Side) ([]byte, error) {
			if s == fidelity.Recorded {
				return p.Bytes(recorded)
			}
			return p.Bytes(replay)
		},
	}
}
