package deck

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// tape writes the tape anew where it holds one. It is read twice: most tapes hold none, and then nothing is written.
func (l *late) tape() error {
	path := filepath.Join(l.s.dir, tapeName)
	first, err := l.firstHolding(path)
	if err != nil || first < 0 {
		return err
	}
	l.replaced = true
	return l.rewrite(path, first)
}

// firstHolding returns which record is the first that holds one, or -1; 0 stands for the header too.
func (l *late) firstHolding(path string) (int, error) {
	t, err := tape.Open(path, nil)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	if _, changed := l.header(t.Header()); changed {
		return 0, nil
	}
	i := 0
	for rec, err := range t.Records() {
		if err != nil {
			return 0, err
		}
		l.told(rec)
		if found, err := l.record(rec); found || err != nil {
			return i, err
		}
		i++
	}
	return -1, nil
}

// header returns the header of the tape without them.
func (l *late) header(h *tape.Header) (_ *tape.Header, changed bool) {
	out := *h
	out.Argv = append([]string{}, h.Argv...)
	all := make([]*string, 0, len(out.Argv)+1)
	for i := range out.Argv {
		all = append(all, &out.Argv[i])
	}
	if h.ScriptPath != nil {
		script := *h.ScriptPath
		out.ScriptPath = &script
		all = append(all, &script)
	}
	return &out, l.clear(all)
}

// clear takes them out of strings, and reports whether there was one.
func (l *late) clear(all []*string) (changed bool) {
	for _, p := range all {
		if out, found := l.find.Bytes([]byte(*p)); found {
			*p, changed = string(out), true
		}
	}
	return changed
}

// rewrite puts a tape without them in the place of the one at path. Records before first are passed by.
func (l *late) rewrite(path string, first int) error {
	t, err := tape.Open(path, nil)
	if err != nil {
		return err
	}
	f, err := durable.Create(filepath.Dir(path), &durable.Options{Mode: 0o644, Sync: l.o.sync})
	if err != nil {
		return errors.Join(err, t.Close())
	}
	head, _ := l.header(t.Header())
	w, err := tape.NewWriter(f, head)
	if err == nil {
		err = l.copyRecords(w, t, first)
	}
	if err = errors.Join(err, t.Close()); err != nil { // closed, for some systems replace no open file
		f.Discard()
		return err
	}
	return f.Commit(path)
}

func (l *late) copyRecords(w *tape.Writer, t *tape.Tape, first int) error {
	i := 0
	for rec, err := range t.Records() {
		if err != nil {
			return err
		}
		if i > first {
			l.told(rec)
		}
		if i >= first {
			err = l.hideIn(rec)
		}
		if err := errors.Join(err, w.Append(rec)); err != nil {
			return err
		}
		i++
	}
	return w.Flush()
}

