package tty

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// Scan derives the screens of a recorded stream of size bytes and returns the secrets in it, in the order of the stream. Resizes
// are in the order of their offsets. What was masked has none. The error is r's.
func Scan(r io.ReaderAt, size int64, resizes []Resize, o *Options) ([]Hit, error) {
	d := o.withDefaults()
	hits, err := scan(r, size, resizes, newRules(&d), &d, 0)
	return sorted(hits), err
}

// scan is Scan, in the order in which the secrets were found. In a round after the first one only what has a mask is looked at, for
// half as much as in the round before.
func scan(r io.ReaderAt, size int64, resizes []Resize, rules *rules, d *Options, round int) ([]Hit, error) {
	l := &ledger{keep: true}
	stripped, model := newStripped(rules, l), newModel(rules, l, d.Rows, d.Cols)
	model.rows.marked, model.rows.earns, model.rows.credit = round > 0, earned>>round, maxCredit>>round
	for _, z := range resizes {
		model.resize(z)
	}
	buf := make([]byte, maxBlock)
	for at := int64(0); at < size; {
		n := min(int64(len(buf)), size-at)
		if _, err := r.ReadAt(buf[:n], at); err != nil && (!errors.Is(err, io.EOF) || at+n < size) {
			return nil, err
		}
		stripped.write(buf[:n])
		model.write(buf[:n])
		at += n
	}
	stripped.close()
	model.rest()
	return l.all, nil
}

// sorted orders hits by where they begin, each secret's ranges behind its first.
func sorted(hits []Hit) []Hit {
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(a.Start, b.Start) })
	return hits
}

// maxRounds bounds how often MaskShown scans: what was masked may have hidden what is a secret without it.
const maxRounds = 8

// MaskShown masks in b, all that a terminal showed, in place what a scrub.Writer does not find in its bytes: secrets that stand in
// pieces there, and those that names give away. The others stay for who hides them in another way.
func MaskShown(b []byte, resizes []Resize, o *Options) { maskShown(b, resizes, o) }

// maskShown is MaskShown. It returns what looking at rows cost.
func maskShown(b []byte, resizes []Resize, o *Options) (looked int64) {
	d := o.withDefaults()
	rules := newRules(&d)
	for round := range maxRounds {
		hits, _ := scan(bytes.NewReader(b), int64(len(b)), resizes, rules, &d, round) // which cannot fail
		if len(hits) == 0 {
			break
		}
		whole := d.Scrub.Find(b)
		hits = slices.DeleteFunc(pieces(hits), func(h Hit) bool { return !h.Part && isWhole(whole, h) })
		if len(hits) == 0 {
			break
		}
		Mask(b, 0, hits)
	}
	return rules.looked
}

// pieces marks the first range of each secret that has several as a part, as the others are.
func pieces(hits []Hit) []Hit {
	for i := range hits {
		hits[i].Part = hits[i].Part || i+1 < len(hits) && hits[i+1].Part
	}
	return hits
}

// isWhole tells whether a secret is one of those that are found where their bytes stand, which are in order.
func isWhole(whole []scrub.Range, h Hit) bool {
	i, _ := slices.BinarySearchFunc(whole, h.End, func(r scrub.Range, end int64) int { return cmp.Compare(r.End, end) })
	return i < len(whole) && whole[i].Start <= h.Start
}

// Text returns s with its secrets masked: a title, an argument, the text of an event. The hits' offsets are of s.
func Text(s string, o *Options) (kept string, hits []Hit) {
	d := o.withDefaults()
	l := &ledger{keep: true}
	for _, f := range newRules(&d).in([]byte(s)) {
		l.add(f.Rule, []span{{f.Start, f.End}}, f.Part)
	}
	if len(l.all) == 0 {
		return s, nil
	}
	b := []byte(s)
	l.mask(b, 0)
	return string(b), l.all
}
