package fidelity

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxNearest is how many recorded requests one that was refused is compared with.
const maxNearest = 16

// explanation says why divergences are there, once all are found.
type explanation struct {
	*comparison
	first   *refusal     // of the requests that nothing answered
	instead *tape.Record // the recorded one in whose place it came; nil for none
}

// explainAll orders what was found by where the replay had come to, explains it and reports it.
func explainAll(c *comparison) {
	x := &explanation{comparison: c}
	for i := range c.refusals {
		if r := &c.refusals[i]; x.first == nil || r.at < x.first.at {
			x.first = r
		}
	}
	x.refused()
	x.previews()
	x.consequences()
	slices.SortStableFunc(c.found, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank), cmp.Compare(a.seq(), b.seq()))
	})
	x.trace()
	x.explainFirst()
	for i := range c.found {
		p := &c.found[i]
		p.tell()
		if p.refused != nil {
			x.refusedRef(p).Cause = p.Cause
		}
		c.report.add(p.Divergence)
	}
}

// refused says of every refused request how it differs from the recorded one that is most like it and was never asked for:
// the one in whose place it came. Where there is none the recorder's own words stay.
func (c *explanation) refused() {
	unasked := make(map[string][]*placed) // by host
	for i := range c.found {
		if p := &c.found[i]; p.Category == MissingInReplay && tape.ExchangeOf(p.rec.Kind) != nil {
			host := tape.HostOf(tape.ExchangeOf(p.rec.Kind).URL)
			unasked[host] = append(unasked[host], p)
		}
	}
	before := make(map[request]uint64)
	for i := range c.found {
		p := &c.found[i]
		if p.refused == nil {
			continue
		}
		asked, _ := requestOf(p.rec.Kind)
		asked.failure = "" // which says how often it was asked before
		if seq, again := before[*asked]; again {
			p.Follows, p.Cause, p.afterRefusal = fmt.Sprintf("asks again what was refused at replay seq %d", seq), "", true
			continue
		}
		before[*asked] = *p.ReplaySeq
		if tape.ExchangeOf(p.rec.Kind) == nil {
			continue // what it came in place of stands beside it, where there is one
		}
		host := tape.HostOf(tape.ExchangeOf(p.rec.Kind).URL)
		at, changes := c.nearest(p.rec, unasked[host], true)
		if at < 0 { // another path of an API may be no model call any more
			at, changes = c.nearest(p.rec, unasked[host], false)
		}
		if at < 0 {
			continue
		}
		missing := unasked[host][at]
		unasked[host] = slices.Delete(unasked[host], at, at+1)
		missing.Follows = fmt.Sprintf("the refused request at replay seq %d is the nearest to it", *p.Seq)
		near := missing.rec
		if p.at == c.first.at {
			c.instead = near
		}
		p.Cause = ""
		p.show(changes)
		p.Nearest, p.Recorded = new(near.Seq), describe(near.Kind)
		nearest := tape.ExchangeOf(near.Kind)
		p.news, p.was = newsIn(p.Changes), nearest.RequestPayload
	}
}

// refusedRef is the entry of a refused request in the report's list.
func (c *explanation) refusedRef(p *placed) *RequestRef {
	for i := range c.report.Refused {
		if ref := &c.report.Refused[i]; ref.Seq == p.ReplaySeq {
			return ref
		}
	}
	return new(RequestRef)
}

// nearest returns which of the recorded requests to the same host, of the same kind where that is asked for, rec differs least
// from, and how; -1 where there is none.
func (c *explanation) nearest(rec *tape.Record, among []*placed, kindred bool) (best int, least []Change) {
	best = -1
	tried, most := 0, 0
	for i, p := range among {
		if kindred && !sameKind(p.rec.Kind, rec.Kind) {
			continue
		}
		if tried == maxNearest || c.spent() {
			break
		}
		tried++
		changes, alike := c.requestChanges(p.rec, rec)
		if len(changes) > 0 && (best < 0 || cmp.Or(cmp.Compare(len(changes), len(least)), cmp.Compare(most, alike)) < 0) {
			best, least, most = i, changes, alike
		}
	}
	return best, least
}

