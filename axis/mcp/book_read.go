package mcp

import (
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A bookReader sorts the records of a tape by their conversation.
type bookReader struct {
	book  *Book
	talks map[talkName]*talkReader
	order []*talkReader
}

// talkName is what the records of one conversation share. A tape of another producer has no numbers: there it is the server.
type talkName struct {
	number uint64
	server string
}

func nameOf(server string, number uint64) talkName {
	if number != 0 {
		return talkName{number: number}
	}
	return talkName{server: server}
}

// read gathers every conversation of the tape.
func (b *Book) read(records iter.Seq2[*tape.Record, error]) error {
	r := &bookReader{book: b, talks: make(map[talkName]*talkReader)}
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
		b.bind(t.talk)
		t.talk.arrange()
		b.talks = append(b.talks, t.talk)
	}
	return nil
}

func (r *bookReader) take(rec *tape.Record) {
	switch k := rec.Kind.(type) {
	case *tape.MCPOpen:
		r.talk(k.Server, k.Conversation).open(k)
	case *tape.MCPJSONRPC:
		t := r.talk(k.Server, k.Conversation)
		if k.Transport != "" {
			t.talk.Transport = k.Transport
		}
		if k.Conversation == 0 {
			k = r.book.enveloped(k, rec.Seq)
		}
		t.message(rec, k, r.book)
	case *tape.MCPText:
		r.talk(k.Server, k.Conversation).text(rec, k)
	case *tape.MCPClose:
		r.talk(k.Server, k.Conversation).close(rec, k)
	}
}

func (r *bookReader) talk(server string, number uint64) *talkReader {
	name := nameOf(server, number)
	t := r.talks[name]
	if t == nil {
		t = &talkReader{talk: &recordedTalk{Recorded: Recorded{Server: server, Conversation: number, Methods: make(map[string]int)}}}
		r.talks[name] = t
		r.order = append(r.order, t)
	}
	return t
}

func (t *talkReader) open(k *tape.MCPOpen) {
	rec := &t.talk.Recorded
	rec.Server, rec.Transport, rec.Program, rec.Args = k.Server, k.Transport, k.Program, k.Args
	rec.Within = tape.AskerOf(k)
	rec.Cwd, rec.URL, rec.Protocol = k.Cwd, k.URL, k.Protocol
}

func (t *talkReader) close(rec *tape.Record, k *tape.MCPClose) {
	t.talk.end.known, t.talk.end.signal, t.talk.end.at = true, k.Signal, rec.MonotonicMS
	if k.By == string(Server) {
		t.talk.end.byServer = true
	}
	if k.ExitCode != nil {
		t.talk.end.exit = int(*k.ExitCode)
	}
}

// text takes lines that are no messages. What the client wrote so is asked of nobody.
func (t *talkReader) text(rec *tape.Record, k *tape.MCPText) {
	switch {
	case k.Payload == nil:
		return
	case k.From == string(Client):
		t.talk.told = append(t.talk.told, bookTold{k.Arrival, rec.MonotonicMS, toldText, max(strings.Count(k.Payload.Text, "\n"), 1)})
		return
	}
	l := &bookLine{
		place: k.Arrival, after: before(k.Arrival), at: rec.MonotonicMS, seq: rec.Seq, text: true, stderr: k.From == "stderr",
		parts: []bookPart{{payload: k.Payload}},
	}
	if l.stderr {
		l.after = k.Arrival
	}
	t.order = append(t.order, l)
}

// before is the place before p.
func before(p uint64) uint64 { return max(p, 1) - 1 }

func (t *talkReader) message(rec *tape.Record, k *tape.MCPJSONRPC, b *Book) {
	if k.Request == nil {
		return
	}
	asked, answered := t.places(k)
	fromServer := k.From == string(Server)
	switch {
	case !isRequest(k, b.store) && fromServer:
		t.said(rec, k.Request, asked, nil)
	case !isRequest(k, b.store):
		t.noted(rec, k, asked)
	case fromServer:
		a := &bookAsk{request: k.Request, place: asked, replied: answered, at: rec.MonotonicMS}
		t.talk.asks = append(t.talk.asks, a)
		t.order = append(t.order, &bookLine{
			place: asked, after: before(asked), at: rec.MonotonicMS - max(k.LatencyMS, 0),
			turn: -1, parts: []bookPart{{payload: k.Request, ask: a}},
		})
	default:
		t.call(rec, k, b, asked, answered)
	}
}

// noted takes a notification of the client.
func (t *talkReader) noted(rec *tape.Record, k *tape.MCPJSONRPC, place uint64) {
	t.talk.told = append(t.talk.told, bookTold{place, rec.MonotonicMS, k.Method, 1})
	if k.Method == notedCancelled {
		t.talk.cancels = append(t.talk.cancels, cancel{k.Request, place})
	}
}

func (t *talkReader) call(rec *tape.Record, k *tape.MCPJSONRPC, b *Book, asked, answered uint64) {
	c := &bookCall{
		seq: rec.Seq, place: asked, at: rec.MonotonicMS - max(k.LatencyMS, 0), request: k.Request, err: k.Error,
		bookKey: bookKey{k.Method, b.digestOf(k)},
	}
	t.talk.calls = append(t.talk.calls, c)
	t.talk.Methods[k.Method]++
	if k.Error == serverEnded {
		t.talk.end.byServer, t.talk.end.open = true, true
	}
	if answered == 0 {
		return
	}
	c.answer, c.answered, c.replied = k.Response, rec.MonotonicMS, answered
	if k.Method != "ping" { // which is answered whenever it comes
		t.said(rec, k.Response, answered, c)
	}
}

// said adds a message of the server, c the request that it answers.
func (t *talkReader) said(rec *tape.Record, p *tape.Payload, place uint64, c *bookCall) {
	t.order = append(t.order, &bookLine{
		place: place, after: before(place), at: rec.MonotonicMS, seq: rec.Seq, parts: []bookPart{{payload: p, call: c, answer: c != nil}},
	})
}

// places tells where a message and its answer stood; answered is 0 for no answer. A tape without places has its records in the order
// in which answers came, one after the other.
func (t *talkReader) places(k *tape.MCPJSONRPC) (asked, answered uint64) {
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
