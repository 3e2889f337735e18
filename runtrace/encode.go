package runtrace

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// AppendLine appends the record's line with its newline, cut as the limits ask. The error is a *TooLargeError or an
// *InvalidError; dst is then returned as it came.
func (r Record) AppendLine(dst []byte) ([]byte, error) {
	switch {
	case r.Started != nil:
		return r.Started.AppendLine(dst)
	case r.Turn != nil:
		return r.Turn.AppendLine(dst)
	default:
		return r.Ended.AppendLine(dst)
	}
}

// AppendLine is that of Record.
func (t *Turn) AppendLine(dst []byte) ([]byte, error) {
	w := begin(dst, tagTurn)
	t.fields(&w)
	return w.end(dst, tagTurn)
}

// AppendLine is that of Record.
func (s *Started) AppendLine(dst []byte) ([]byte, error) {
	w := begin(dst, tagStarted)
	s.fields(&w)
	return w.end(dst, tagStarted)
}

// AppendLine is that of Record.
func (e *Ended) AppendLine(dst []byte) ([]byte, error) {
	w := begin(dst, tagEnded)
	e.fields(&w)
	return w.end(dst, tagEnded)
}

// MarshalJSON gives the turn without its tag, cut as in a line.
func (t Turn) MarshalJSON() ([]byte, error) {
	w := writer{buf: []byte{'{'}}
	t.fields(&w)
	return append(w.buf, '}'), w.err
}

const (
	tagStarted = "started"
	tagTurn    = "turn"
	tagEnded   = "ended"
)

// begin begins a line.
func begin(dst []byte, tag string) writer {
	w := writer{buf: append(dst, `{"record":"`...)}
	w.buf = append(w.buf, tag...)
	w.buf = append(w.buf, '"')
	return w
}

// end ends a line that began behind dst.
func (w *writer) end(dst []byte, tag string) ([]byte, error) {
	w.buf = append(w.buf, '}', '\n')
	if w.err != nil {
		return dst, w.err
	}
	if n := len(w.buf) - len(dst); n > MaxLine {
		return dst, &TooLargeError{tag, n}
	}
	return w.buf, nil
}

func (t *Turn) fields(w *writer) {
	w.key("index")
	w.buf = strconv.AppendInt(w.buf, int64(t.Index), 10)
	w.optional("prompt", t.Prompt)
	w.optional("tool", t.Tool)
	w.valid = t.Valid
	w.raw("parameters", orNull(t.Parameters))
	w.raw("output", t.Output)
	w.optional("error", t.Error)
	if t.CLIOutcome != nil {
		w.key("cli_outcome")
		w.buf = append(w.buf, '{')
		t.CLIOutcome.fields(w)
		w.buf = append(w.buf, '}')
	}
	verdict := t.VerifierVerdict
	if verdict == "" {
		verdict = VerdictNotRun
	}
	w.text("verifier_verdict", verdict)
	if t.PolicyRejected != nil {
		w.key("policy_rejected")
		w.buf = append(w.buf, '{')
		t.PolicyRejected.fields(w)
		w.buf = append(w.buf, '}')
	}
}

var null = json.RawMessage("null")

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return null
	}
	return raw
}

func (o *CLIOutcome) fields(w *writer) {
	w.text("outcome", o.Outcome)
	if o.Code != nil {
		w.key("code")
		w.buf = strconv.AppendInt(w.buf, int64(*o.Code), 10)
	}
}

func (p *PolicyRejected) fields(w *writer) {
	w.text("rule", p.Rule)
	w.optional("param", p.Param)
	w.text("reason", p.Reason)
}

func (s *Started) fields(w *writer) {
	w.text("run_id", s.RunID)
	w.text("agent_id", s.AgentID)
	w.optional("agent_name", s.AgentName)
	w.optional("client_id", s.ClientID)
	w.text("intent", s.Intent)
	w.optional("outcome_description", s.OutcomeDescription)
	w.text("started_at", s.StartedAt)
	if s.Recording != nil {
		w.key("recording")
		w.buf = append(w.buf, '{')
		s.Recording.fields(w)
		w.buf = append(w.buf, '}')
	}
}

func (r *Recording) fields(w *writer) {
	w.text("id", r.ID)
	if r.Path != "" {
		w.text("path", r.Path)
	}
}