// previews shows what a record holds that one side has alone, in one line: the body of a request, the content of a file.
func (c *explanation) previews() {
	for i := range c.found {
		p := &c.found[i]
		if !alone(&p.Divergence) || len(p.Changes) > 0 || c.spent() {
			continue
		}
		side, body := p.side(), aboutOf(p.rec.Kind).body
		if body == nil || body.Len == 0 {
			continue
		}
		b, err := c.bytes(body, side)
		if err != nil {
			continue
		}
		c.done++
		if call, ok := p.rec.Kind.(*tape.MCPJSONRPC); ok {
			p.showCall(call, b, side)
			continue
		}
		p.show([]Change{preview(b, side)})
	}
}

// consequences marks every divergence that came after a refused request. A recorded request that was never asked for shows
// no sooner than the refused one that stood in its place, unless the replay had come past it by then: what had followed that place was not left out
// before it, though the timers of one process may have it come later than what came behind both.
func (c *explanation) consequences() {
	if c.first == nil {
		return
	}
	for i := range c.found {
		p := &c.found[i]
		if p.rank == 1 && p.at < c.first.at {
			if p.next > 0 && p.next < c.first.at && p.Follows == "" && (c.instead == nil || !thenAsked(c.instead, p.rec)) {
				continue
			}
			p.at = c.first.at
		}
		switch p.Category {
		case ProcessProgram, ProcessArgs, ProcessCwd:
			continue // how a process began, which the program may have done long before
		}
		if p.refused != nil || p.at <= c.first.at && p.rank == 0 {
			continue
		}
		p.afterRefusal = true
		if p.Follows == "" {
			p.Follows = fmt.Sprintf("follows from the refused request %s (replay seq %d)", c.first.request, c.first.seq)
		}
	}
}

// thenAsked reports whether one thread, or process, made the request y once x had ended.
func thenAsked(x, y *tape.Record) bool {
	by := numberOf(x, tape.OpenerKey)
	return by != 0 && by == numberOf(y, tape.OpenerKey) && endedAt(x) < begunAt(y)
}

// explainFirst says of the first divergence what it comes from, where nothing shows a nearer cause.
func (c *explanation) explainFirst() {
	i := slices.IndexFunc(c.found, func(p placed) bool { return !drift(p.Category) })
	if i < 0 {
		return
	}
	p := &c.found[i]
	p.Follows = cmp.Or(p.Follows, c.commandLine(p), c.otherInputs())
	if c.o.SameStart && c.o.Crossed == 0 && p.refused != nil && p.Recorded != "" && p.Follows == "" {
		p.Hint = hintFor(p)
		if len(c.o.Unseen) > 0 {
			p.Hint = strings.Replace(p.Hint, "are as recorded: ", fmt.Sprintf(hintUnseen, list(c.o.Unseen, shownInputs)), 1)
		}
	}
}

// commandLine says that the program was run with another command line; "" where it was not, or that is the divergence.
func (c *explanation) commandLine(p *placed) string {
	was, now := c.programOf(Recorded), c.programOf(Replay)
	if was == nil || now == nil || c.o.masked(commandOf(was)) == c.o.masked(commandOf(now)) {
		return ""
	}
	if p.rank != 0 || p.Lane == laneProgram && (p.Category == ProcessArgs || p.Category == ProcessProgram) {
		return ""
	}
	return fmt.Sprintf("the program was run with another command line (%s; %s: %s)", shortened(shownCommand(now)),
		c.report.names.of(Recorded), shortened(shownCommand(was)))
}

// shownInputs is how many differing inputs the first divergence names.
const shownInputs = 3

// otherInputs says which inputs the two runs were given in different forms: it is not true then that nothing before it differs.
func (c *explanation) otherInputs() string {
	var names []string
	for _, in := range c.o.Inputs {
		names = append(names, cmp.Or(in.Short, in.Name))
	}
	if len(names) == 0 {
		return ""
	}
	return "nothing before it differs but what the runs were given: " + list(names, shownInputs)
}

