package mcp

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// BookOptions say how what is asked is brought into the form in which it stands on the tape. Nil and zero work: nothing is then
// taken out of it.
type BookOptions struct {
	Scrub *scrub.Scrubber // the secrets of the replay
	Mask  *scrub.Masker   // the masks that the recording was made with
	// Hold is how much longer than while recording an answer of a server over stdio is held up by what does not come before it. 0 is 2 s.
	Hold time.Duration
}

// A Book holds the conversations of a tape and hands each out once. It may be used by several goroutines at once.
type Book struct {
	log   *Log // writes nothing: brings what is asked into the form of the tape
	scrub *scrub.Scrubber
	mask  *scrub.Masker
	store cas.Store

	talks []*recordedTalk // in recorded order; not changed after NewBook
	hold  time.Duration
	order *serversOrder
	out   lastOut

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
	b.order = newServersOrder(b.talks, b.hold)
	return b, nil
}

// Servers lists the conversations in recorded order.
func (b *Book) Servers() []Recorded {
	out := make([]Recorded, len(b.talks))
	for i, t := range b.talks {
		out[i] = t.Recorded
	}
	return out
}

// Conversation hands out the recorded conversation of that number, as often as it is asked; nil where there is none.
func (b *Book) Conversation(number uint64) *Served {
	for _, t := range b.talks {
		if t.Conversation == number {
			return &Served{book: b, talk: t}
		}
	}
	return nil
}

// Spawn hands out the recorded conversation that this spawn was: one over stdio with a program of that base name and with these
// arguments, both after masking, and of several equal ones the next in recorded order, unless Settle finds out that it is another.
// Where there is none the Served is nil, and why says what is nearest. args are those behind the program's name.
func (b *Book) Spawn(program string, args []string) (s *Served, why string) {
	wanted := b.commandForm(program, args)
	b.mu.Lock()
	defer b.mu.Unlock()
	var equals []*recordedTalk
	for _, t := range b.talks {
		if t.Within == 0 && t.Transport != HTTP && t.Program != "" && b.commandForm(t.Program, t.Args) == wanted {
			equals = append(equals, t)
		}
	}
	next := slices.IndexFunc(equals, func(t *recordedTalk) bool { return !t.taken })
	if next < 0 {
		return nil, b.nearestSpawn(program, wanted)
	}
	equals[next].taken = true
	return &Served{book: b, talk: equals[next], equals: equals}, ""
}

// commandForm is what spawns are compared by.
func (b *Book) commandForm(program string, args []string) string {
	form := []byte(strings.Join(append([]string{baseName(program)}, args...), "\x00"))
	if b.scrub != nil {
		form, _ = b.scrub.Bytes(form)
	}
	form = scrub.Renumber(form)
	if b.mask != nil {
		form = b.mask.Mask(form)
	}
	return string(form)
}

// Refusal returns what a Relay of a replay is to ask for a spawn that is on no tape (RelayOptions.Refuse): each request gets an error
// at once, and is one of Refused. why is Spawn's.
func (b *Book) Refusal(program string, args []string, why string) func(line []byte) (answer []byte) {
	server := b.spawnName(program, args)
	return func(line []byte) (answer []byte) {
		msgs, batch, err := Parse(line)
		if err != nil {
			return nil
		}
		var answers [][]byte
		for i := range msgs {
			if m := &msgs[i]; m.IsRequest() {
				b.refused.Add(Refused{Server: server, Method: m.Method, Why: why})
				answers = append(answers, errorAnswer(m.ID, notOnTape(m, why)))
			}
		}
		return lineOf(answers, batch)
	}
}

// Unknown returns a Served for a spawn that is on no tape and speaks MCP all the same, in the place of its server: whatever it is asked
// it refuses as Refusal does.
func (b *Book) Unknown(program string, args []string, why string) *Served {
	return &Served{book: b, name: b.spawnName(program, args), why: why}
}

// spawnName is how a server is called that has no name: by its program and its first argument that is no flag.
func (b *Book) spawnName(program string, args []string) string {
	name := baseName(program)
	if i := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") }); i >= 0 {
		name += " " + args[i]
	}
	if b.scrub != nil {
		name = b.scrub.String(name)
	}
	return name
}

// Unasked lists, in recorded order, the requests over stdio that nobody came with so far. A ping is none, and what went over HTTP is
// a matter of its exchanges. What a server asked another one nobody comes with.
func (b *Book) Unasked() []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Call
	for _, t := range b.talks {
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
