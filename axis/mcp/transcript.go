package mcp

import (
	"cmp"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
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

	script  []lane.Line[*recordedLine] // all of it, for a player
	carried map[uint64]*carried        // of HTTP: the lines of an exchange, by its arrival
	stream  uint64                     // in the order of all servers

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

// A recordedLine is what one side wrote in one go. Of the client it is one message, or text. Of the server it is one message, the messages
// of a batch, a line that is no message, or a piece of its stderr.
type recordedLine struct {
	seq uint64 // of its record; 0 of what the server asked, whose record is that of the response
	via uint64 // arrival of the http_exchange that carried it

	// of the client
	key     requestKey
	call    *recordedCall // the request that it is
	cancels *recordedCall // the request that it cancels
	ask     *recordedAsk  // the server's request that it responds to

	// of the server
	place  uint64
	after  uint64 // the last place whose turn comes before it
	at     int64  // ms of the recording
	parts  []recordedPart
	text   bool // the payload is the bytes themselves, not a message
	stderr bool
	turn   int    // in the order of all servers; -1 for none
	own    []byte // of one that is on no tape: the line, without its end
}

// matched is what a line of the client is known by.
func (l *recordedLine) matched() requestKey { return l.key }

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

// callsOf are the requests of the client in one exchange, in order.
func (t *transcript) callsOf(arrival uint64) (calls []*recordedCall) {
	if c := t.carried[arrival]; c != nil {
		for _, i := range c.client {
			if call := t.script[i].Value.call; call != nil {
				calls = append(calls, call)
			}
		}
	}
	return calls
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

// A tapeReader sorts the records of a tape by their conversation.
type tapeReader struct {
	book        *Book
	transcripts map[transcriptName]*transcriptReader
	order       []*transcriptReader
}

// transcriptName is what the records of one conversation share. A tape of another producer has no numbers: there it is the server.
type transcriptName struct {
	number uint64
	server string
}

func nameOf(server string, number uint64) transcriptName {
	if number != 0 {
		return transcriptName{number: number}
	}
	return transcriptName{server: server}
}

// read gathers every conversation of the tape.
func (b *Book) read(records iter.Seq2[*tape.Record, error]) error {
	r := &tapeReader{book: b, transcripts: make(map[transcriptName]*transcriptReader)}
	var check Checker
	for rec, err := range records {
		if err == nil {
			if err = check.Check(rec.Kind); err != nil {
				err = fmt.Errorf("record %d: %w", rec.Seq, err)
			}
		}
		if err != nil {
			return err
		}
		r.take(rec)
	}
	for _, t := range r.order {
		t.sort()
		b.bind(t)
		t.arrange()
		b.transcripts = append(b.transcripts, t.transcript)
	}
	return nil
}

// A transcriptReader gathers the records of one conversation.
type transcriptReader struct {
	*transcript
	last    uint64                     // the last place given to a record that has none
	client  []lane.Line[*recordedLine] // what the client said
	written []*recordedLine
	note    int      // of client: the last that asks for nothing; -1 for none
	cancels []cancel // in recorded order
	asks    int      // requests of the server
}

// A cancel is a notification of the client that it wants no answer any more.
type cancel struct {
	payload *tape.Payload
	line    int // of transcriptReader.client
}

func (r *tapeReader) take(rec *tape.Record) {
	switch k := rec.Kind.(type) {
	case *tape.MCPOpen:
		r.transcript(k.Server, k.Conversation).open(k)
	case *tape.MCPJSONRPC:
		t := r.transcript(k.Server, k.Conversation)
		if k.Transport != "" {
			t.Transport = k.Transport
		}
		if k.Conversation == 0 {
			k = r.book.enveloped(k, rec.Seq)
		}
		t.message(rec, k, r.book)
	case *tape.MCPText:
		r.transcript(k.Server, k.Conversation).text(rec, k)
	case *tape.MCPClose:
		r.transcript(k.Server, k.Conversation).close(rec, k)
	}
}

func (r *tapeReader) transcript(server string, number uint64) *transcriptReader {
	name := nameOf(server, number)
	t := r.transcripts[name]
	if t == nil {
		t = &transcriptReader{note: -1, transcript: &transcript{Recorded: Recorded{Server: server, Conversation: number, Methods: make(map[string]int)}}}
		r.transcripts[name] = t
		r.order = append(r.order, t)
	}
	return t
}

func (t *transcriptReader) open(k *tape.MCPOpen) {
	rec := &t.Recorded
	rec.Server, rec.Transport, rec.Program, rec.Args = k.Server, k.Transport, k.Program, k.Args
	rec.Within = tape.OriginOf(k)
	rec.URL, rec.Protocol = k.URL, k.Protocol
}

func (t *transcriptReader) close(rec *tape.Record, k *tape.MCPClose) {
	t.end.signal, t.end.at = k.Signal, rec.MonotonicMS
	if k.By == string(Server) {
		t.end.byServer = true
	}
	if k.ExitCode != nil {
		t.end.exit = int(*k.ExitCode)
	}
}

// text takes lines that are no messages. What the client wrote so is asked of nobody.
func (t *transcriptReader) text(rec *tape.Record, k *tape.MCPText) {
	switch {
	case k.Payload == nil:
		return
	case k.From == string(Client):
		for range max(strings.Count(k.Payload.Text, "\n"), 1) {
			t.noted(rec, noteText, k.Arrival, 0)
		}
		return
	}
	l := &recordedLine{
		place: k.Arrival, after: before(k.Arrival), at: rec.MonotonicMS, seq: rec.Seq, text: true, stderr: k.From == "stderr",
		parts: []recordedPart{{payload: k.Payload}},
	}
	if l.stderr {
		l.after = k.Arrival
	}
	t.written = append(t.written, l)
}

// before is the place before p.
func before(p uint64) uint64 { return max(p, 1) - 1 }

func (t *transcriptReader) message(rec *tape.Record, k *tape.MCPJSONRPC, b *Book) {
	if k.Request == nil {
		return
	}
	asked, answered := t.places(k)
	fromServer := k.From == string(Server)
	switch {
	case !isRequest(k, b.store) && fromServer:
		t.line(rec, k.Request, asked, k.Exchange, nil)
	case !isRequest(k, b.store):
		t.noted(rec, k.Method, asked, k.Exchange)
		if k.Method == notedCancelled {
			t.cancels = append(t.cancels, cancel{k.Request, t.note})
		}
	case fromServer:
		t.ask(rec, k, asked, answered)
	default:
		t.call(rec, k, b, asked, answered)
	}
}

// say adds a line of the client. What the server said behind it waits for it where it counts.
func (t *transcriptReader) say(place uint64, ms int64, counts bool, l *recordedLine) {
	t.client = append(t.client, lane.Line[*recordedLine]{Place: place, MS: ms, Counts: counts, Value: l})
}

// noted takes what the client says that asks for nothing: a notification, by its method, or noteText.
func (t *transcriptReader) noted(rec *tape.Record, what string, place, via uint64) {
	t.note = len(t.client)
	counts := slices.Contains(t.protocol().counts, what)
	t.say(place, rec.MonotonicMS, counts, &recordedLine{key: noteKey(what), via: via, seq: rec.Seq})
}

// ask takes a request of the server, and the client's response.
func (t *transcriptReader) ask(rec *tape.Record, k *tape.MCPJSONRPC, asked, answered uint64) {
	a := &recordedAsk{line: -1}
	t.asks++
	if answered > 0 {
		counts := k.Method != methodPing || t.Transport != HTTP
		t.say(answered, rec.MonotonicMS, counts, &recordedLine{ask: a, via: k.AnswerExchange, seq: rec.Seq})
	}
	t.written = append(t.written, &recordedLine{
		place: asked, after: before(asked), at: rec.MonotonicMS - max(k.LatencyMS, 0), via: k.Exchange,
		turn: -1, parts: []recordedPart{{payload: k.Request, ask: a}},
	})
}

func (t *transcriptReader) call(rec *tape.Record, k *tape.MCPJSONRPC, b *Book, asked, answered uint64) {
	c := &recordedCall{
		seq: rec.Seq, place: asked, at: rec.MonotonicMS - max(k.LatencyMS, 0), request: k.Request, err: k.Error, via: k.Exchange,
		requestKey: requestKey{k.Method, b.digestOf(k)}, line: -1, cancelLine: -1,
	}
	t.calls = append(t.calls, c)
	if c.method != methodPing || t.Transport == HTTP {
		t.say(c.place, c.at, c.method != methodPing, &recordedLine{key: c.requestKey, call: c, via: c.via, seq: c.seq})
	}
	t.Methods[k.Method]++
	if k.Error == serverEnded {
		t.end.byServer, t.end.open = true, true
	}
	if answered == 0 {
		return
	}
	c.answer, c.answered, c.replied = k.Response, rec.MonotonicMS, answered
	if k.Method != methodPing || t.Transport == HTTP {
		t.line(rec, k.Response, answered, k.AnswerExchange, c)
	}
}

// line adds a message of the server, c the request that it answers.
func (t *transcriptReader) line(rec *tape.Record, p *tape.Payload, place, via uint64, c *recordedCall) {
	t.written = append(t.written, &recordedLine{
		place: place, after: before(place), at: rec.MonotonicMS, seq: rec.Seq, via: via,
		parts: []recordedPart{{payload: p, call: c, answer: c != nil}},
	})
}

// sort puts everything in the order of its place.
func (t *transcriptReader) sort() {
	slices.SortStableFunc(t.calls, func(a, b *recordedCall) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.seq, b.seq))
	})
	for i := 1; i < len(t.calls); i++ {
		if a, b := t.calls[i-1], t.calls[i]; a.place == b.place {
			a.batched, b.batched = true, true
		}
	}
	slices.SortStableFunc(t.written, func(a, b *recordedLine) int {
		return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.place, b.place), cmp.Compare(a.seq, b.seq))
	})
	for _, l := range t.written {
		if n := len(t.lines); n > 0 && l.joins(t.lines[n-1]) {
			t.lines[n-1].parts, t.lines[n-1].seq = append(t.lines[n-1].parts, l.parts...), max(t.lines[n-1].seq, l.seq)
			continue
		}
		t.lines = append(t.lines, l)
	}
}

