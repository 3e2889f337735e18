package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/masks"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// BookOptions say how what is asked is brought into the form in which it stands on the tape. Nil and zero work: nothing is then
// taken out of it.
type BookOptions struct {
	Scrub *scrub.Scrubber // the secrets of the replay
	Mask  *masks.Masker   // the masks that the recording was made with
	// Hold is how much longer than while recording an answer of a server over stdio is held up by what does not come before it. 0 is 2 s.
	Hold time.Duration
}

// A Book holds the conversations of a tape and hands each out once. It may be used by several goroutines at once.
type Book struct {
	log   *Log // writes nothing: brings what is asked into the form of the tape
	scrub *scrub.Scrubber
	mask  *masks.Masker
	store cas.Store

	transcripts []*transcript // in recorded order; not changed after NewBook
	hold        time.Duration
	order       *serversOrder
	out         lastOut

	refused lane.Refused[Refused]
	mu      sync.Mutex // guards which conversations were handed out and which calls were served
}

// A Call is a request of the client that a tape holds.
type Call struct {
	Server string
	Method string
	Seq    uint64 // of its record
}

// A Refused is what a client asked for and the tape lacks.
type Refused struct {
	Server string // of the conversation; of a spawn that is on no tape the base name of its program
	Method string // the JSON-RPC method
	Why    string // what is nearest, and where it differs
}

// NewBook reads the conversations of a tape; records of other kinds pass by. store holds the payloads of the tape. An error is one
// that records gave.
func NewBook(records iter.Seq2[*tape.Record, error], store cas.Store, o *BookOptions) (*Book, error) {
	if o == nil {
		o = &BookOptions{}
	}
	b := &Book{store: store, scrub: o.Scrub, mask: o.Mask, log: NewLog(nil, o.Scrub, o.Mask, nil)}
	if err := b.read(records); err != nil {
		return nil, err
	}
	b.hold = cmp.Or(o.Hold, holdAsked)
	b.order = newServersOrder(b.transcripts, b.hold)
	return b, nil
}

// Servers lists the conversations in recorded order.
func (b *Book) Servers() []Recorded {
	out := make([]Recorded, len(b.transcripts))
	for i, t := range b.transcripts {
		out[i] = t.Recorded
	}
	return out
}

// Conversation hands out the recorded conversation of that number, as often as it is asked; nil where there is none.
func (b *Book) Conversation(number uint64) *Served {
	for _, t := range b.transcripts {
		if t.Conversation == number {
			return &Served{book: b, transcript: t}
		}
	}
	return nil
}

