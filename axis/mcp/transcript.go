package mcp

import (
	"cmp"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A transcript is one conversation as it stands on the tape. Nothing of it changes once the Book is read, but for what says so.
type transcript struct {
	Recorded
	calls []*recordedCall // requests of the client, in recorded order
	notes []recordedNote  // what the client said that asks for nothing, in recorded order
	lines []*recordedLine // what the server wrote, by place
	asks  []*recordedAsk  // requests of the server, in recorded order
	end   ending

	cancels []cancel // of the client

	script  []lane.Line[*event] // all of it, for a player
	carried map[uint64]*carried // of HTTP: the lines of an exchange, by its arrival
	stream  uint64              // in the order of all servers

	taken   bool // a Served of it was handed out; guarded by Book.mu
	settled bool // a Served has found out that it is this one; guarded by Book.mu
}

// A requestKey is what a request is matched by.
type requestKey struct {
	method string
	params cas.Digest
}

// A recordedCall is one request of the client.
type recordedCall struct {
	requestKey
	seq     uint64
	place   uint64
	at      int64  // when it came, in ms of the recording
	via     uint64 // arrival of the http_exchange that carried it
	line    int    // of the script; -1 for a ping over stdio, which is answered whenever it comes
	batched bool   // others came in the same go
	request *tape.Payload
	// answer is what the server said to it; nil where it said nothing. Error is then why.
	answer   *tape.Payload
	answered int64  // when, in ms of the recording
	replied  uint64 // place of the answer; 0 for none
	// cancelled is where the client had cancelled it, 0 for nowhere. What the server said to it later is said when the client cancels.
	cancelled  uint64
	cancelLine int // of the script: that cancellation
	err        string

	served bool // somebody came with it; guarded by Book.mu
}

// unasked reports whether nobody came with it, who should have. Book.mu is held.
func (c *recordedCall) unasked() bool { return !c.served && c.method != "ping" }

// answerPart is its answer.
func (c *recordedCall) answerPart() *recordedPart {
	return &recordedPart{payload: c.answer, call: c, answer: true}
}

// A recordedNote is what the client said that asks for nothing, n times in a row. The server's lines wait for `initialized`, and where the
// server ended first for the last one, for it may have ended for that.
type recordedNote struct {
	place uint64
	at    int64  // ms of the recording
	what  string // the method of a notification, or noteText
	n     int
	seq   uint64 // of its record
	via   uint64 // arrival of the http_exchange that carried it
}

// noteText stands for the method of what is no message.
const noteText = "\n"

// A recordedAsk is one request of the server.
type recordedAsk struct {
	request *tape.Payload
	line    int // of the script: the client's response
	place   uint64
	replied uint64 // place of that response, 0 for none
	at      int64  // when that came, in ms of the recording
	seq     uint64 // of their record
	via     uint64 // arrival of the http_exchange that carried that response
	ping    bool
}

// A cancel is a notification of the client that it wants no answer any more.
type cancel struct {
	payload *tape.Payload
	place   uint64
}

// A recordedLine is what the server wrote in one go: one message, the messages of a batch, a line that is no message, or a piece of its
// stderr.
type recordedLine struct {
	place  uint64
	after  uint64 // the last place whose turn comes before it
	at     int64  // ms of the recording
	parts  []recordedPart
	text   bool // the payload is the bytes themselves, not a message
	stderr bool
	turn   int    // in the order of all servers; -1 for none
	seq    uint64 // of its record; 0 of what the server asked, whose record is that of the response
	via    uint64 // arrival of the http_exchange that carried it
}

// answers reports whether a line answers something.
func (l *recordedLine) answers() bool {
	return slices.ContainsFunc(l.parts, func(p recordedPart) bool { return p.answer })
}

// A recordedPart is one message of a line.
type recordedPart struct {
	payload *tape.Payload
	call    *recordedCall // the request of the client that it answers or belongs to; nil for none
	answer  bool
	name    string       // the spot by which a notification names that request
	ask     *recordedAsk // where it is a request of the server
}

// An ending says how a conversation came to its end.
type ending struct {
	known    bool // an mcp_close stands on the tape
	byServer bool // the server ended before the client did
	exit     int  // exit status of its process, 128+n on death by signal n
	signal   string
	at       int64 // ms of the recording
	open     bool  // with a request that it had not answered
}

// A transcriptReader gathers the records of one conversation.
type transcriptReader struct {
	*transcript
	last  uint64 // the last place given to a record that has none
	order []*recordedLine
}

// settle puts everything in the order of its place.
func (r *transcriptReader) settle() {
	t := r.transcript
	slices.SortStableFunc(t.calls, func(a, b *recordedCall) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.seq, b.seq))
	})
	slices.SortStableFunc(t.asks, func(a, b *recordedAsk) int { return cmp.Compare(a.place, b.place) })
	t.lines = joined(r.order)
}

// joined sorts lines by place and makes one of the messages that share one: those of a batch.
func joined(lines []*recordedLine) []*recordedLine {
	slices.SortStableFunc(lines, func(a, b *recordedLine) int {
		return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.place, b.place), cmp.Compare(a.seq, b.seq))
	})
	var out []*recordedLine
	for _, l := range lines {
		if n := len(out); n > 0 && out[n-1].place == l.place && !l.stderr && !l.text && !out[n-1].stderr && !out[n-1].text {
			out[n-1].parts, out[n-1].seq = append(out[n-1].parts, l.parts...), max(out[n-1].seq, l.seq)
			continue
		}
		out = append(out, l)
	}
	return out
}

// serverEnded is the error of a request that a server left open when it ended.
const serverEnded = "server ended"

