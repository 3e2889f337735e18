package mcp

import (
	"cmp"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A recordedTalk is one conversation as it stands on the tape. Nothing of it changes once the Book is read, but for what says so.
type recordedTalk struct {
	Recorded
	calls []*bookCall // requests of the client, in recorded order
	told  []bookTold  // what the client said that asks for nothing, in recorded order
	lines []*bookLine // what the server wrote, by place
	asks  []*bookAsk  // requests of the server, in recorded order
	end   ending

	cancels []cancel // of the client

	script []lane.Line[*event] // all of it, for a play
	stream uint64              // in the order of all servers

	taken   bool // a Served of it was handed out; guarded by Book.mu
	settled bool // a Served has found out that it is this one; guarded by Book.mu
}

// A bookKey is what a request is matched by.
type bookKey struct {
	method string
	params cas.Digest
}

// A bookCall is one request of the client.
type bookCall struct {
	bookKey
	seq     uint64
	place   uint64
	at      int64 // when it came, in ms of the recording
	line    int   // of the script; -1 for a ping, which nothing waits for
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
func (c *bookCall) unasked() bool { return !c.served && c.method != "ping" }

// A bookTold is what the client said that asks for nothing, n times in a row. The server's lines wait for `initialized`, and where the
// server ended first for the last one, for it may have ended for that.
type bookTold struct {
	place uint64
	at    int64  // ms of the recording
	what  string // the method of a notification, or toldText
	n     int
}

// toldText stands for the method of what is no message.
const toldText = "\n"

// A bookAsk is one request of the server.
type bookAsk struct {
	request *tape.Payload
	line    int // of the script: the client's response
	place   uint64
	replied uint64 // place of that response, 0 for none
	at      int64  // when that came, in ms of the recording
}

// A cancel is a notification of the client that it wants no answer any more.
type cancel struct {
	payload *tape.Payload
	place   uint64
}

// A bookLine is what the server wrote in one go: one message, the messages of a batch, a line that is no message, or a piece of its
// stderr.
type bookLine struct {
	place  uint64
	after  uint64 // the last place whose turn comes before it
	at     int64  // ms of the recording
	parts  []bookPart
	text   bool // the payload is the bytes themselves, not a message
	stderr bool
	turn   int    // in the order of all servers; -1 for none
	seq    uint64 // of its record; 0 of what the server asked, whose record is that of the response
}

// A bookPart is one message of a line.
type bookPart struct {
	payload *tape.Payload
	call    *bookCall // the request of the client that it answers or belongs to; nil for none
	answer  bool
	name    string   // the spot by which a notification names that request
	ask     *bookAsk // where it is a request of the server
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

// A talkReader gathers the records of one conversation.
type talkReader struct {
	talk  *recordedTalk
	last  uint64 // the last place given to a record that has none
	order []*bookLine
}

// settle puts everything in the order of its place.
func (r *talkReader) settle() {
	t := r.talk
	slices.SortStableFunc(t.calls, func(a, b *bookCall) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.seq, b.seq))
	})
	slices.SortStableFunc(t.asks, func(a, b *bookAsk) int { return cmp.Compare(a.place, b.place) })
	t.lines = joined(r.order)
}

// joined sorts lines by place and makes one of the messages that share one: those of a batch.
func joined(lines []*bookLine) []*bookLine {
	slices.SortStableFunc(lines, func(a, b *bookLine) int {
		return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.place, b.place), cmp.Compare(a.seq, b.seq))
	})
	var out []*bookLine
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