// at lists the conversations over HTTP with the server at a place, in recorded order.
func (b *Book) at(place string) (list []*transcript) {
	if b == nil {
		return nil
	}
	for _, t := range b.transcripts {
		if t.Transport == HTTP && t.URL == place && t.Conversation > 0 {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(x, y *transcript) int { return cmp.Compare(x.Conversation, y.Conversation) })
	return list
}

// Spawn hands out the recorded conversation that this spawn was: one over stdio with a program of that base name and with these
// arguments, both after masking, and of several equal ones the next in recorded order, unless Settle finds out that it is another.
// Where there is none the Served is nil, and why says what is nearest. args are those behind the program's name.
func (b *Book) Spawn(program string, args []string) (s *Served, why string) {
	wanted := b.commandForm(program, args)
	equals := slices.DeleteFunc(b.started(wanted), func(t *transcript) bool { return t.Within != 0 })
	b.mu.Lock()
	defer b.mu.Unlock()
	next := slices.IndexFunc(equals, func(t *transcript) bool { return !t.taken })
	if next < 0 {
		return nil, b.nearestSpawn(program, wanted)
	}
	equals[next].taken = true
	return &Served{book: b, transcript: equals[next], equals: equals}, ""
}

// Serves is the name of the recorded servers that were started so, "" for none, as Spawn compares.
func (b *Book) Serves(program string, args []string) string {
	if all := b.started(b.commandForm(program, args)); len(all) > 0 {
		return tape.MCPServer(all[0].Server)
	}
	return ""
}

// started lists the conversations with servers that were started so, in recorded order.
func (b *Book) started(form string) (all []*transcript) {
	for _, t := range b.transcripts {
		if t.spawned() && b.commandForm(t.Program, t.Args) == form {
			all = append(all, t)
		}
	}
	return all
}

// spawned reports whether a program was started for the conversation.
func (r *Recorded) spawned() bool { return r.Transport != HTTP && r.Program != "" }

// commandForm is what spawns are compared by.
func (b *Book) commandForm(program string, args []string) string {
	form := []byte(strings.Join(append([]string{baseName(program)}, args...), "\x00"))
	if b.scrub != nil {
		form, _ = b.scrub.Bytes(form)
	}
	return string(b.mask.Mask(scrub.Renumber(form)))
}

// A Refusal answers in the place of a server that is on no tape: each request gets an error at once, and is one of Book.Refused.
type Refusal struct {
	book        *Book
	server, why string
}

// Refusal is that of a spawn which is none of the recorded servers. why is Spawn's.
func (b *Book) Refusal(program string, args []string, why string) *Refusal {
	return &Refusal{b, b.log.str((&Opened{Program: baseName(program), Args: args}).name()), why}
}

// line takes a line of the client, and returns what it gets, nil for nothing. Both stand in c. An error is the recorder's.
func (r *Refusal) line(c *Conversation, line []byte) (answer []byte, err error) {
	if err := c.Line(Client, line, 0); err != nil {
		return nil, err
	}
	msgs, batch, _ := Parse(line)
	var answers [][]byte
	for i := range msgs {
		if m := &msgs[i]; m.IsRequest() {
			r.book.refused.Add(Refused{Server: r.server, Method: m.Method, Why: r.why})
			c.Fault(Client, m.ID, RefusedAs+r.why)
			answers = append(answers, errorAnswer(m.ID, notOnTape(m, r.why)))
		}
	}
	if answer = lineOf(answers, batch); answer == nil {
		return nil, nil
	}
	return answer, c.Line(Server, answer, 0)
}

// Unasked lists, in recorded order, the requests over stdio that nobody came with so far. A ping is none, and what went over HTTP is
// a matter of its exchanges. What a server asked another one nobody comes with.
func (b *Book) Unasked() []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Call
	for _, t := range b.transcripts {
		if t.Transport == HTTP || t.Within != 0 {
			continue
		}
		for _, c := range t.calls {
			if c.unasked() {
				out = append(out, Call{Server: t.Server, Method: c.method, Seq: c.seq})
			}
		}
	}
	return out
}

// Refused lists what was asked for and is on no tape, in the order in which it came.
func (b *Book) Refused() []Refused { return b.refused.All() }

// message is a recorded message as it is said now to who asked, with the secrets of this run; nil for progress of a request that wants
// none. The error says that the tape has lost it.
func (b *Book) message(p *recordedPart, who *caller, reveal func([]byte) []byte) ([]byte, error) {
	m, err := p.payload.Bytes(b.store)
	if err != nil {
		return nil, err
	}
	if m = renamed(m, p, who); m != nil && reveal != nil {
		m = reveal(m)
	}
	return m, nil
}

// digestOf is what a recorded request is matched by. A tape of another producer does not hold it.
func (b *Book) digestOf(k *tape.MCPJSONRPC) cas.Digest {
	if k.ParamsDigest != (cas.Digest{}) {
		return k.ParamsDigest
	}
	m, ok := messageOf(k.Request, b.store)
	if !ok {
		return cas.Digest{}
	}
	return b.log.Digest(k.Method, m.Params)
}

