package deck

import (
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
)

// annotate puts beside the divergences of r what people noted about the records of either tape. A sidecar that cannot be read
// changes no verdict: a note says so.
func annotate(r *fidelity.Report, recorded, replay string) {
	r.Annotate(noted(r, recorded), noted(r, replay))
}

func noted(r *fidelity.Report, tapePath string) func(seq uint64) []string {
	s, err := annotations.Open(tapePath)
	if err != nil {
		r.Notes = append(r.Notes, "annotations are left out: "+err.Error())
	}
	if s == nil {
		return nil
	}
	if of, err := s.Of(tapePath); err == nil && !of && len(s.Annotations) > 0 {
		r.Notes = append(r.Notes, "annotations of "+tapePath+" were made for another tape")
	}
	return func(seq uint64) (said []string) {
		for _, a := range s.About(seq) {
			said = append(said, a.String())
		}
		return said
	}
}
