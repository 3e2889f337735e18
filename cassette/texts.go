package cassette

import (
	"cmp"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/ttyscrub"
)

// texts masks what is neither output nor input: arguments, events, the final record.
type texts struct {
	o      *ttyscrub.Options
	report ttyscrub.Report
}

func newTexts(o *ttyscrub.Options) *texts { return &texts{o: o} }

func (t *texts) mask(s string) string {
	if s == "" {
		return s
	}
	masked, hits := ttyscrub.Text(s, t.o)
	t.report.Count(hits)
	return masked
}

func sortHits(hits []ttyscrub.Hit) {
	slices.SortFunc(hits, func(a, b ttyscrub.Hit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
}