// enveloped is a record of another producer with messages for payloads. Some keep the params and the result alone, or leave out of a
// message what says that it is one. A payload that is neither stays as it is.
func (b *Book) enveloped(k *tape.MCPJSONRPC, seq uint64) *tape.MCPJSONRPC {
	id := strconv.AppendUint(nil, seq, 10)
	whole := *k
	whole.Request = b.envelope(k.Request, func(all json.RawMessage) []byte {
		params := all
		if member(all, "method") != nil {
			params = member(all, "params")
		}
		out := jsonscan.AppendText(append(append([]byte(messageBegins), id...), `,"method":`...), k.Method)
		if len(params) > 0 && params[0] != 'n' { // null is none
			out = append(append(out, `,"params":`...), params...)
		}
		return append(out, '}')
	})
	whole.Response = b.envelope(k.Response, func(all json.RawMessage) []byte {
		kind, value := "result", all
		for _, key := range []string{"result", "error"} {
			if v := member(all, key); v != nil && v[0] != 'n' {
				kind, value = key, v
			}
		}
		return answerOf(id, kind, value)
	})
	return &whole
}

// envelope is a payload of what wrap makes of it, unless it is a message, or no JSON.
func (b *Book) envelope(p *tape.Payload, wrap func(all json.RawMessage) []byte) *tape.Payload {
	if p == nil || p.Len == 0 || !p.Inline && b.store == nil {
		return p
	}
	all, err := p.Bytes(b.store)
	if err != nil {
		return p // whoever answers with it finds out
	}
	if _, _, err := Parse(all); err == nil || !json.Valid(all) {
		return p
	}
	all = wrap(bytes.TrimSpace(all))
	return &tape.Payload{Hash: cas.Sum(all), Text: string(all), Inline: true, Len: int64(len(all))}
}

// Named returns the server of a name, all its conversations together: what a lenient Served answers from. "NAME#2" is the second of
// them alone. "" is the one server of the tape.
func (b *Book) Named(name string) (*Served, error) {
	var names []string
	found := &Served{book: b}
	for _, t := range b.transcripts {
		if t.protocol() != &mcpProtocol { // no client of MCP can use it
			continue
		}
		base := tape.MCPServer(t.Server)
		if !slices.Contains(names, base) {
			names = append(names, base)
		}
		if name == "" || name == base || name == t.Server {
			found.merged = append(found.merged, t)
		}
	}
	switch {
	case len(names) == 0:
		return nil, errors.New("the tape holds no conversation with an MCP server")
	case name == "" && len(names) > 1:
		return nil, fmt.Errorf("the tape holds %d MCP servers, and one is to be named (--server): %s", len(names), strings.Join(names, ", "))
	case len(found.merged) == 0:
		return nil, fmt.Errorf("the tape holds no MCP server %q: it has %s", name, strings.Join(names, ", "))
	}
	found.transcript = found.merged[0]
	return found, nil
}

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
	name := Subject(m.Params)
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
		if rec, ok := messageOf(c.request, b.store); !ok || Subject(rec.Params) != name {
			rank[c] += 2
		}
	}
	slices.SortStableFunc(list, func(x, y *recordedCall) int { return cmp.Compare(rank[x], rank[y]) })
	return list
}

// methodsOf lists what a client asked of a server.
func methodsOf(t *transcript) string {
	return cmp.Or(strings.Join(slices.Sorted(maps.Keys(t.Methods)), ", "), "no request at all")
}

// nearestSpawn says which recorded server is most like a spawn that is none of them. The book is locked.
func (b *Book) nearestSpawn(program, wanted string) string {
	var same, others []string
	taken := len(b.started(wanted))
	for _, t := range b.transcripts {
		command := strings.Join(append([]string{t.Program}, t.Args...), " ")
		switch {
		case !t.spawned():
		case baseName(t.Program) == baseName(program):
			same = append(same, command)
		default:
			others = append(others, command)
		}
	}
	switch {
	case taken > 0:
		return fmt.Sprintf("it was recorded %s, and was started once more", lane.Times(taken))
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