// Hints for a request that differs though the program was started as it was recorded: by what makes it compare.
const (
	hintUnseen = "are as recorded, but what stands in %s is not compared: where that is as it was, "
	hintSame   = "program, arguments, stdin, work tree and environment (but for secrets) are as recorded: "
	hintMadeUp = hintSame + "what differs is made up by the program at each run (a time, a random number), or read from what is not " +
		"covered; a mask in tapedeck.yaml makes what is made up compare, in recordings from then on (docs/masking.md)"
	hintSide  = hintMadeUp + "; where nothing depends on this request, side.ignore says so there, of this recording too"
	hintOrder = hintSame + "what the program did side by side, or in the background, came to its end in another order, or at another " +
		"moment; it compares where the program waits for what it starts before it asks on"
)

// hintFor says what makes a request compare: of an order no mask does.
func hintFor(p *placed) string {
	stays := func(c Change) bool { return !c.Reordered && c.Op != Moved && c.Op != Added && c.Op != Removed }
	if changes := slices.Concat(p.Changes, p.rest); len(changes) > 0 && !slices.ContainsFunc(changes, stays) {
		return hintOrder
	}
	if _, plain := p.refused.rec.Kind.(*tape.HTTPExchange); plain {
		return hintSide
	}
	return hintMadeUp
}

const (
	minTraced  = 4        // characters of a new text that is looked for: shorter ones stand anywhere
	maxSources = 200      // earlier divergences in which one is looked for
	maxHeld    = 64 << 20 // bytes of them that are held at once
)

// evidence is what a divergence may be traced by, and what others may be traced to.
type evidence struct {
	news     []string // new text of this divergence, the longest of each change
	was, now *tape.Payload
	what     string // what was and now are of: "the model's answer"
	refused  *entry // a request that nothing answered
}

func evidenceOf(d *Divergence, f *finding) evidence {
	return evidence{news: newsIn(d.Changes), was: f.was, now: f.now, what: nounOf(f.category)}
}

func newsIn(changes []Change) (news []string) {
	for i := range changes {
		news = append(news, changes[i].NewText)
	}
	return news
}

// evidenceAlone is that of a record that one side has alone.
func evidenceAlone(s Side, k tape.Kind) evidence {
	if s == Recorded {
		return evidence{}
	}
	of := aboutOf(k)
	ev := evidence{now: of.body, what: of.noun}
	if of.noun == "" {
		ev.now = nil
	}
	if f := tape.ChangedFile(k); f != nil {
		ev.news = []string{path.Base(f.Path)}
	}
	switch k := k.(type) {
	case *tape.ProcessSpawn:
		ev.news, ev.now, ev.what = []string{strings.Join(k.Args, " ")}, k.Stdout, "stdout"
	case *tape.MCPJSONRPC:
		ev.now, ev.what = k.Response, "the MCP answer"
	}
	return ev
}

// A source is earlier bytes that differ, in which new text may first appear.
type source struct {
	name     string       // for people
	rec      *tape.Record // of the replay; nil for an input
	was, now string
}

// trace says of every divergence where its new text first appears: in an input or an earlier divergence whose bytes hold it on
// the replay and not as recorded. The divergences stand in the order in which the replay came to them.
func (c *explanation) trace() {
	var sources []source
	if len(c.found) > 0 {
		sources = slices.DeleteFunc(c.inputs(true), func(s source) bool { return s.was == s.now })
	}
	held := 0
	for i := range c.found[:min(len(c.found), maxCauses)] {
		p := &c.found[i]
		was, now := c.behind(p)
		if !p.afterRefusal {
			if from := follows(p, was, sources); from != "" {
				p.Follows = from
			}
		}
		if p.now == nil || now == "" || len(sources) >= maxSources || held > maxHeld {
			continue
		}
		held += len(was) + len(now)
		name := fmt.Sprintf("the divergence at %s (%s)", seqOf(&p.Divergence), p.what)
		sources = append(sources, source{name, p.rec, was, now})
	}
}

// behind returns the bytes behind a divergence; nothing where they cannot be had.
func (c *explanation) behind(p *placed) (was, now string) {
	if c.spent() {
		return "", ""
	}
	a, errA := c.bytes(p.was, Recorded)
	b, errB := c.bytes(p.now, Replay)
	if errA != nil || errB != nil {
		return "", ""
	}
	return string(a), string(b)
}

// seqOf names the record of a divergence.
func seqOf(d *Divergence) string {
	if d.Recorded == "" {
		return fmt.Sprintf("replay seq %d", *d.Seq)
	}
	return fmt.Sprintf("seq %d", *d.Seq)
}

