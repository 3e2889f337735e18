package cassette

import (
	"cmp"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// texts masks what is neither output nor input: arguments, events, the final record.
type texts struct {
	o      *tty.Options
	report tty.Report
}

func newTexts(o *tty.Options) *texts { return &texts{o: o} }

func (t *texts) mask(s string) string {
	if s == "" {
		return s
	}
	masked, hits := tty.Text(s, t.o)
	t.report.Count(hits)
	return masked
}

func sortHits(hits []tty.Hit) {
	slices.SortFunc(hits, func(a, b tty.Hit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
}