// How much longer than while recording a line of the server is held up by one that does not come.
const (
	holdAsked = 2 * time.Second  // where somebody waits for an answer
	holdFree  = 30 * time.Second // what nobody asked for: it does no harm that it waits
)

// reading is the most time that a client has to read a notification before the answer that comes apart from it. Clients forget a
// request with its answer: progress of it that one read brings together with that, or a stream of its own after it, is lost to some.
// Nothing tells when a client has read a connection.
const reading = 50 * time.Millisecond

// An event is one line of a conversation as it is played.
type event struct {
	key  requestKey    // of the client
	call *recordedCall // the request that the client's line is
	line *recordedLine // of the server
	own  []byte        // of a server's line that is on no tape: the line, without its end
	via  uint64        // arrival of the http_exchange that carried it
	seq  uint64        // of its record
}

// carried are the lines of the script that one exchange over HTTP carried, in order.
type carried struct{ client, server []int }

// noteKey is the key of what the client says that asks for nothing.
func noteKey(what string) requestKey { return requestKey{method: "\n" + what} }

// An arrangement makes the script of a conversation: what each side said, in the order of its place.
type arrangement struct {
	t   *transcript
	all []entry
}

type entry struct {
	lane.Line[*event]
	at *int // where its index is noted; nil for nowhere
}

// client adds a line of the client. What the server said behind it waits for it where it counts.
func (a *arrangement) client(place uint64, ms int64, counts bool, e *event, at *int) {
	a.all = append(a.all, entry{lane.Line[*event]{Place: place, MS: ms, Counts: counts, Value: e}, at})
}

// arrange makes the script.
func (t *transcript) arrange() {
	a, overHTTP := &arrangement{t: t}, t.Transport == HTTP
	for i, c := range t.calls {
		c.line, c.cancelLine = -1, -1
		c.batched = i > 0 && t.calls[i-1].place == c.place || i+1 < len(t.calls) && t.calls[i+1].place == c.place
		if c.method != methodPing || overHTTP {
			a.client(c.place, c.at, c.method != methodPing, &event{key: c.requestKey, call: c, via: c.via, seq: c.seq}, &c.line)
		}
	}
	for _, ask := range t.asks {
		if ask.replied > 0 {
			a.client(ask.replied, ask.at, !ask.ping || !overHTTP, &event{via: ask.via, seq: ask.seq}, &ask.line)
		}
	}
	for i := range t.notes {
		a.note(&t.notes[i], t.end.byServer && i == len(t.notes)-1)
	}
	for _, l := range t.lines {
		e := &event{line: l, via: l.via, seq: l.seq}
		a.all = append(a.all, entry{Line: lane.Line[*event]{Place: l.after, MS: l.at, From: lane.Far, Stream: l.via, Value: e}})
	}
	a.settle()
}

// note adds a notification of the client, or text. The last of its kind counts where last says so.
func (a *arrangement) note(n *recordedNote, last bool) {
	for i := range n.n {
		e, at := &event{key: noteKey(n.what), via: n.via, seq: n.seq}, (*int)(nil)
		if c := a.t.cancelledAt(n.place); n.what == notedCancelled && c != nil { // it is found by its id
			e.key, at = requestKey{}, &c.cancelLine
		}
		a.client(n.place, n.at, slices.Contains(a.t.protocol().counts, n.what) || last && i == n.n-1, e, at)
	}
}

// settle puts the lines in order, and notes where each stands.
func (a *arrangement) settle() {
	slices.SortStableFunc(a.all, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.Place, y.Place), cmp.Compare(x.From, y.From))
	})
	t := a.t
	t.script, t.carried = make([]lane.Line[*event], len(a.all)), make(map[uint64]*carried)
	for i := range a.all {
		if t.script[i] = a.all[i].Line; a.all[i].at != nil {
			*a.all[i].at = i
		}
		if via := t.script[i].Value.via; via > 0 {
			t.carry(via, i)
		}
	}
	for i := range t.script {
		if l := t.script[i].Value.line; l != nil {
			t.script[i].Owners = l.owners()
		}
	}
}

// carry notes that an exchange carried the line i of the script.
func (t *transcript) carry(via uint64, i int) {
	c := t.carried[via]
	if c == nil {
		c = new(carried)
		t.carried[via] = c
	}
	if t.script[i].From == lane.Far {
		c.server = append(c.server, i)
	} else {
		c.client = append(c.client, i)
	}
}

// recordedBefore is how far the script goes of what was recorded before a record: the index behind the last such line.
func (t *transcript) recordedBefore(seq uint64) (end int) {
	for i := range t.script {
		if t.script[i].Value.seq < seq {
			end = i + 1
		}
	}
	return end
}

// cancelledAt is a request that the client cancelled at a place; nil for none.
func (t *transcript) cancelledAt(place uint64) *recordedCall {
	for _, c := range t.calls {
		if c.cancelled == place && c.cancelLine < 0 {
			return c
		}
	}
	return nil
}

// owners are the lines of the script without which a line of the server is not said.
func (l *recordedLine) owners() (lines []int) {
	for i := range l.parts {
		if p := &l.parts[i]; p.call != nil && !slices.Contains(lines, p.owner(l)) {
			lines = append(lines, p.owner(l))
		}
	}
	return lines
}

// owner is the line of the script that a part of l belongs to: the request, or what cancelled it before.
func (p *recordedPart) owner(l *recordedLine) int {
	if p.call.cancelled > 0 && l.place > p.call.cancelled {
		return p.call.cancelLine
	}
	return p.call.line
}
