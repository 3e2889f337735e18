package mcp

import (
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

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
		t.settle()
		b.bind(t.transcript)
		t.arrange()
		b.transcripts = append(b.transcripts, t.transcript)
	}
	return nil
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
		t = &transcriptReader{transcript: &transcript{Recorded: Recorded{Server: server, Conversation: number, Methods: make(map[string]int)}}}
		r.transcripts[name] = t
		r.order = append(r.order, t)
	}
	return t
}

func (t *transcriptReader) open(k *tape.MCPOpen) {
	rec := &t.Recorded
	rec.Server, rec.Transport, rec.Program, rec.Args = k.Server, k.Transport, k.Program, k.Args
	rec.Within = tape.AskerOf(k)
	rec.Cwd, rec.URL, rec.Protocol = k.Cwd, k.URL, k.Protocol
}

func (t *transcriptReader) close(rec *tape.Record, k *tape.MCPClose) {
	t.end.known, t.end.signal, t.end.at = true, k.Signal, rec.MonotonicMS
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
		t.notes = append(t.notes, recordedNote{
			place: k.Arrival, at: rec.MonotonicMS, what: noteText, n: max(strings.Count(k.Payload.Text, "\n"), 1), seq: rec.Seq,
		})
		return
	}
	l := &recordedLine{
		place: k.Arrival, after: before(k.Arrival), at: rec.MonotonicMS, seq: rec.Seq, text: true, stderr: k.From == "stderr",
		parts: []recordedPart{{payload: k.Payload}},
	}
	if l.stderr {
		l.after = k.Arrival
	}
	t.order = append(t.order, l)
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
		t.noted(rec, k, asked)
	case fromServer:
		a := &recordedAsk{
			request: k.Request, place: asked, replied: answered, at: rec.MonotonicMS, seq: rec.Seq, via: k.AnswerExchange, ping: k.Method == methodPing,
		}
		t.asks = append(t.asks, a)
		t.order = append(t.order, &recordedLine{
			place: asked, after: before(asked), at: rec.MonotonicMS - max(k.LatencyMS, 0), via: k.Exchange,
			turn: -1, parts: []recordedPart{{payload: k.Request, ask: a}},
		})
	default:
		t.call(rec, k, b, asked, answered)
	}
}

// noted takes a notification of the client.
func (t *transcriptReader) noted(rec *tape.Record, k *tape.MCPJSONRPC, place uint64) {
	t.notes = append(t.notes, recordedNote{place: place, at: rec.MonotonicMS, what: k.Method, n: 1, seq: rec.Seq, via: k.Exchange})
	if k.Method == notedCancelled {
		t.cancels = append(t.cancels, cancel{k.Request, place})
	}
}

func (t *transcriptReader) call(rec *tape.Record, k *tape.MCPJSONRPC, b *Book, asked, answered uint64) {
	c := &recordedCall{
		seq: rec.Seq, place: asked, at: rec.MonotonicMS - max(k.LatencyMS, 0), request: k.Request, err: k.Error, via: k.Exchange,
		requestKey: requestKey{k.Method, b.digestOf(k)},
	}
	t.calls = append(t.calls, c)
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
	t.order = append(t.order, &recordedLine{
		place: place, after: before(place), at: rec.MonotonicMS, seq: rec.Seq, via: via,
		parts: []recordedPart{{payload: p, call: c, answer: c != nil}},
	})
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

// messageOf reads the one message of a payload.
func messageOf(p *tape.Payload, store cas.Store) (*Message, bool) {
	if p == nil || !p.Inline && store == nil {
		return nil, false
	}
	b, err := p.Bytes(store)
	if err != nil {
		return nil, false
	}
	msgs, _, err := Parse(b)
	if err != nil || len(msgs) != 1 {
		return nil, false
	}
	return &msgs[0], true
}

// baseName is the last element of a program's path, on whatever system it was recorded.
func baseName(program string) string {
	return path.Base(strings.ReplaceAll(program, `\`, "/"))
}

// bind finds out to which request of the client each notification of the server belongs that names one: by the token of its progress,
// or by its id. Such a one goes out only where that request came.
func (b *Book) bind(t *transcript) {
	var calls map[string][]*recordedCall // by token and by id, see named
	if len(t.cancels) > 0 {
		calls = b.names(t)
	}
	for _, c := range t.cancels {
		if m, ok := messageOf(c.payload, b.store); ok {
			if call := ownerOf(calls[spotRequest+" "+idName(member(m.Params, spotRequest))], c.place); call != nil && call.cancelled == 0 {
				call.cancelled = c.place
			}
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
			if value == nil || name == spotRequest && len(t.asks) > 0 { // a server that asks cancels its own requests
				continue
			}
			if calls == nil {
				calls = b.names(t)
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
	if open != nil {
		return open
	}
	return last
}
