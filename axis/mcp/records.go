package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// noBytes is the digest of what is not there.
var noBytes = cas.Sum(nil)

// kept is a message with what takes time to make of it.
type kept struct {
	*Message
	payload *tape.Payload
	digest  cas.Digest // of the params, the result or the error
}

// keep puts the messages of a line into the store.
func (l *Log) keep(line *Line) (out []kept, err error) {
	out = make([]kept, len(line.Messages))
	for i := range out {
		m := &line.Messages[i]
		if !line.Batch { // with the white space around it
			m.Raw = bytes.TrimSuffix(line.Text, []byte{'\n'})
		}
		if out[i], err = l.keepOne(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// keepOne puts a message into the store. What becomes a blob takes as long to write as to compare: both are done at once.
func (l *Log) keepOne(m *Message) (kept, error) {
	k := kept{Message: m}
	if len(m.Raw) <= tape.InlineLimit {
		k.digest = l.Digest(m.Method, m.value())
		p, err := l.rec.Payload(m.Raw)
		k.payload = p
		return k, err
	}
	digest := make(chan cas.Digest, 1) // the goroutine ends by itself
	go func() { digest <- l.Digest(m.Method, m.value()) }()
	p, err := l.rec.Payload(m.Raw)
	k.payload, k.digest = p, <-digest
	return k, err
}

// record is that of a request or a notification, without an answer.
func (c *Conversation) record(from Side, m *kept, via uint64) *tape.MCPJSONRPC {
	method, _ := tape.SafeString(m.Method)
	return &tape.MCPJSONRPC{
		Method: method, RequestDigest: m.payload.Hash, ResponseDigest: noBytes, Request: m.payload, From: string(from),
		Conversation: c.number, Transport: c.opened.Transport, Arrival: c.arrival, ParamsDigest: m.digest, Exchange: via,
	}
}

// text takes text at the place of the line that came last.
func (c *Conversation) text(from Side, b []byte) error {
	for _, t := range c.texts {
		if t.from != from {
			continue
		}
		t.add(b, c.arrival)
		if t.full() {
			return c.writeTexts((*text).lines)
		}
	}
	return nil
}

// writeTexts writes what take gives of each text, by place.
func (c *Conversation) writeTexts(take func(*text) ([]byte, uint64)) error {
	var all []*tape.MCPText
	for _, t := range c.texts {
		b, at := take(t)
		if len(b) == 0 {
			continue
		}
		p, err := c.log.rec.Payload(b)
		if err != nil {
			return err
		}
		all = append(all, &tape.MCPText{Conversation: c.number, From: string(t.from), Arrival: at, Payload: p})
	}
	slices.SortStableFunc(all, func(a, b *tape.MCPText) int { return int(a.Arrival) - int(b.Arrival) })
	for _, k := range all {
		if err := c.write(k, nil); err != nil {
			return err
		}
	}
	return nil
}

// closing is the record of the end.
func (c *Conversation) closing(e *Ended) *tape.MCPClose {
	k := &tape.MCPClose{Conversation: c.number, Arrival: c.arrival, Signal: e.Signal, Error: c.lost, By: string(c.by)}
	if e.Exited {
		code := int64(e.ExitCode)
		k.ExitCode = &code
	}
	return k
}

// redactOpened returns o as it may be written, and the true bytes of what is not UTF-8.
func (l *Log) redactOpened(o *Opened) (out Opened, raw []tape.RawBytes) {
	safe := func(key, v string) string {
		text, bytes := tape.SafeString(l.str(v))
		if bytes != nil {
			raw = append(raw, tape.RawBytes{Key: key, Bytes: bytes})
		}
		return text
	}
	out = Opened{Transport: o.Transport, Recorded: o.Recorded, Within: o.Within}
	out.Program, out.Cwd = safe("program", o.Program), safe("cwd", o.Cwd)
	for i, a := range o.Args {
		out.Args = append(out.Args, safe(fmt.Sprintf("args.%d", i), a))
	}
	if o.Given != nil {
		for i, v := range o.Given() {
			out.given = append(out.given, safe(fmt.Sprintf("env.%d", i), v))
		}
	}
	out.URL, _ = tape.SafeString(l.url(o.URL))
	return out, raw
}

// redactID returns an id as it stands in a redacted message.
func (l *Log) redactID(id json.RawMessage) json.RawMessage {
	if l.scrubber == nil {
		return id
	}
	out, _ := l.scrubber.Bytes(id)
	return out
}

// member returns the value of a member of an object, the last of that name; nil for none.
func member(object json.RawMessage, name string) (value json.RawMessage) {
	var s jsonscan.Scanner
	s.Reset(object)
	if s.Peek() != '{' {
		return nil
	}
	for s.Begin('{'); s.More('}'); {
		if string(s.Key()) == name {
			value = s.Raw()
		} else {
			s.Skip()
		}
	}
	return value
}

// str returns the text of a JSON string; "" where it is none.
func str(value json.RawMessage) string {
	var s jsonscan.Scanner
	s.Reset(value)
	if s.Peek() != '"' {
		return ""
	}
	return s.Text()
}
