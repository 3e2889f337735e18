package fidelity

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
