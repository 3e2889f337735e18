package rescrub

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// tape passes the tape through the write path again, and puts what comes of that in its place where any record held one.
func (l *Pass) tape() error {
	path := filepath.Join(l.Dir, recording.TapeName)
	t, err := tape.Open(path, nil)
	if err != nil {
		return err
	}
	changed := false
	err = l.replace(path, 0o644, func(w io.Writer) (bool, error) {
		changed, err = l.passTape(w, t)
		return changed, errors.Join(err, t.Close()) // closed, for some systems replace no open file
	})
	l.replaced = l.replaced || changed
	return err
}

// replace puts what write writes in the place of the file at path, unless that is the same.
func (l *Pass) replace(path string, mode os.FileMode, write func(io.Writer) (changed bool, err error)) error {
	f, err := durable.Create(filepath.Dir(path), &durable.Options{Mode: mode, Sync: l.Sync})
	if err != nil {
		return err
	}
	changed, err := write(f)
	if err != nil || !changed {
		f.Discard()
		return err
	}
	return f.Commit(path)
}

// passTape writes t to w without them, and reports whether there was one.
func (l *Pass) passTape(w io.Writer, t *tape.Tape) (changed bool, err error) {
	head, changed := l.header(t.Header())
	tw, err := tape.NewWriter(w, head)
	if err != nil {
		return false, err
	}
	for rec, err := range t.Records() {
		if err != nil {
			return false, err
		}
		l.files++
		for _, p := range tape.Payloads(rec.Kind) {
			l.bytes += p.Len
		}
		l.tell(0, 0)
		held, err := l.pass(rec)
		if err := errors.Join(err, tw.Append(rec)); err != nil {
			return false, err
		}
		if sp, ok := rec.Kind.(*tape.ProcessSpawn); ok {
			if l.Stdin = nil; held {
				l.Stdin = sp.Stdin
			}
		}
		if held && l.Replaced != nil {
			l.Replaced(rec)
		}
		changed = changed || held
	}
	return changed, tw.Flush()
}

// header returns the header of the tape without them.
func (l *Pass) header(h *tape.Header) (_ *tape.Header, changed bool) {
	out := *h
	out.Argv = append([]string{}, h.Argv...)
	for i, a := range out.Argv {
		out.Argv[i] = l.Find.String(a)
		changed = changed || out.Argv[i] != a
	}
	if h.ScriptPath != nil {
		script := l.Find.String(*h.ScriptPath)
		out.ScriptPath = &script
		changed = changed || script != *h.ScriptPath
	}
	return &out, changed
}

// pass takes them out of a record, makes sure that none is left, and reports whether there was one.
func (l *Pass) pass(rec *tape.Record) (bool, error) {
	if held, err := l.holdsOne(rec); err != nil || !held {
		return false, err
	}
	if err := l.again(rec); err != nil {
		return false, fmt.Errorf("record %d: %w", rec.Seq, err)
	}
	eachText(rec, func(b []byte) []byte {
		b, _ = l.Find.Bytes(b)
		return b
	})
	if left, err := l.holdsOne(rec); left || err != nil {
		return false, errors.Join(err, fmt.Errorf("record %d, a %s, cannot be written without them", rec.Seq, rec.Kind.Name()))
	}
	return true, nil
}

// holdsOne reports whether a record holds one.
func (l *Pass) holdsOne(rec *tape.Record) (found bool, err error) {
	if tape.ExchangeOf(rec.Kind) != nil {
		return l.search.Holds(rec)
	}
	eachText(rec, func(b []byte) []byte {
		_, is := l.Find.Bytes(b)
		found = found || is
		return b
	})
	payloads := tape.Payloads(rec.Kind)
	if k, ok := rec.Kind.(*tape.ProcessSpawn); ok && k.Answers != nil {
		payloads = append(payloads, k.Answers)
	}
	if p := l.shown(rec); p != nil {
		if found, err = l.onScreen(p); err != nil {
			return false, err
		}
	}
	for _, p := range payloads {
		if found {
			break
		}
		if tape.ChangedFile(rec.Kind) != nil { // which may be compressed
			var b []byte
			if b, err = p.Bytes(l.Store); err == nil {
				_, found = l.Find.Bytes(b)
			}
		} else {
			found, err = l.search.Payload(p)
		}
		if err != nil && !recording.IsMissing(err) { // of a file that a replay found in the recording as it is: it is not on this tape
			return false, err
		}
	}
	return found, nil
}

// shown is what the program's terminal showed, where rec is the program's and it had one; else nil.
func (l *Pass) shown(rec *tape.Record) *tape.Payload {
	k, ok := rec.Kind.(*tape.ProcessSpawn)
	switch {
	case !ok || l.TTY == nil || rec.Seq != l.Program:
		return nil
	case l.TTY.ShownAs() == 2:
		return k.Stderr
	}
	return k.Stdout
}

// onScreen reports whether one stands on the screen, over styles and wraps.
func (l *Pass) onScreen(p *tape.Payload) (bool, error) {
	b, err := p.Bytes(l.Store)
	if err != nil {
		return false, err
	}
	masked := bytes.Clone(b)
	tty.MaskShown(masked, nil, &tty.Options{Scrub: l.Find, KeepEmail: true, Rows: l.TTY.Rows, Cols: l.TTY.Cols})
	return !bytes.Equal(b, masked), nil
}

