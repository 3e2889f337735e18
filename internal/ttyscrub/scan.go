package ttyscrub

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Scan derives the screens of a recorded stream of size bytes and returns the secrets in it, in the order of the stream. Resizes
// are in the order of their offsets. What was masked has none. The error is r's.
func Scan(r io.ReaderAt, size int64, resizes []Resize, o *Options) ([]Hit, error) {
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
	return sorted(l.all), nil
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
