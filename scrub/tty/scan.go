package tty

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// Defaults of Options.
const (
	DefaultHold = 64 << 10        // bytes
	DefaultAge  = 2 * time.Second // of the oldest byte held
	DefaultRows = 24
	DefaultCols = 80
)

// Options say what is looked for. Nil and zero work: the shapes alone, and addresses of email.
type Options struct {
	// Scrub tells secrets; nil looks for the shapes alone. Passwords that are typed without echo become known to it, where it
	// is not nil.
	Scrub *scrub.Scrubber
	// Accounts are identifiers of accounts that are hidden wherever they stand as words, of 3 bytes or more.
	Accounts []string
	// KeepEmail leaves addresses of email as they are.
	KeepEmail bool
	// Rows and Cols are the size at the beginning; 0 is 24 and 80.
	Rows, Cols int
	// Hold is how many bytes, and Age how long, what was written is held back for secrets that only the screen shows; 0 is 64
	// KiB and 2 s.
	Hold int
	Age  time.Duration
}

func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Scrub == nil {
		d.Scrub = shapesAlone()
	}
	if d.Rows <= 0 {
		d.Rows = DefaultRows
	}
	if d.Cols <= 0 {
		d.Cols = DefaultCols
	}
	if d.Hold <= 0 {
		d.Hold = DefaultHold
	}
	if d.Age <= 0 {
		d.Age = DefaultAge
	}
	return d
}

// RuleNames lists the rules that are looked for, sorted. A secret that a name tells has that for its rule.
func (o *Options) RuleNames() []string {
	d := o.withDefaults()
	names := append(d.Scrub.RuleNames(), "rest", "typed")
	if !d.KeepEmail {
		names = append(names, "email")
	}
	if len(d.Accounts) > 0 {
		names = append(names, "account")
	}
	slices.Sort(names)
	return names
}

// A Hit is a range of the raw stream whose text is a secret: from Start to before End, in bytes. Sequences that stand in it are
// no part of the secret; see Mask.
type Hit struct {
	Start, End int64
	Rule       string
	// Part says that it is a further range of the secret before it, which counts once.
	Part bool
	// Late says that the bytes had left before it was found.
	Late bool
}

// A Resize is a size that a terminal had from an offset of the stream on.
type Resize struct {
	Offset     int64
	Rows, Cols int
}

// A Report counts secrets by their rules.
type Report struct {
	Hits map[string]int
	Late int // of them were found after the bytes had left
}

// Rules lists the rules that found something, sorted.
func (r Report) Rules() []string { return slices.Sorted(maps.Keys(r.Hits)) }

// Add adds what another report counts.
func (r *Report) Add(o Report) {
	for rule, n := range o.Hits {
		r.count(rule, n)
	}
	r.Late += o.Late
}

// Count adds hits.
func (r *Report) Count(hits []Hit) {
	for _, h := range hits {
		if h.Part {
			continue
		}
		r.count(h.Rule, 1)
		if h.Late {
			r.Late++
		}
	}
}

func (r *Report) count(rule string, n int) {
	if r.Hits == nil {
		r.Hits = make(map[string]int)
	}
	r.Hits[rule] += n
}

// shapesAlone tells secrets by their shapes. No placeholder is made, so the key does not matter.
var shapesAlone = sync.OnceValue(func() *scrub.Scrubber { return scrub.New(scrub.Key{}, nil) })

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
