package fidelity

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A differ compares the fields of two records of one kind. The zero differ compares as Semantic does, by position.
type differ struct {
	exact    bool                // times, lengths and places in an order count too
	lanes    bool                // what two runs of one program cannot share does not count: recording.md, Lanes
	onScreen int                 // the stream of the program that compares by what it drew: 1 for stdout, 2 for stderr; 0 for none
	child    bool                // lane mode: no program's record; what passed on the streams of a process compares by itself (streamCompare)
	replaced bool                // another program ran: its path and arguments do not count
	mask     func(string) string // lane mode: makes one argument comparable; never nil there
	names    sideNames           // what the tapes are called
	prefix   Category            // of what is found: of a field, with the name of its kind; "" outside of a kind
	found    []finding
	facets   []facet     // lane mode: what differs, though it may compare as equal
	models   *modelCalls // lane mode: says whether two calls of a model whose bytes differ are the same; else nil
	pids     *processIDs // lane mode: whose PIDs stand in arguments
	renamed  bool        // lane mode: that the server of this lane has another name was said
}

// A finding is one field that differs.
type finding struct {
	category Category
	title    string // what differs; "" stands for that of the category
	values   [2]any // how: two strings are shortened to what differs in them
	// was and now are the bytes behind two hashes that differ, for the cause; nil where there are none.
	was, now *tape.Payload
	a, b     *tape.Exchange // of which they are part; else nil
	message  tape.Kind      // the recorded message of a conversation of which they are part; else nil
	part     part
}

// A verbatim value is shown as it stands.
type verbatim string

// shown are the values for people.
func (f *finding) shown() (was, now string) {
	a, okA := f.values[Recorded].(string)
	b, okB := f.values[Replay].(string)
	if okA && okB {
		return bodies.ShortenPair(a, b)
	}
	return show(f.values[Recorded]), show(f.values[Replay])
}

// show formats a field for a message.
func show(v any) string {
	switch v := v.(type) {
	case string:
		return bodies.Shorten(v)
	case cas.Digest:
		if v.IsZero() {
			return "none"
		}
		return v.Short()
	}
	return fmt.Sprint(v)
}

// A facet is a part of two records that differs, though it may compare as equal: masks and digests hide some of it.
type facet struct {
	finding
	place    string // "" of the body of a request, whose places name themselves
	isText   bool   // texts stand for the payloads
	texts    [2]string
	argument bool
	isBytes  bool   // of JSON white space and the order of keys count too
	besides  string // the mask of what differs and no mask takes out, where digests agree all the same
}

func textFacet(place string, c Category, was, now string) facet {
	return facet{finding: finding{category: c}, place: place, isText: true, texts: [2]string{was, now}}
}

// differs is the finding that a facet differs.
func (f *facet) differs() finding {
	out := f.finding
	out.values = [2]any{hashOf(f.was), hashOf(f.now)}
	if f.isText {
		out.values = [2]any{f.texts[Recorded], f.texts[Replay]}
	}
	return out
}

// mayHide keeps a facet that differs, to be looked at place by place.
func (d *differ) mayHide(f facet) {
	if d.lanes && (f.texts[Recorded] != f.texts[Replay] || !f.was.Same(f.now)) {
		f.category = d.whole(f.category)
		d.facets = append(d.facets, f)
	}
}

// textAt is text of what masks may hide something of.
func (d *differ) textAt(place string, c Category, was, now string) {
	d.text(c, was, now)
	d.mayHide(textFacet(place, c, was, now))
}

// hashedAt compares two hashes, behind which masks may hide something.
func (d *differ) hashedAt(f facet, was, now cas.Digest) {
	if was != now {
		d.hashed(f.finding, was, now)
	}
	d.mayHide(f)
}

// part says which part of an exchange a finding is about.
type part uint8

const (
	ofRequest part = iota
	ofParams       // of the request of a model call
	ofAnswer
)

func (d *differ) add(c Category, was, now any) {
	d.find(finding{category: c, values: [2]any{was, now}})
}

func (d *differ) find(f finding) {
	f.category = d.whole(f.category)
	d.found = append(d.found, f)
}

// whole is the category of a field of the kind that is compared.
func (d *differ) whole(field Category) Category {
	if d.prefix == "" {
		return field
	}
	return d.prefix + "_" + field
}

// hashed adds a finding about two hashes that differ.
func (d *differ) hashed(f finding, was, now cas.Digest) {
	f.values = [2]any{was, now}
	d.find(f)
}

// same compares one field that counts in every mode.
func same[T comparable](d *differ, c Category, was, now T) {
	if was != now {
		d.add(c, was, now)
	}
}

// sameExact compares one field that only counts byte by byte.
func sameExact[T comparable](d *differ, c Category, was, now T) {
	if d.exact {
		same(d, c, was, now)
	}
}

// sameInPlace compares one field that two runs do not share, so that it only counts by position.
func sameInPlace[T comparable](d *differ, c Category, was, now T) {
	if !d.lanes {
		same(d, c, was, now)
	}
}

// text compares two strings after masking. The message shows them as they stand.
func (d *differ) text(c Category, was, now string) {
	if !d.equalMasked(was, now) {
		d.add(c, was, now)
	}
}

// masked returns s without its volatile parts in lane mode, else s.
func (d *differ) masked(s string) string {
	if d.mask == nil {
		return s
	}
	return d.mask(s)
}

func (d *differ) payload(c Category, was, now *tape.Payload) {
	if w, n := hashOf(was), hashOf(now); w != n {
		d.hashed(finding{category: c, was: was, now: now}, w, n)
	}
}