// record reports whether a record holds one.
func (l *late) record(rec *tape.Record) (bool, error) {
	if tape.ExchangeOf(rec.Kind) != nil {
		return l.search.Holds(rec)
	}
	for _, p := range tape.Strings(rec.Kind) {
		if _, found := l.find.Bytes([]byte(*p)); found {
			return true, nil
		}
	}
	for _, b := range otherBytes(rec) {
		if _, found := l.find.Bytes(*b); found {
			return true, nil
		}
	}
	for _, p := range tape.Payloads(rec.Kind) {
		if found, err := l.payload(p); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// otherBytes lists what a record holds beside its strings and payloads: JSON, of further keys too, and strings that are no text.
func otherBytes(rec *tape.Record) (out []*[]byte) {
	if k, ok := rec.Kind.(*tape.PolicyVerdict); ok {
		out = append(out, (*[]byte)(&k.State), (*[]byte)(&k.Verdict))
	}
	for i := range rec.Raw {
		out = append(out, &rec.Raw[i].Bytes)
	}
	if extra := tape.Extras(rec.Kind); extra != nil {
		for i := range *extra {
			out = append(out, (*[]byte)(&(*extra)[i].Value))
		}
	}
	return out
}

// payload reports whether a payload holds one.
func (l *late) payload(p *tape.Payload) (bool, error) {
	found, err := l.search.Payload(p)
	if isMissing(err) {
		return false, nil // of a file that a replay found in the recording as it is: it is not on this tape
	}
	return found, err
}

// hideIn takes them out of a record, and makes sure that none is left.
func (l *late) hideIn(rec *tape.Record) error {
	found, err := l.record(rec)
	if err != nil || !found {
		return err
	}
	switch k := rec.Kind.(type) {
	case *tape.LLMCall, *tape.HTTPExchange:
		err = exchange.Again(rec, l.s.store, l.class, l.find, &exchange.TapOptions{TrueLength: true})
	case *tape.ProcessSpawn:
		err = l.spawn(k)
	case *tape.PolicyVerdict:
		err = l.verdict(k)
	case *tape.MCPJSONRPC:
		err = l.mcpCall(k)
	case *tape.MCPText:
		err = l.content(&k.Payload)
	case *tape.WSMessage:
		err = l.content(&k.Payload)
	case *tape.FileWrite, *tape.FileDelete:
		err = files.HideLateRecord(rec, &files.LateOptions{Store: l.changing.trees.made, Late: l.find, All: l.s.scrub}, l.mask)
	}
	if err != nil {
		return fmt.Errorf("record %d: %w", rec.Seq, err)
	}
	l.clear(tape.Strings(rec.Kind))
	for _, b := range otherBytes(rec) {
		*b, _ = l.find.Bytes(*b)
	}
	if left, err := l.record(rec); left || err != nil {
		return errors.Join(err, fmt.Errorf("record %d, a %s, cannot be written without them", rec.Seq, rec.Kind.Name()))
	}
	return nil
}

// spawn takes them out of the streams of a process.
func (l *late) spawn(k *tape.ProcessSpawn) error {
	for _, s := range []struct {
		payload **tape.Payload
		kept    func(*process.Kept)
	}{
		{&k.Stdin, func(*process.Kept) {}},
		{&k.Stdout, func(to *process.Kept) { k.StdoutDigest = to.Digest }},
		{&k.Stderr, func(to *process.Kept) { k.StderrDigest = to.Digest }},
	} {
		if *s.payload == nil {
			continue
		}
		kept, err := l.stream(*s.payload)
		if err != nil {
			return err
		}
		*s.payload = kept.Payload
		s.kept(kept)
	}
	l.stdin = k.Stdin
	return nil
}

// content takes them out of a payload that nothing is compared by but its bytes.
func (l *late) content(p **tape.Payload) error {
	if *p == nil {
		return nil
	}
	b, err := (*p).Bytes(l.s.store)
	if err != nil {
		return err
	}
	b, _ = l.find.Bytes(b)
	*p, err = tape.MakePayload(l.s.store, b)
	return err
}

// verdict takes them out of what a policy judged.
func (l *late) verdict(k *tape.PolicyVerdict) error {
	if k.ParamsPayload == nil {
		return nil
	}
	params, err := k.ParamsPayload.Bytes(l.s.store)
	if err != nil {
		return err
	}
	params, _ = l.find.Bytes(params)
	k.ParamsDigest = cas.Sum(params)
	k.ParamsPayload, err = tape.MakePayload(l.s.store, params)
	return err
}

// stream keeps a recorded stream once more.
func (l *late) stream(p *tape.Payload) (*process.Kept, error) {
	r, err := p.Open(l.s.store)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := process.NewStream(l.s.store, l.find, l.mask)
	_, err = io.Copy(s, r)
	kept, errKept := s.Finish()
	return kept, errors.Join(err, errKept)
}

// parts takes them out of the answers that could not be kept, whose parts stay as evidence.
func (l *late) parts() error {
	dir := filepath.Join(l.s.dir, partName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return gone(err)
	}
	for _, e := range entries {
		if !exchange.IsPart(e) {
			continue
		}
		if err := l.part(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// part writes one part anew: its line, which is JSON, then the bytes of the answer.
func (l *late) part(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	out, err := durable.Create(filepath.Dir(path), &durable.Options{Sync: l.o.sync})
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = l.copyPart(out, bufio.NewReader(f))
	if err = errors.Join(err, f.Close()); err != nil {
		out.Discard()
		return err
	}
	return out.Commit(path)
}

func (l *late) copyPart(out io.Writer, part *bufio.Reader) error {
	line, err := part.ReadBytes('\n')
	if notEOF(err) != nil { // the line of a part may be torn
		return err
	}
	line, _ = l.find.Bytes(line)
	_, err = out.Write(line)
	w := l.find.Writer(out)
	if err == nil {
		_, err = io.Copy(w, part)
	}
	return errors.Join(err, w.Close())
}