// joins reports whether two lines are messages of one batch.
func (l *recordedLine) joins(last *recordedLine) bool {
	return l.place == last.place && !l.stderr && !l.text && !last.stderr && !last.text
}

// arrange makes the script: what each side said, in the order of its place. A server that ended first may have done so for what its
// client said last.
func (t *transcriptReader) arrange() {
	if t.end.byServer && t.note >= 0 {
		t.client[t.note].Counts = true
	}
	t.script = t.client
	for _, l := range t.lines {
		t.script = append(t.script, lane.Line[*recordedLine]{Place: l.after, MS: l.at, From: lane.Far, Stream: l.via, Value: l})
	}
	slices.SortStableFunc(t.script, func(a, b lane.Line[*recordedLine]) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.From, b.From))
	})
	for i := range t.script {
		switch l := t.script[i].Value; {
		case l.call != nil:
			l.call.line = i
		case l.cancels != nil:
			l.cancels.cancelLine = i
		case l.ask != nil:
			l.ask.line = i
		}
	}
	for i := range t.script {
		t.script[i].Owners = t.script[i].Value.owners()
	}
	t.carry()
}

// places tells where a message and its answer stood; answered is 0 for no answer. A tape without places has its records in the order
// in which answers came, one after the other.
func (t *transcriptReader) places(k *tape.MCPJSONRPC) (asked, answered uint64) {
	asked, answered = k.Arrival, k.Answered
	has := k.Response != nil && k.Response.Len > 0
	if asked == 0 {
		asked, answered = t.last+1, 0
		if has {
			answered = asked + 1
		}
		t.last += 2
	}
	if !has {
		answered = 0
	}
	return asked, answered
}