func (e *Ended) fields(w *writer) {
	w.text("run_id", e.RunID)
	w.text("agent_id", e.AgentID)
	w.text("status", string(e.Status))
	w.raw("outcome", e.Outcome)
	w.text("ended_at", e.EndedAt)
}

// A writer appends the members of an object, with what the limits cut.
type writer struct {
	buf   []byte
	err   error // the first
	valid bool  // what is raw is JSON
}

// key begins a member.
func (w *writer) key(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, name...)
	w.buf = append(w.buf, '"', ':')
}

func (w *writer) text(name, s string) {
	w.key(name)
	w.buf = jsonscan.AppendText(w.buf, Truncate(s))
}

func (w *writer) optional(name string, s *string) {
	if s != nil {
		w.text(name, *s)
	}
}

// raw is for any JSON; nil is absent.
func (w *writer) raw(name string, raw json.RawMessage) {
	if len(raw) == 0 {
		return
	}
	w.key(name)
	if !w.valid {
		if err := jsonscan.Valid(raw); err != nil {
			w.err = cmp.Or[error](w.err, &InvalidError{name, err})
			return
		}
	}
	w.buf = appendRaw(w.buf, raw)
}

// Truncate cuts a string that is longer than MaxString: at most that many bytes of it, whole characters, and Marker. What it has
// cut it does not cut again.
func Truncate(s string) string {
	if len(s) <= MaxString || len(s) <= MaxString+len(Marker) && strings.HasSuffix(s, Marker) {
		return s
	}
	n := MaxString
	for n > MaxString-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + Marker
}

// appendRaw appends JSON on one line and with the strings in it cut. (Keys stay: two that are cut could
// become one.)
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if len(raw) <= MaxString {
		return jsonscan.AppendLine(dst, bytes.TrimSpace(raw))
	}
	return appendCut(dst, bytes.TrimSpace(raw))
}

// appendCut is appendRaw for JSON that is long enough to hold a string that is too long.
func appendCut(dst, raw []byte) []byte {
	for {
		begin := bytes.IndexByte(raw, '"')
		if begin < 0 {
			return jsonscan.AppendLine(dst, raw)
		}
		end := begin + jsonscan.TextLen(raw[begin:])
		dst = jsonscan.AppendLine(dst, raw[:begin])
		dst = appendString(dst, raw[begin:end], isKey(raw[end:]))
		raw = raw[end:]
	}
}

// appendString appends a string with its quotes, cut unless it is a key.
func appendString(dst, quoted []byte, key bool) []byte {
	if key || len(quoted)-2 <= MaxString {
		return append(dst, quoted...)
	}
	var s jsonscan.Scanner
	s.Reset(quoted)
	text := s.TextBytes()
	if len(text) <= MaxString {
		return append(dst, quoted...)
	}
	return jsonscan.AppendText(dst, Truncate(string(text)))
}

// isKey reports whether what stands before b is a key.
func isKey(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == ':'
}

// Fit gives up what a turn is too long for: where its line would be longer than MaxLine, OverLine takes the place of output, of
// parameters, of prompt, in that order, as far as there is need. It is for turns that must not be lost; AppendLine alone
// refuses them.
func (t *Turn) Fit() {
	over, _ := json.Marshal(OverLine)
	prompt := OverLine
	for _, give := range []func(){
		func() { t.Output = over },
		func() { t.Parameters = over },
		func() { t.Prompt = &prompt },
	} {
		if _, err := t.AppendLine(nil); err == nil {
			return
		}
		give()
	}
}

// A TooLargeError says that a line is longer than MaxLine with all cuts made.
type TooLargeError struct {
	Record string // its tag
	Size   int    // bytes, with the newline
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a %s record holds at most %d bytes, this one has %d after strings over %d were cut: send less",
		e.Record, MaxLine, e.Size, MaxString)
}

// An InvalidError says that a raw part of a record is no JSON.
type InvalidError struct {
	Key   string // the part's
	Cause error
}

func (e *InvalidError) Error() string { return fmt.Sprintf("%s is not JSON: %v", e.Key, e.Cause) }
func (e *InvalidError) Unwrap() error { return e.Cause }
