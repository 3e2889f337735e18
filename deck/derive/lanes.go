package derive

import (
	"bytes"
	"io"
	"os"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/account"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A modelLane is one lane with a model.
type modelLane struct {
	name        string
	first, last place
	arrival     uint64 // of its first request
	lastArrival uint64 // the highest

	// Of a lane beside the main one, once its first call was read:
	looked bool
	tools  bool          // it declares some
	left   bool          // it was the main one, had come to its end, and the conversation went on in another
	heard  place         // of its last call so far, and
	call   *tape.LLMCall // that call
}

// forget forgets what deriving has found out of a lane: a deriving that begins anew reads it again.
func (l *modelLane) forget() {
	l.looked, l.tools, l.left, l.heard, l.call = false, false, false, place{}, nil
}

// A Survey is what is known of the lanes of a tape, as far as it was read.
type Survey struct {
	Store  cas.Store
	lanes  map[string]*modelLane
	tooled *modelLane // the first whose requests declare tools; nil for none
	first  *modelLane // the first conversation; nil for none
}

// NewSurvey returns one that has seen nothing.
func NewSurvey() *Survey { return &Survey{lanes: make(map[string]*modelLane)} }

// survey finds the lanes of a tape, and the main one: the first whose requests declare tools; where none does, the first
// conversation.
func (d *conversation) survey() error {
	t, err := tape.Open(d.src.Path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return err
	}
	defer t.Close()
	d.lanes.Store = t.Store
	for rec, err := range t.Records() {
		if err != nil {
			return err
		}
		d.lanes.see(rec)
	}
	if d.main = d.lanes.tooled; d.main == nil {
		d.main = d.lanes.first
	}
	return nil
}

// see takes a record. One that was seen before changes nothing.
func (s *Survey) see(rec *tape.Record) {
	k, ok := rec.Kind.(*tape.LLMCall)
	if !ok || unmatched(k) {
		return
	}
	at := placeOf(rec)
	l := s.lanes[k.Lane]
	if l == nil {
		l = &modelLane{name: k.Lane, first: at, arrival: k.Arrival}
		s.lanes[k.Lane] = l
	}
	if at.seq >= l.last.seq {
		l.last = at
	}
	l.lastArrival = max(l.lastArrival, k.Arrival)
	if s.tooled != nil {
		return
	}
	tools, converses := s.declares(k)
	if converses && s.first == nil {
		s.first = l
	}
	if tools {
		s.tooled = l
	}
}

// toolKeys are the keys under which protocols declare tools.
var toolKeys = [...][]byte{[]byte(`"tools"`), []byte(`"functions"`), []byte(`"toolConfig"`)}

// declares reports whether a request declares tools, and whether it is one of a conversation at all.
func (s *Survey) declares(k *tape.LLMCall) (tools, converses bool) {
	body, err := account.Body(k.RequestPayload, s.Store)
	if err != nil {
		return false, false
	}
	if body, err = exchange.Decode(exchange.HeaderOf(k.RequestHeaders).Get("Content-Encoding"), body, llm.MaxSaid); err != nil {
		return false, false
	}
	plain := *k
	plain.RequestHeaders, plain.Response = nil, nil
	if !llm.Talks(&plain, body) {
		return false, false
	}
	for _, key := range toolKeys {
		if bytes.Contains(body, key) {
			said, err := llm.ReadCall(&plain, body, nil)
			return err == nil && said.Tools, true
		}
	}
	return false, true
}

// Another lane is one of three things: the conversation of a sub-agent, which the program holds while a call of the main one is
// open; the main conversation under another name, where it went on; or what is none of the conversation's: a title, a summary.
//
// A sub-agent's lane declares tools, and its first request came after an answer of the main lane that called tools and before
// the request that brought what they gave. It runs from then on, and has joined once the main lane goes on and the last answer
// of its own called no tool. Whether a request came before the main lane's next one shows only when that is read, so the events
// stand there.

// The states of a sub-agent that a tape shows.
const (
	agentRunning = "running"
	agentJoined  = "joined"
)

// besideCall reads a call of another lane than the main one.
func (d *conversation) besideCall(k *tape.LLMCall, l *modelLane) {
	if l.looked && l.tools {
		l.heard, l.call = d.at, k
		return
	}
	said, err := d.peek(k)
	if err != nil {
		return // a call that cannot be read is none of a sub-agent's
	}
	if !said.Tools {
		d.summed(said)
	}
	if l.looked {
		return
	}
	l.looked = true
	if d.goesOn(said, l) {
		d.main.left = said.Follows == ""
		d.main = l
		d.listener = new(llm.Listener)
		d.asked, d.before = 0, 0
		d.mainCall(k)
		return
	}
	l.tools = said.Tools
	if l.tools && d.calls > 0 && d.dialog.Turn() > 0 {
		l.heard, l.call = d.at, k
		d.waiting = append(d.waiting, l)
	}
}

func (d *conversation) peek(k *tape.LLMCall) (*llm.Said, error) {
	request, response, err := d.bodies(k)
	if err != nil {
		return nil, err
	}
	return llm.ReadCall(k, request, response)
}

// goesOn reports whether the main conversation goes on in a lane whose first call is said: the provider keeps its history and
// each request brings what is new alone; or the lane before it has come to its end, no call of it is open, and this one says
// the same of who the model is and has tools too, as after a compaction or where the conversation is begun anew.
func (d *conversation) goesOn(said *llm.Said, l *modelLane) bool {
	if said.Follows != "" {
		return said.Follows == d.lastID
	}
	return d.calls == 0 && d.dialog.Turn() > 0 && d.tools && said.Tools && said.System == d.system && said.System != "" &&
		d.main.last.seq < l.first.seq && l.arrival > d.main.lastArrival
}

// agents says which sub-agents began, and which have joined, before the request of the main lane that arrived.
func (d *conversation) agents(arrival uint64) {
	for _, l := range d.waiting {
		if l.arrival > arrival {
			continue // it was begun for nothing that this request brings
		}
		d.agent(l, agentRunning, l.first)
		d.subs = append(d.subs, l)
	}
	d.waiting = d.waiting[:0]
	running := d.subs[:0]
	for _, l := range d.subs {
		if said, err := d.peek(l.call); err == nil && said.Answer != nil && len(said.Answer.Message.ToolCalls) == 0 {
			d.agent(l, agentJoined, l.heard)
			continue
		}
		running = append(running, l)
	}
	d.subs = running
}

func (d *conversation) agent(l *modelLane, state string, at place) {
	d.putAt(&sessionlog.AgentProcessChanged{
		Common: sessionlog.Common{Turn: d.dialog.Turn()}, AgentID: l.name, ParentSessionID: d.src.ID, State: state,
		PermittedCapabilityIDs: []string{},
	}, at)
}

// unmatched reports whether a call is one that a replay refused.
func unmatched(k *tape.LLMCall) bool { return k.Lane == exchange.Unmatched }

// A Live derives the session log of a tape while the tape is written. What it tells is what a deriving at that moment would
// give, and a tape that goes on may show that it was otherwise: which lane is the main one, and whether the conversation went on
// in another, follows from what comes. Then it begins anew, and tells events a second time: whoever hears them knows calls and
// results by their ids.
type Live struct {
	Src   *Source // open
	Lanes *Survey // its store is that of the tape
	Heard func(sessionlog.Event) error
	// idle is called whenever all that is on the tape has been read, every pollEvery at least.
	Idle func() error

	restarts int
}

// pollEvery is the time between two looks at a tape that gives nothing.
const pollEvery = 20 * time.Millisecond

// maxRestarts bounds how often a liveTalk begins anew. From then on it may tell less than the tape holds.
const maxRestarts = 16

// Follow reads the tape as it grows, until end is closed and what stood there by then has been read. The error is that of heard
// and idle, and of the tape.
func (l *Live) Follow(end <-chan struct{}) error {
	for {
		again, err := l.pass(end)
		if err != nil || !again {
			return err
		}
		l.restarts++
	}
}

// pass reads the tape once; again means that it is to be read anew.
func (l *Live) pass(end <-chan struct{}) (again bool, err error) {
	f, err := os.Open(l.Src.Path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	t, err := tape.NewReaderOptions(&growing{f: f, end: end, idle: l.Idle}, l.Src.Path, &tape.ReaderOptions{Tolerant: true})
	if err != nil {
		return false, err
	}
	for _, lane := range l.Lanes.lanes {
		lane.forget()
	}
	d := newConversation(l.Src, l.Lanes)
	d.heard, d.main = l.Heard, l.Lanes.tooled
	for rec, err := range t.Records() {
		if err != nil {
			return false, err
		}
		l.Lanes.see(rec)
		if d.main == nil && l.Lanes.tooled != nil {
			d.main = l.Lanes.tooled
			d.stale = d.main.looked // it was taken for one beside the conversation
		}
		if !d.stale {
			if err := d.record(rec); err != nil {
				return false, err
			}
		}
		if d.stale && l.restarts < maxRestarts {
			return true, nil
		}
		d.stale = false
	}
	d.settle(nil)
	return false, d.failed
}

// growing reads a file that grows. At its end it waits, until end is closed.
type growing struct {
	f     io.Reader
	end   <-chan struct{}
	idle  func() error
	ended bool // nothing is written any more
}

// Read implements io.Reader.
func (g *growing) Read(b []byte) (int, error) {
	for {
		n, err := g.f.Read(b)
		if n > 0 || recording.NotEOF(err) != nil {
			return n, recording.NotEOF(err)
		}
		if g.ended { // it was before that look, which found nothing more
			return 0, io.EOF
		}
		if err := g.idle(); err != nil {
			return 0, err
		}
		select {
		case <-g.end:
			g.ended = true
		case <-time.After(pollEvery):
		}
	}
}
