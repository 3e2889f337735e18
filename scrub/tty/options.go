package tty

import (
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
