package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// showRecord prints every field of one record, indented as JSON, or with --payloads for a person: what people noted about it behind
// the fields, then each body once.
func (s *shown) showRecord(rec *tape.Record, o *showOptions, out io.Writer) error {
	if !o.payloads && !isMessage(rec.Kind) {
		return indentJSON(out, tape.AppendRecord(nil, rec))
	}
	if err := errors.Join(writeRecord(out, rec), s.showNotes(out, rec.Seq, "")); err != nil {
		return err
	}
	if isMessage(rec.Kind) {
		return s.showMessages(rec.Kind, out)
	}
	return s.showPayloads(rec.Kind, out)
}

// showSingle prints one record and what people noted about it, in JSON as one more key.
func (s *shown) showSingle(rec *tape.Record, o *showOptions, out io.Writer) error {
	notes := s.begunAt(rec.Seq)
	if o.payloads || isMessage(rec.Kind) || len(notes) == 0 {
		return s.showRecord(rec, o, out)
	}
	line := bytes.TrimSpace(tape.AppendRecord(nil, rec))
	said, err := marshal(notes)
	if err != nil {
		return err
	}
	return indentJSON(out, fmt.Appendf(line[:len(line)-1], `,"annotations":%s}`, said))
}

// showBytes prints what --payloads asks for below a line.
func (s *shown) showBytes(it follow.Item, o *showOptions, out io.Writer) error {
	switch {
	case !o.payloads:
		return nil
	case it.Record == nil:
		return showScreen(it.Screen, out)
	}
	return s.showPayloads(it.Record.Kind, out)
}

func (s *shown) showPayloads(k tape.Kind, out io.Writer) error {
	for _, p := range follow.PayloadsOf(k) {
		if err := s.showPayload(p, out); err != nil {
			return err
		}
	}
	return nil
}

func (s *shown) showPayload(p follow.NamedPayload, out io.Writer) error {
	b, err := p.Bytes(s.tape.Store)
	if err != nil {
		return err
	}
	visible.Fprintf(out, "--- %s (%s)\n", p.Name, plural(len(b), "byte", "bytes"))
	return raw(out, "%s", wholeLines(b, isTerminal(out)))
}