// isRequest reports whether k asks for an answer. A notification has no id.
func isRequest(k *tape.MCPJSONRPC, store cas.Store) bool {
	switch {
	case k.Answered > 0 || k.Response != nil && k.Response.Len > 0 || k.Error != "":
		return true
	case strings.HasPrefix(k.Method, "notifications/"):
		return false
	}
	m, ok := messageOf(k.Request, store)
	return ok && len(m.ID) > 0
}

// baseName is the last element of a program's path, on whatever system it was recorded.
func baseName(program string) string {
	return path.Base(strings.ReplaceAll(program, `\`, "/"))
}

// bind finds out to which request of the client each notification of the server belongs that names one: by the token of its progress,
// or by its id. Such a one goes out only where that request came.
func (b *Book) bind(t *transcriptReader) {
	var calls map[string][]*recordedCall // by token and by id, see named
	if len(t.cancels) > 0 {
		calls = b.names(t.transcript)
	}
	for _, c := range t.cancels {
		m, ok := messageOf(c.payload, b.store)
		if !ok {
			continue
		}
		said := &t.client[c.line]
		if call := ownerOf(calls[spotRequest+" "+idName(member(m.Params, spotRequest))], said.Place); call != nil && call.cancelled == 0 {
			call.cancelled = said.Place
			said.Value.cancels, said.Value.key = call, requestKey{} // it is found by its id
		}
	}
	for _, l := range t.lines {
		for i := range l.parts {
			p := &l.parts[i]
			if l.text || p.answer || p.ask != nil {
				continue
			}
			m, ok := messageOf(p.payload, b.store)
			if !ok {
				continue
			}
			name, value := named(m)
			if value == nil || name == spotRequest && t.asks > 0 { // a server that asks cancels its own requests
				continue
			}
			if calls == nil {
				calls = b.names(t.transcript)
			}
			p.call, p.name = ownerOf(calls[name+" "+string(value)], l.place), name
		}
	}
}

// named is what a notification says of the request that it belongs to; the value is nil where it says nothing.
func named(m *Message) (name string, value []byte) {
	for _, s := range spotsOf(m.Raw) {
		if s.name != spotID {
			return s.name, m.Raw[s.start:s.end]
		}
	}
	return "", nil
}

// names lists the requests of the client by what notifications call them.
func (b *Book) names(t *transcript) map[string][]*recordedCall {
	out := make(map[string][]*recordedCall)
	for _, c := range t.calls {
		m, ok := messageOf(c.request, b.store)
		if !ok {
			continue
		}
		if token := tokenOf(m.Params); token != nil {
			name := spotToken + " " + string(token)
			out[name] = append(out[name], c)
		}
		for _, spot := range []string{spotSubscription, spotRequest} {
			name := spot + " " + string(m.ID)
			out[name] = append(out[name], c)
		}
	}
	return out
}

// ownerOf is the last of calls that was asked before a place, rather one that was not answered before it.
func ownerOf(calls []*recordedCall, place uint64) *recordedCall {
	var last, open *recordedCall
	for _, c := range calls {
		if c.place >= place {
			break
		}
		last = c
		if c.replied == 0 || c.replied > place {
			open = c
		}
	}
	return cmp.Or(open, last)
}
