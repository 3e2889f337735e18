package ttyscrub

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// Scan derives the screens of a recorded stream of size bytes and returns the secrets in it, in the order of the stream. Resizes
// are in the order of their offsets. What was masked has none. The error is r's.
func Scan(r io.ReaderAt, size int64, resizes []Resize, o *Options) ([]Hit, error) {
	hits, err := scan(r, size, resizes, o)
	return sorted(hits), err
}

// scan is Scan, in the order in which the secrets were found.
func scan(r io.ReaderAt, size int64, resizes []Resize, o *Options) ([]Hit, error) {
	d := o.withDefaults()
	l := &ledger{keep: true}
	rules := newRules(&d)
	stripped, model := newStripped(rules, l), newModel(rules, l, d.Rows, d.Cols)
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

// A File is what Clean masks.
type File interface {
	io.ReaderAt
	io.WriterAt
}

// maxRounds bounds how often Clean scans: what was masked may have hidden what is a secret without it.
const maxRounds = 8

// Clean scans a recorded stream of size bytes and masks in place what it finds, until it finds nothing: the last scan is the
// proof. It returns what it masked. The error is f's, or says that there was no end.
func Clean(f File, size int64, resizes []Resize, o *Options) (hits []Hit, err error) {
	for range maxRounds {
		found, err := Scan(f, size, resizes, o)
		if err != nil || len(found) == 0 {
			return sorted(hits), err
		}
		hits = append(hits, found...)
		if err := MaskAt(f, found); err != nil {
			return hits, err
		}
	}
	return hits, fmt.Errorf("ttyscrub: expected no secret after %d rounds of masking, found some: do not share the recording", maxRounds)
}

// MaskShown masks in b, all that a terminal showed, in place what a scrub.Writer does not find in its bytes: secrets that stand in
// pieces there, and those that names give away. The others stay for who hides them in another way.
func MaskShown(b []byte, resizes []Resize, o *Options) {
	d := o.withDefaults()
	for range maxRounds {
		hits, _ := scan(bytes.NewReader(b), int64(len(b)), resizes, &d) // which cannot fail
		hits = slices.DeleteFunc(pieces(hits), func(h Hit) bool { return !h.Part && isWhole(d.Scrub, b, h) })
		if len(hits) == 0 {
			return
		}
		Mask(b, 0, hits)
	}
}

// pieces marks the first range of each secret that has several as a part, as the others are.
func pieces(hits []Hit) []Hit {
	for i := range hits {
		hits[i].Part = hits[i].Part || i+1 < len(hits) && hits[i+1].Part
	}
	return hits
}

// isWhole tells whether a secret is found where its bytes stand.
func isWhole(s *scrub.Scrubber, b []byte, h Hit) bool {
	const around = 256 // bytes that may say what it is
	from := max(h.Start-around, 0)
	return slices.ContainsFunc(s.Find(b[from:min(h.End+around, int64(len(b)))]), func(r scrub.Range) bool {
		return from+r.Start <= h.Start && from+r.End >= h.End
	})
}

// Text returns s with its secrets masked: a title, an argument, the text of an event. The hits' offsets are of s.
func Text(s string, o *Options) (kept string, hits []Hit) {
	d := o.withDefaults()
	l := &ledger{keep: true}
	for _, f := range newRules(&d).in([]byte(s)) {
		l.add(f.rule, []span{{int64(f.start), int64(f.end)}}, f.part)
	}
	if len(l.all) == 0 {
		return s, nil
	}
	b := []byte(s)
	l.mask(b, 0)
	return string(b), l.all
}
