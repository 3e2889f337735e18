package fidelity

// A Remark is what somebody noted about a record that diverged: an annotation of its tape. It changes no verdict.
type Remark struct {
	Side string `json:"side"` // "recorded" or "replay": whose tape it is a note of
	Seq  uint64 `json:"seq"`
	Text string `json:"text"` // one line
}

// Annotate puts what was noted about the records that diverge beside the divergences: recorded and replay give what the sidecar
// of either tape says of one of its records, in one line each, and may be nil.
func (r *Report) Annotate(recorded, replay func(seq uint64) []string) {
	for i := range r.Divergences {
		d := &r.Divergences[i]
		if d.Seq == nil {
			continue
		}
		if d.Category == MissingInRecorded {
			d.remark("replay", *d.Seq, replay)
			continue
		}
		d.remark("recorded", *d.Seq, recorded)
		if d.ReplaySeq != nil {
			d.remark("replay", *d.ReplaySeq, replay)
		}
	}
}

func (d *Divergence) remark(side string, seq uint64, said func(uint64) []string) {
	if said == nil {
		return
	}
	for _, text := range said(seq) {
		d.Annotations = append(d.Annotations, Remark{side, seq, text})
	}
}

// remarks writes what was noted about a divergence.
func (t *textWriter) remarks(indent int, d *Divergence) {
	for _, a := range d.Annotations {
		whose := ""
		if a.Side == "replay" {
			whose = "of the replay, "
		}
		t.line(indent, plain, "noted: "+whose+a.Text)
	}
}