// eachText has change give each string of a record anew, and what else it holds beside its payloads: JSON, of further keys too,
// and strings that are no text.
func eachText(rec *tape.Record, change func([]byte) []byte) {
	for _, p := range tape.Strings(rec.Kind) {
		*p = string(change([]byte(*p)))
	}
	if k, ok := rec.Kind.(*tape.PolicyVerdict); ok {
		k.State, k.Verdict = change(k.State), change(k.Verdict)
	}
	for i := range rec.Raw {
		rec.Raw[i].Bytes = change(rec.Raw[i].Bytes)
	}
	if extra := tape.Extras(rec.Kind); extra != nil {
		for i := range *extra {
			(*extra)[i].Value = change((*extra)[i].Value)
		}
	}
}

// again gives a record's payloads, and what is compared of them, as the recorder would that knew them from the beginning.
func (l *Pass) again(rec *tape.Record) error {
	switch k := rec.Kind.(type) {
	case *tape.LLMCall, *tape.HTTPExchange:
		return exchange.Again(rec, l.Store, l.class, l.Find, &exchange.TapOptions{TrueLength: true})
	case *tape.ProcessSpawn:
		return l.spawn(k, l.shown(rec))
	case *tape.PolicyVerdict:
		if k.ParamsPayload == nil {
			return nil
		}
		err := l.content(&k.ParamsPayload)
		k.ParamsDigest = k.ParamsPayload.Hash
		return err
	case *tape.MCPJSONRPC:
		return l.mcpCall(k)
	case *tape.MCPText:
		return l.content(&k.Payload)
	case *tape.WSMessage:
		return l.content(&k.Payload)
	case *tape.FileWrite, *tape.FileDelete:
		return files.HideLateRecord(rec, l.fileOptions())
	}
	return nil
}

// spawn takes them out of the streams of a process, and of what the kernel told it.
func (l *Pass) spawn(k *tape.ProcessSpawn, shown *tape.Payload) error {
	var stdin cas.Digest
	for _, s := range []struct {
		payload **tape.Payload
		digest  *cas.Digest
	}{{&k.Stdin, &stdin}, {&k.Stdout, &k.StdoutDigest}, {&k.Stderr, &k.StderrDigest}} {
		if *s.payload == nil {
			continue
		}
		kept, err := l.stream(*s.payload, *s.payload == shown)
		if err != nil {
			return err
		}
		if *s.payload = kept.Payload; !s.digest.IsZero() { // the program's; of those that it started none is taken
			*s.digest = kept.Digest
		}
	}
	return l.content(&k.Answers) // its questions name files
}

// stream keeps a recorded stream once more.
func (l *Pass) stream(p *tape.Payload, shown bool) (*process.Kept, error) {
	r, err := p.Open(l.Store)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	s := process.NewStream(l.Store, l.Find, l.Mask)
	if shown {
		s = process.NewTerminalStream(l.Store, l.Find, l.Mask, l.TTY.Rows, l.TTY.Cols)
	}
	_, err = io.Copy(s, r)
	kept, errKept := s.Finish()
	return kept, errors.Join(err, errKept)
}

// content takes them out of a payload that nothing is compared by but its bytes.
func (l *Pass) content(p **tape.Payload) error {
	if *p == nil {
		return nil
	}
	b, err := (*p).Bytes(l.Store)
	if err != nil {
		return err
	}
	b, _ = l.Find.Bytes(b)
	out, err := tape.MakePayload(l.Store, b)
	if err == nil {
		*p = out
	}
	return err
}

// mcpCall takes them out of both messages of a call, whose digests are then those of a run that knew them from the beginning.
func (l *Pass) mcpCall(k *tape.MCPJSONRPC) error {
	from := cmp.Or(mcp.Side(k.From), mcp.Client)
	err := l.mcpMessage(from, k.Method, &k.Request, &k.RequestDigest, &k.ParamsDigest)
	return errors.Join(err, l.mcpMessage(from.Other(), "", &k.Response, &k.ResponseDigest, &k.ResultDigest))
}

// mcpMessage takes them out of one message. inside becomes the digest of what is compared of it, where it has one.
func (l *Pass) mcpMessage(from mcp.Side, method string, p **tape.Payload, digest, inside *cas.Digest) error {
	if *p == nil || (*p).Len == 0 && !(*p).Inline {
		return nil
	}
	b, err := (*p).Bytes(l.Store)
	if err != nil {
		return err
	}
	line := l.mcp.Redact(from, b)
	if len(line.Messages) == 1 && !inside.IsZero() {
		m := &line.Messages[0]
		compared := m.Params
		if compared == nil {
			compared = m.Result
		}
		if compared == nil {
			compared = m.Error
		}
		*inside = l.mcp.Digest(method, compared)
	}
	out, err := tape.MakePayload(l.Store, line.Text)
	if err == nil {
		*p, *digest = out, out.Hash
	}
	return err
}

// parts takes them out of the answers that could not be kept, whose parts stay as evidence.
func (l *Pass) parts() error {
	dir := filepath.Join(l.Dir, recording.PartName)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return recording.Gone(err)
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
func (l *Pass) part(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return l.replace(path, 0, func(out io.Writer) (bool, error) {
		part := bufio.NewReader(f)
		line, err := part.ReadBytes('\n')
		if recording.NotEOF(err) != nil { // the line of a part may be torn
			return false, errors.Join(err, f.Close())
		}
		line, _ = l.Find.Bytes(line)
		_, err = out.Write(line)
		w := l.Find.Writer(out)
		_, errCopy := io.Copy(w, part)
		return true, errors.Join(err, errCopy, w.Close(), f.Close())
	})
}