// follows says where new text of p first appears; "" where the tapes do not show it. What stood in was is not new.
func follows(p *placed, was string, sources []source) string {
	own := &source{now: was}
	for _, text := range p.news {
		for _, part := range traceable(text) {
			if own.brings(part) {
				continue
			}
			for i := range sources {
				s := &sources[i]
				if s.rec == p.rec && p.rec != nil || !before(s.rec, p.rec) || !s.brings(part) {
					continue
				}
				return fmt.Sprintf("follows from %s, where %s first appears", s.name, bodies.Shorten(part))
			}
		}
	}
	return ""
}

// brings reports whether text stands in the source on the replay and did not as recorded, plain or as JSON writes it.
func (s *source) brings(text string) bool {
	quoted := strings.Trim(bodies.Quote(text), `"`)
	holds := func(b string) bool { return holdsWords(b, text) || quoted != text && holdsWords(b, quoted) }
	return holds(s.now) && !holds(s.was)
}

// before reports whether record a had ended when b began, as far as their ordinals tell. Files are looked at when the program has ended: none is
// the cause of what it said or of how it ended.
func before(a, b *tape.Record) bool {
	if a == nil || b == nil {
		return true
	}
	if p, ok := b.Kind.(*tape.ProcessSpawn); ok && p.ParentSpawnID == 0 { // the program, which ends last
		return tape.ChangedFile(a.Kind) == nil
	}
	began := b.G
	if ex := tape.ExchangeOf(b.Kind); ex != nil && len(ex.Stream) > 0 && ex.Stream[0].G != 0 {
		began = ex.Stream[0].G
	}
	return a.G < began || a.G == 0 || b.G == 0
}

// holdsWords reports whether text stands in b, and not as part of longer words.
func holdsWords(b, text string) bool {
	for from := 0; ; {
		at := strings.Index(b[from:], text)
		if at < 0 || text == "" {
			return false
		}
		at += from
		if !bodies.InsideWord(b, at) && !bodies.InsideWord(b, at+len(text)) {
			return true
		}
		from = at + 1
	}
}

// traceable returns what of a new text is looked for, the most telling first: all of it, its lines, and those of its words
// that hardly stand anywhere by chance.
func traceable(text string) []string {
	var out []string
	add := func(s string, told bool) {
		if s = strings.TrimSpace(s); len([]rune(s)) >= minTraced && strings.ContainsFunc(s, unicode.IsLetter) && told {
			out = append(out, s)
		}
	}
	text = strings.TrimSpace(text)
	add(text, !common[strings.ToLower(text)])
	if strings.Contains(text, "\n") {
		for line := range strings.Lines(text) {
			add(line, strings.ContainsFunc(strings.TrimSpace(line), unicode.IsSpace) || telling(line))
		}
	}
	for _, word := range strings.FieldsFunc(text, unicode.IsSpace) {
		if word != text {
			add(word, telling(word))
		}
	}
	return out[:min(len(out), 20)]
}

// minTelling is from how many characters on a word by itself tells where it comes from.
const minTelling = 12

// telling reports whether one word of many is more than a common one: a path, a name with a digit or a sign in it, or long.
func telling(word string) bool {
	word = strings.Trim(word, ".,:;!?\"'`()[]{}<>…")
	return len([]rune(word)) >= minTelling || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '-' })
}

// common are words that a text may hold for any reason: none of them, standing alone, is traced.
var common = map[string]bool{
	"about": true, "after": true, "also": true, "been": true, "before": true, "being": true, "could": true, "does": true,
	"done": true, "each": true, "else": true, "error": true, "failed": true, "false": true, "find": true, "from": true,
	"have": true, "here": true, "into": true, "just": true, "like": true, "more": true, "most": true, "need": true,
	"none": true, "null": true, "only": true, "other": true, "over": true, "please": true, "should": true, "some": true,
	"such": true, "text": true, "than": true, "that": true, "their": true, "them": true, "then": true, "there": true,
	"these": true, "they": true, "this": true, "true": true, "user": true, "very": true, "want": true, "were": true,
	"what": true, "when": true, "where": true, "which": true, "will": true, "with": true, "would": true, "your": true,
}
