package mcp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
)

const (
	// maxNearest bounds, in bytes, a recorded request that is compared.
	maxNearest = 4 << 20
	// maxNamed is how many servers an explanation names.
	maxNamed = 3
)

// nearest says which recorded request is most like one that the tape lacks, and where the two differ. m is redacted.
func (b *Book) nearest(t *transcript, k requestKey, m *Message) (why string) {
	if why := b.exhausted(t, k); why != "" {
		return why
	}
	return b.closest(t, m)
}

// closest is nearest for a request that was never recorded.
func (b *Book) closest(t *transcript, m *Message) (why string) {
	asked := b.log.Surface(m.Method, m.Params)
	best, least, _ := lane.Nearest(b.candidates(t, m), func(c *recordedCall) ([]fidelity.Change, bool) {
		rec, ok := messageOf(c.request, b.store)
		if !ok {
			return nil, false
		}
		return fidelity.DiffJSON(b.log.Surface(c.method, rec.Params), asked), true
	})
	if best == nil {
		return fmt.Sprintf("the tape holds no %s to %s; it has %s", m.Method, t.Server, methodsOf(t))
	}
	if len(least) == 0 && best.answer == nil {
		return fmt.Sprintf("nearest is record %d, which is the same and got no answer", best.seq)
	}
	return fmt.Sprintf("nearest is record %d, which %s", best.seq, lane.Differences(least, "reads the same: it was recorded under other masks"))
}

// exhausted explains a request that was recorded, but not as often as it was asked for.
func (b *Book) exhausted(t *transcript, k requestKey) string {
	n, last := 0, uint64(0)
	for _, c := range t.calls {
		if c.requestKey == k {
			n, last = n+1, c.seq
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("it was recorded %s, last as record %d, and was asked once more", lane.Times(n), last)
}

// candidates lists recorded requests of the same method: those for the same tool first, of these those that nobody came with yet.
func (b *Book) candidates(t *transcript, m *Message) []*recordedCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := nameIn(m.Params)
	var list []*recordedCall
	rank := make(map[*recordedCall]int)
	for _, c := range t.calls {
		if c.method != m.Method || c.request.Len > maxNearest {
			continue
		}
		list = append(list, c)
		if c.served {
			rank[c]++
		}
		if name == "" || len(list) > 64*lane.MaxCandidates {
			continue
		}
		if rec, ok := messageOf(c.request, b.store); !ok || nameIn(rec.Params) != name {
			rank[c] += 2
		}
	}
	slices.SortStableFunc(list, func(x, y *recordedCall) int { return cmp.Compare(rank[x], rank[y]) })
	return list
}

// nameIn is what a request is for: the tool, the prompt or the resource that its params name.
func nameIn(params []byte) string {
	v, err := canonjson.Parse(params)
	if err != nil {
		return ""
	}
	for _, key := range []string{"name", "uri"} {
		if name, ok := v.Get(key); ok {
			return name.Text()
		}
	}
	return ""
}

// methodsOf lists what a client asked of a server.
func methodsOf(t *transcript) string {
	var names []string
	for m := range t.Methods {
		names = append(names, m)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "no request at all"
	}
	return strings.Join(names, ", ")
}

// nearestSpawn says which recorded server is most like a spawn that is none of them. The book is locked.
func (b *Book) nearestSpawn(program, wanted string) string {
	var taken, same, others []string
	for _, t := range b.transcripts {
		if !t.spawned() {
			continue
		}
		command := strings.Join(append([]string{t.Program}, t.Args...), " ")
		switch {
		case b.commandForm(t.Program, t.Args) == wanted:
			taken = append(taken, command)
		case baseName(t.Program) == baseName(program):
			same = append(same, command)
		default:
			others = append(others, command)
		}
	}
	switch {
	case len(taken) > 0:
		return fmt.Sprintf("it was recorded %s, and was started once more", lane.Times(len(taken)))
	case len(same) > 0:
		return "nearest is " + short(same)
	case len(others) > 0:
		return "the tape holds " + short(others)
	}
	return "the tape holds no MCP server that was started"
}

// short lists the first few of list.
func short(list []string) string {
	text := "`" + strings.Join(list[:min(len(list), maxNamed)], "`, `") + "`"
	if left := len(list) - maxNamed; left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}
