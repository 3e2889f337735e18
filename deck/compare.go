package deck

import (
	"errors"
	"os"
	"slices"

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
	if o.Aligned {
		return nil, errors.New("recordings always compare aligned, lane by lane: leave the option out")
	}
	return compareRecordings(sa, sb, o)
}

func compareRecordings(a, b *side, o *CompareOptions) (*fidelity.Report, error) {
	mask, err := a.rec.Manifest.Masking.masker(&a.rec.Manifest.Roots)
	if err != nil {
		return nil, err
	}
	lanes := laneOptions(a.tape.Store, b.tape.Store, mask)
	lanes.Masked = make(map[string]int)
	lanes.NotCompared = offOnOneSide(a.rec.Manifest, b.rec.Manifest)
	for _, s := range []*side{a, b} {
		missing, err := s.rec.missingBlobs(s.tape.Store)
		if err != nil {
			return nil, err
		}
		lanes.NotCompared = slices.Concat(lanes.NotCompared, missing, s.rec.unfinished())
		for _, gap := range s.rec.Manifest.NotCovered() {
			if !slices.Contains(lanes.NotCovered, gap) {
				lanes.NotCovered = append(lanes.NotCovered, gap)
			}
		}
		for name, n := range s.rec.Manifest.Masks {
			lanes.Masked[name] += n
		}
	}
	return fidelity.CompareLanes(o.Mode, a.tape.Records(), b.tape.Records(), lanes)
}

// sortedNames returns the keys of maps, each once, in order.
func sortedNames(maps ...map[string]Axis) []string {
	var out []string
	for _, m := range maps {
		for name := range m {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// NotCovered lists what no axis of m covered, in the order of the axes' names.
func (m *Manifest) NotCovered() []string {
	out := []string{}
	for _, name := range sortedNames(m.Axes) {
		out = append(out, m.Axes[name].NotCovered...)
	}
	return out
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
