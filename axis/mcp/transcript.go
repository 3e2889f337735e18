package mcp

import (
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
	lines []*recordedLine // what the server wrote, by place
	end   ending

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
func (c *recordedCall) unasked() bool { return !c.served && c.method != methodPing }

// answerPart is its answer.
func (c *recordedCall) answerPart() *recordedPart {
	return &recordedPart{payload: c.answer, call: c, answer: true}
}

// noteText stands for the method of what is no message.
const noteText = "\n"

// A recordedAsk is one request of the server.
type recordedAsk struct{ line int } // of the script: the client's response; -1 for none

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
	key     requestKey    // of the client
	call    *recordedCall // the request that the client's line is
	cancels *recordedCall // the request that it cancels
	ask     *recordedAsk  // the server's request that it responds to
	line    *recordedLine // of the server
	own     []byte        // of a server's line that is on no tape: the line, without its end
	via     uint64        // arrival of the http_exchange that carried it
	seq     uint64        // of its record
}

// carried are the lines of the script that one exchange over HTTP carried, in order.
type carried struct{ client, server []int }

// noteKey is the key of what the client says that asks for nothing.
func noteKey(what string) requestKey { return requestKey{method: "\n" + what} }

// carry notes which exchange over HTTP carried which lines.
func (t *transcript) carry() {
	t.carried = make(map[uint64]*carried)
	for i := range t.script {
		via := t.script[i].Value.via
		if via == 0 {
			continue
		}
		if t.carried[via] == nil {
			t.carried[via] = new(carried)
		}
		list := &t.carried[via].client
		if t.script[i].From == lane.Far {
			list = &t.carried[via].server
		}
		*list = append(*list, i)
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
