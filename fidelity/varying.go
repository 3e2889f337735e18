package fidelity

import (
	"bytes"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Varies is the mask of a word that two replays of one program do not share: it is another one in every run, whatever the program is.
const Varies = "varies"

// Again is one more replay of the program that was replayed, over the same inputs. What differs between these two differs by chance, and is
// no divergence where it stands in the place of a recorded word; what both say alike, and the recording does not, is a change.
type Again struct {
	Records Records
	Masks   *masks.Masker // of its texts
	Payload func(p *tape.Payload) ([]byte, error)
}

// again pairs the records of a replay with those of one more.
type again struct {
	*maskings                         // of these two: the replay stands for what was recorded
	of        map[uint64]*tape.Record // by the number of the replay's record
}

// pairAgain compares a replay with one more; nil where there is none.
func pairAgain(c *comparison, mode Mode, replay Records) (*again, error) {
	other := c.o.Again
	if other == nil || mode == ByteIdentical {
		return nil, nil
	}
	o := c.o
	o.Again, o.Screens, o.LongFiles, o.Masks = nil, nil, [2]map[string]string{}, [2]*masks.Masker{c.o.Masks[Replay], other.Masks}
	o.Payload = func(p *tape.Payload, s Side) ([]byte, error) {
		if s == Recorded {
			return c.o.Payload(p, Replay)
		}
		return other.Payload(p)
	}
	lanes, err := compareAll(mode, replay, other.Records, &o, true)
	if err != nil {
		return nil, err
	}
	return &again{lanes.masked, lanes.paired}, nil
}

// kept are records that can be read more than once.
func kept(records Records) Records {
	var all []*tape.Record
	for rec, err := range records {
		if err != nil {
			return func(yield func(*tape.Record, error) bool) { yield(nil, err) }
		}
		all = append(all, rec)
	}
	return func(yield func(*tape.Record, error) bool) {
		for _, rec := range all {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// record is the one that stands for the replay's of a pair; nil for none.
func (a *again) record(of pair) *tape.Record {
	if a == nil {
		return nil
	}
	return a.of[of.b.rec.Seq]
}

// varies lists where a facet of a pair differs, where that is another word in each run; else nothing.
func (c *maskings) varies(f *facet, of pair) []hidden {
	next := c.again.record(of)
	if next == nil || f.part == ofAnswer {
		return nil
	}
	d := c.again.differ
	d.record(of.b.rec, next)
	i := slices.IndexFunc(d.facets, func(g facet) bool { return g.category == f.category && g.place == f.place })
	if i < 0 { // they say the same
		return nil
	}
	was, errA := c.side(f, Recorded)
	now, errB := c.side(f, Replay)
	then, errC := c.again.side(&d.facets[i], Replay)
	if errA != nil || errB != nil || errC != nil || !c.byChance(was, now, then) {
		return nil
	}
	named := *f
	named.besides = Varies
	found, _ := c.placesIn(&named, was, now)
	return found
}

// headerVaries is varies of a header.
func (c *maskings) headerVaries(name, was, now string, of pair) bool {
	next := c.again.record(of)
	if next == nil || credential.MatchString(name) {
		return false
	}
	fields, _ := requestHeaders(next.Kind)
	return c.byChance([]byte(was), []byte(now), []byte(c.headersOf(fields)[name]))
}

// byChance reports whether each word by which a replay differs from what was recorded is another one on one more replay, or one of
// several that stand in another order there: an order may be the same twice.
func (c *maskings) byChance(was, now, then []byte) bool {
	was, _ = c.o.Masks[Recorded].Trace(scrub.Renumber(was))
	now, _ = c.o.Masks[Replay].Trace(scrub.Renumber(now))
	then, _ = c.again.o.Masks[Replay].Trace(scrub.Renumber(then))
	a, b, t := wordsOf(was), wordsOf(now), wordsOf(then)
	if !a.shapedAs(b) || !b.shapedAs(t) {
		return false
	}
	var from, to [][]byte
	varying, steady := false, false
	for i := range a.words {
		if bytes.Equal(a.words[i], b.words[i]) {
			continue
		}
		from, to = append(from, a.words[i]), append(to, b.words[i])
		if bytes.Equal(b.words[i], t.words[i]) {
			steady = true
		} else {
			varying = true
		}
	}
	slices.SortFunc(from, bytes.Compare)
	slices.SortFunc(to, bytes.Compare)
	return varying && (!steady || slices.EqualFunc(from, to, bytes.Equal))
}

// A wording is a text taken apart: its words, and what stands before, between and behind them.
type wording struct{ words, between [][]byte }

func wordsOf(text []byte) (w wording) {
	for start := 0; ; {
		at := start
		for at < len(text) && !ofWord(text[at]) {
			at++
		}
		w.between = append(w.between, text[start:at])
		if start = at; at == len(text) {
			return w
		}
		for at < len(text) && ofWord(text[at]) {
			at++
		}
		w.words = append(w.words, text[start:at])
		start = at
	}
}

// ofWord reports whether a byte may stand in a number, an id or a word: 0x7f3a, -1.5e-07, build-x7Gh.
func ofWord(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 || c == '_' || c == '-' || c == '.'
}

// shapedAs reports whether two texts differ in nothing but words.
func (w *wording) shapedAs(x wording) bool {
	return slices.EqualFunc(w.between, x.between, bytes.Equal)
}

// OtherWords counts the words in which two texts differ; ok says that they differ in nothing else.
func OtherWords(was, now []byte) (n int, ok bool) {
	a, b := wordsOf(was), wordsOf(now)
	if !a.shapedAs(b) {
		return 0, false
	}
	for i := range a.words {
		if !bytes.Equal(a.words[i], b.words[i]) {
			n++
		}
	}
	return n, true
}
