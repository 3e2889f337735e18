package fidelity

import (
	"bytes"
	"hash/fnv"
	"slices"

	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// Varies is the mask of a word that two replays of one program do not share: it is another one in every run, whatever the program is.
const Varies = "varies"

// Again is one more replay of the program that was replayed, over the same inputs. A word of a run that no other run holds anywhere is one by
// chance, and no divergence where it stands in the place of such a word that was recorded. What two of the runs have is the program's: it is
// a change, or another order of what runs side by side.
type Again struct {
	Records Records
	Masks   *masks.Masker // of its texts
	Payload func(p *tape.Payload) ([]byte, error)
}

// again pairs the records of a replay with those of one more.
type again struct {
	*maskings                         // of these two: the replay stands for what was recorded
	of        map[uint64]*tape.Record // by the number of the replay's record
	runs      [3]*vocabulary          // what was recorded, the replay, this
}

// pairAgain compares a replay with one more; nil where there is none.
func pairAgain(c *comparison, mode Mode, recorded, replay Records) (*again, error) {
	other := c.o.Again
	if other == nil || c.o.Payload == nil || mode == ByteIdentical {
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
	last := kept(other.Records)
	lanes, err := compareAll(mode, replay, last, &o, true)
	if err != nil {
		return nil, err
	}
	a := &again{maskings: lanes.masked, of: lanes.paired}
	for i, records := range []Records{recorded, replay, last} {
		a.runs[i] = &vocabulary{words: make(map[uint64]struct{})}
		payload := func(p *tape.Payload) ([]byte, error) { return c.o.Payload(p, Side(i)) }
		if i == 2 {
			payload = other.Payload
		}
		if err := a.runs[i].read(records, payload); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// A vocabulary is the words of a run: of its requests, what it printed, wrote and started.
type vocabulary struct {
	words map[uint64]struct{}
	full  bool // more than maxWords, or bytes that could not be read: what is in it is not known
}

// maxWords bounds the words of one run that are known: some 100 MB.
const maxWords = 2 << 20

func (v *vocabulary) read(records Records, payload func(*tape.Payload) ([]byte, error)) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		v.kind(rec.Kind)
		for _, p := range tape.Payloads(rec.Kind) {
			if p == nil {
				continue
			}
			b, err := payload(p)
			if err != nil {
				v.full = true
				return nil
			}
			v.add(b)
		}
	}
	return nil
}

// kind adds what a record says of its program beside its payloads: nothing that the recorder counts or measures.
func (v *vocabulary) kind(k tape.Kind) {
	var said []string
	if x := tape.ExchangeOf(k); x != nil {
		said = append(said, x.URL)
	}
	fields, _ := requestHeaders(k)
	for _, f := range fields {
		said = append(said, f.Value)
	}
	switch k := k.(type) {
	case *tape.ProcessSpawn:
		said = append(append(said, k.Program), k.Args...)
	case *tape.FileWrite:
		said = append(said, k.Path)
	}
	for _, text := range said {
		v.add([]byte(text))
	}
}

func (v *vocabulary) add(text []byte) {
	for _, w := range wordsOf(text).words {
		if len(v.words) == maxWords {
			v.full = true
			return
		}
		v.words[hashOfWord(w)] = struct{}{}
	}
}

// holds reports whether a word may be one of the run's.
func (v *vocabulary) holds(word []byte) bool {
	_, ok := v.words[hashOfWord(word)]
	return ok || v.full
}

func hashOfWord(word []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(word)
	return h.Sum64()
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
	if errA != nil || errB != nil || errC != nil || !c.byChance(was, now, then, of) {
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
	return c.byChance([]byte(was), []byte(now), []byte(c.headersOf(fields)[name]), of)
}

// byChance reports whether each word by which a replay differs from what was recorded is one by chance, or one of several that stand in
// another order on one more replay too: an order may be the same twice. What masks take out beside them must be what they may take out.
func (c *maskings) byChance(was, now, then []byte, of pair) bool {
	was, now, then = scrub.Renumber(was), scrub.Renumber(now), scrub.Renumber(then)
	maskedA, takenA := c.o.Masks[Recorded].Trace(was)
	maskedB, takenB := c.o.Masks[Replay].Trace(now)
	maskedC, _ := c.again.o.Masks[Replay].Trace(then)
	a, b, t := wordsOf(maskedA), wordsOf(maskedB), wordsOf(maskedC)
	if !a.shapedAs(b) || !b.shapedAs(t) {
		return false
	}
	for _, h := range hiddenIn(was, now, takenA, takenB) {
		if c.judge(&h, of) == differs {
			return false
		}
	}
	var moved []int
	chance := false
	for i := range a.words {
		switch {
		case bytes.Equal(a.words[i], b.words[i]):
		case c.again.isChance(a.words[i], b.words[i], t.words[i]):
			chance = true
		default:
			moved = append(moved, i)
		}
	}
	if len(moved) == 0 {
		return chance
	}
	return isShuffle(&a, &b, &t, moved)
}

// isChance reports whether the words of three runs at one place are chance: no other run holds one of the replays' anywhere.
func (a *again) isChance(was, now, then []byte) bool {
	return !bytes.Equal(was, then) && !bytes.Equal(now, then) && !a.runs[0].holds(now) && !a.runs[2].holds(now) && !a.runs[0].holds(then) && !a.runs[1].holds(then)
}

// isShuffle reports whether the words at these places are the same ones in each of three runs, in an order that is another one on both
// replays. Of those at which the replays agree none may have changed places among themselves: that is a change, beside an order.
func isShuffle(a, b, t *wording, at []int) bool {
	at = slices.Clone(at)
	for i := range t.words { // where the first two agree by chance
		if bytes.Equal(a.words[i], b.words[i]) && !bytes.Equal(b.words[i], t.words[i]) {
			at = append(at, i)
		}
	}
	if !sameWords(a, b, at) || !sameWords(b, t, at) {
		return false
	}
	steady := slices.DeleteFunc(at, func(i int) bool { return !bytes.Equal(b.words[i], t.words[i]) || bytes.Equal(a.words[i], b.words[i]) })
	if len(steady) == len(at) {
		return false
	}
	for {
		in := func(w *wording, word []byte) bool {
			return slices.ContainsFunc(steady, func(i int) bool { return bytes.Equal(w.words[i], word) })
		}
		cut := slices.DeleteFunc(slices.Clone(steady), func(i int) bool { return !in(b, a.words[i]) || !in(a, b.words[i]) })
		if len(cut) == len(steady) {
			return len(steady) == 0
		}
		steady = cut
	}
}

// sameWords reports whether two texts have the same words at some places, in any order.
func sameWords(a, b *wording, at []int) bool {
	at = slices.Clone(at)
	slices.Sort(at)
	of := func(w *wording) (list [][]byte) {
		for _, i := range at {
			list = append(list, w.words[i])
		}
		slices.SortFunc(list, bytes.Compare)
		return list
	}
	return slices.EqualFunc(of(a), of(b), bytes.Equal)
}

// A wording is a text taken apart: its words, and what stands before, between and behind them.
type wording struct{ words, between [][]byte }

func wordsOf(text []byte) (w wording) {
	for start := 0; ; {
		at := start
		for at < len(text) && !ofWord(text[at]) {
			at += escape(text[at:])
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

// escape is the length of what stands for one byte in JSON and in URLs, and is of no word: "\nyes" is a line that begins with yes.
func escape(text []byte) int {
	n := 0
	for n < len(text)-1 && text[n] == '\\' { // of JSON within JSON there are several
		n++
	}
	switch {
	case n > 0:
		return n + 1
	case text[0] == '%' && len(text) > 2 && isHex(text[1]) && isHex(text[2]):
		return 3
	}
	return 1
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }

// ofWord reports whether a byte may stand in a number, an id or a word: 0x7f3a, -1.5e-07, build-x7Gh. Letters beyond ASCII do not: many languages
// write no blanks between words.
func ofWord(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '-' || c == '.'
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