// digested compares the bytes behind two payloads: in lane mode by the digests that the records carry of them, masked,
// where both do.
func (d *differ) digested(place string, c Category, wasDigest, nowDigest cas.Digest, was, now *tape.Payload) {
	if !d.lanes || wasDigest.IsZero() || nowDigest.IsZero() {
		wasDigest, nowDigest = hashOf(was), hashOf(now)
	}
	d.hashedAt(facet{place: place, finding: finding{category: c, was: was, now: now}, isBytes: true}, wasDigest, nowDigest)
}

func hashOf(p *tape.Payload) cas.Digest {
	if p == nil {
		return cas.Digest{}
	}
	return p.Hash
}

func (d *differ) headers(c Category, was, now []tape.HeaderField) {
	if slices.Equal(was, now) {
		return
	}
	equal := func(a, b string) bool { return a == b }
	d.lists(c, headerLines(was), headerLines(now), "no further header", equal)
}

func headerLines(fields []tape.HeaderField) (out []string) {
	for _, f := range fields {
		out = append(out, f.Name+": "+f.Value)
	}
	return out
}

// lists adds a finding about the first place in which two lists differ; none stands for what is behind the end of one.
func (d *differ) lists(c Category, was, now []string, none verbatim, equal func(a, b string) bool) {
	i := 0
	for i < min(len(was), len(now)) && equal(was[i], now[i]) {
		i++
	}
	switch {
	case i < min(len(was), len(now)):
		d.add(c, was[i], now[i])
	case i < len(was):
		d.add(c, was[i], none)
	case i < len(now):
		d.add(c, none, now[i])
	}
}

// equalMasked reports whether two texts compare as one.
func (d *differ) equalMasked(a, b string) bool { return a == b || d.masked(a) == d.masked(b) }

// chunks compares where the chunks of an answer lie, and when they came.
func (d *differ) chunks(c Category, was, now []tape.Chunk) {
	alike := func(a, b tape.Chunk) bool {
		if !d.exact {
			a.TMS, b.TMS, a.G, b.G = 0, 0, 0, 0
		}
		return a == b
	}
	if slices.EqualFunc(was, now, alike) {
		return
	}
	found := verbatim(fmt.Sprintf("%d chunks", len(now)))
	if slices.EqualFunc(was, now, func(a, b tape.Chunk) bool { return a.Length == b.Length }) {
		found = "the same at other times"
	}
	d.add(c, verbatim(fmt.Sprintf("%d chunks", len(was))), found)
}

// extraOf are the keys of a kind that no version of the format names.
func extraOf(k tape.Kind) []tape.Field {
	if extra := tape.Extras(k); extra != nil {
		return *extra
	}
	return nil
}

// extra compares the keys that no version of the format names. What they hold is not known to be the same in two runs, so
// between lanes they only count byte by byte.
func (d *differ) extra(was, now []tape.Field) {
	if d.lanes && !d.exact || len(was)+len(now) == 0 {
		return
	}
	leave := []string{"request_digest", "response_digest", "content_hash"} // of another form than ours: they compare as digests
	if d.child {
		leave = append(leave, tape.CutKeys[:]...)
	}
	if !d.exact || d.lanes { // durations, and places among all that was recorded: lanes run side by side, so their common order is nobody's doing
		leave = append(leave, tape.PlaceKey, tape.ArrivedKey, tape.EndedKey, tape.OpenerKey, tape.OverKey, tape.PIDKey, tape.ThreadKey, tape.WokeKey)
	}
	was, now = without(was, leave...), without(now, leave...)
	alike := func(a, b tape.Field) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }
	if !slices.EqualFunc(was, now, alike) {
		d.add(ExtraKeys, fmt.Sprintf("%s", was), fmt.Sprintf("%s", now))
	}
}

// without leaves keys out.
func without(fs []tape.Field, names ...string) []tape.Field {
	out := func(f tape.Field) bool { return slices.Contains(names, f.Name) }
	if !slices.ContainsFunc(fs, out) {
		return fs
	}
	return slices.DeleteFunc(slices.Clone(fs), out)
}

// chunkFields compares the keys of chunks that no version of the format names.
func (d *differ) chunkFields(was, now []tape.ChunkField) {
	alike := func(a, b tape.ChunkField) bool {
		return a.Chunk == b.Chunk && a.Name == b.Name && bytes.Equal(a.Value, b.Value)
	}
	if !slices.EqualFunc(was, now, alike) {
		d.add(ExtraKeys, chunkText(was), chunkText(now))
	}
}

func chunkText(fs []tape.ChunkField) string {
	var all []string
	for _, f := range fs {
		all = append(all, fmt.Sprintf("{%d %s %s}", f.Chunk, f.Name, f.Value))
	}
	return fmt.Sprint(all)
}

// raw compares the true bytes of strings that are not UTF-8. Headers count where they do as strings.
func (d *differ) raw(was, now []tape.RawBytes) {
	if len(was)+len(now) > 0 && d.lanes && !d.exact {
		was, now = withoutHeaders(was), withoutHeaders(now)
	}
	if len(was)+len(now) == 0 {
		return
	}
	alike := func(a, b tape.RawBytes) bool { return a.Key == b.Key && bytes.Equal(a.Bytes, b.Bytes) }
	if !slices.EqualFunc(was, now, alike) {
		d.add(RawBytes, verbatim(fmt.Sprintf("%q", was)), verbatim(fmt.Sprintf("%q", now)))
	}
}

func withoutHeaders(raw []tape.RawBytes) []tape.RawBytes {
	return slices.DeleteFunc(slices.Clone(raw), func(r tape.RawBytes) bool {
		return strings.HasPrefix(r.Key, "request_headers.") || strings.HasPrefix(r.Key, "response_headers.")
	})
}
