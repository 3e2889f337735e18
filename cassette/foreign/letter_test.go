package foreign_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cassette/foreign"
)

// TestImportedByTheLetter reads cassettes that were imported as the format's first producer reads one: by this file alone, which knows
// nothing of package cassette. Inner shapes have their exact names, each key its type, nothing is missing, one sequence runs over all.
func TestImportedByTheLetter(t *testing.T) {
	for _, name := range []string{"asciinema-2.2.cast", "untold.cast"} {
		src, err := os.ReadFile(filepath.Join("testdata", "asciinema-2.2.cast"))
		if err != nil {
			t.Fatal(err)
		}
		if name == "untold.cast" { // with input, a size, a marker, a secret, and no word about its end
			src = []byte(`{"version":2,"width":40,"height":5}` + "\n" + `[0.1,"o","key sk-ant-api03-` + "abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ0123456789AA" +
				`\r\n"]` + "\n" + `[0.2,"i","ls\r"]` + "\n" + `[0.3,"r","60x8"]` + "\n" + `[0.4,"m","here"]` + "\n" + `[0.5,"o","\u001b[1mwörld"]` + "\n")
		}
		t.Run(name, func(t *testing.T) {
			path, dir := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "c")
			if err := os.WriteFile(path, src, 0o600); err != nil {
				t.Fatal(err)
			}
			cast, err := foreign.Open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cast.Close()
			if _, err := foreign.Import(t.Context(), cast, dir, nil); err != nil {
				t.Fatal(err)
			}
			l := &letter{t: t, dir: dir}
			l.read()
		})
	}
}

// A letter holds the cassette in a directory to the letter of the format.
type letter struct {
	t      *testing.T
	dir    string
	raw    []byte
	offset int
	seqs   map[int64]int64 // t_ms by seq
}

// The types of values.
const (
	whole    = "a whole number"
	number   = "a number"
	text     = "a string"
	object   = "an object"
	texts    = "a list of strings"
	list     = "a list"
	yesNo    = "true or false"
	anything = "anything"
	orNull   = "an object or null"
)

// shape is what an object has: optional keys end in ?.
type shape map[string]string

func (l *letter) read() {
	l.seqs = make(map[int64]int64)
	var err error
	if l.raw, err = os.ReadFile(filepath.Join(l.dir, "output.raw")); err != nil {
		l.t.Fatal(err)
	}
	l.manifest(l.whole("manifest.json"))
	l.lines("input.jsonl", l.input)
	l.lines("output.jsonl", l.chunk)
	l.lines("frames.jsonl", l.frame)
	l.lines("service-events.jsonl", func(where string, o map[string]json.RawMessage) {
		l.holds(where, o, shape{"seq": whole, "t_ms": whole, "payload": anything})
	})
	if l.offset != len(l.raw) {
		l.t.Errorf("the chunks have %d bytes, the output %d", l.offset, len(l.raw))
	}
	l.final(l.whole("final.json"))
	l.report(l.whole("scrub-report.json"))
	last := int64(0)
	for seq := int64(1); seq <= int64(len(l.seqs)); seq++ {
		at, ok := l.seqs[seq]
		if !ok || at < last {
			l.t.Fatalf("seq %d: at %d ms behind %d, there: %v", seq, at, last, ok)
		}
		last = at
	}
	l.optionals()
}

// optionals refuses files that the format does not name; what it names as optional need not be there.
func (l *letter) optionals() {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{"manifest.json", "input.jsonl", "output.raw", "output.jsonl", "frames.jsonl", "service-events.jsonl",
			"final.json", "quota.json", "discovery.json", "scrub-report.json"}, e.Name()) {
			l.t.Errorf("a file %s", e.Name())
		}
	}
}

func (l *letter) manifest(m map[string]json.RawMessage) {
	l.holds("manifest", m, shape{"version": whole, "id": text, "content_digest": object, "harness": object, "command": object, "terminal": object,
		"timing": object, "provenance": object, "required_features": texts, "optional": object})
	digest := l.in("manifest", m, "content_digest", shape{"sha256": text})
	l.equal("version", m["version"], "1")
	l.equal("sha256", digest["sha256"], fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(l.raw))))
	if string(m["id"]) == `""` || string(m["required_features"]) != "[]" {
		l.t.Errorf("id %s, features %s", m["id"], m["required_features"])
	}
	l.in("manifest", m, "harness", shape{"name": text, "binary_path_digest_sha256?": text, "binary_version?": text, "capability?": object,
		"account_class?": text, "captured_at?": text, "freshness_window?": anything})
	l.in("manifest", m, "command", shape{"argv?": texts, "workdir_policy": text, "env_allowlist?": texts, "timeout_ms?": whole, "permission_mode?": text})
	terminal := l.in("manifest", m, "terminal", shape{"initial_rows": whole, "initial_cols": whole, "locale?": text, "term?": text, "pty_mode?": object, "emulator": object})
	if e := l.in("terminal", terminal, "emulator", shape{"name": text, "version": text}); string(e["name"]) == `""` {
		l.t.Error("an emulator without a name")
	}
	timing := l.in("manifest", m, "timing", shape{"resolution_ms": whole, "clock_policy": text, "replay_default": text})
	l.equal("clock_policy", timing["clock_policy"], `"monotonic-elapsed"`)
	if string(timing["resolution_ms"]) < "1" || !slices.Contains([]string{`"realtime"`, `"scaled"`, `"collapsed"`}, string(timing["replay_default"])) {
		l.t.Errorf("timing %s", m["timing"])
	}
	l.in("manifest", m, "provenance", shape{"git_sha?": text, "contract_version?": text, "os": text, "arch": text, "recorded_at": text, "recorder_version": text})
}

func (l *letter) input(where string, o map[string]json.RawMessage) {
	l.holds(where, o, shape{"seq": whole, "t_ms": whole, "kind": text, "bytes?": text, "key?": text, "size?": object, "signal?": text})
	switch string(o["kind"]) {
	case `"input"`:
		var s string
		if err := json.Unmarshal(o["bytes"], &s); err != nil {
			l.t.Errorf("%s: %v", where, err)
		}
		if _, err := base64.StdEncoding.Strict().DecodeString(s); err != nil {
			l.t.Errorf("%s: %v", where, err)
		}
	case `"resize"`:
		l.in(where, o, "size", shape{"Rows": whole, "Cols": whole})
	case `"signal"`:
	default:
		l.t.Errorf("%s: kind %s", where, o["kind"])
	}
}

func (l *letter) chunk(where string, o map[string]json.RawMessage) {
	l.holds(where, o, shape{"seq": whole, "t_ms": whole, "offset": whole, "length": whole, "sha256?": text})
	offset, length := int(l.int(o["offset"])), int(l.int(o["length"]))
	if offset != l.offset || length < 0 || offset+length > len(l.raw) {
		l.t.Fatalf("%s: offset %d, length %d behind %d", where, offset, length, l.offset)
	}
	l.offset += length
	if o["sha256"] != nil {
		l.equal(where, o["sha256"], fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256(l.raw[offset:l.offset]))))
	}
}

func (l *letter) frame(where string, o map[string]json.RawMessage) {
	l.holds(where, o, shape{"seq": whole, "t_ms": whole, "size": object, "text": texts, "cells?": list, "cursor": object, "title?": text,
		"raw_start": whole, "raw_end": whole, "parser_offset": whole})
	l.in(where, o, "size", shape{"Rows": whole, "Cols": whole})
	l.in(where, o, "cursor", shape{"Row": whole, "Col": whole, "Visible": yesNo})
	if from, to := l.int(o["raw_start"]), l.int(o["raw_end"]); from < 0 || to < from || to > int64(len(l.raw)) {
		l.t.Errorf("%s: of %d to %d", where, from, to)
	}
}

func (l *letter) final(o map[string]json.RawMessage) {
	l.holds("final", o, shape{"seq": whole, "t_ms": whole, "exit?": object, "duration_ms": whole, "metadata?": object, "usage?": object,
		"cost_usd?": number, "routing_actual?": text, "session_log_path?": text, "final_text?": text})
	if o["exit"] != nil {
		l.in("final", o, "exit", shape{"Code": whole, "Signal": text, "Exited": yesNo, "Signaled": yesNo, "Err": orNull})
	}
	if l.int(o["duration_ms"]) < 0 || l.int(o["seq"]) != int64(len(l.seqs)) {
		l.t.Errorf("final: %s ms, seq %s of %d", o["duration_ms"], o["seq"], len(l.seqs))
	}
}

func (l *letter) report(o map[string]json.RawMessage) {
	l.holds("scrub report", o, shape{"status": text, "rules": texts, "hit_counts": object, "env_allowlist?": texts, "intentionally_preserved": texts})
	var rules []string
	hits := make(map[string]int)
	if err := json.Unmarshal(o["rules"], &rules); err != nil {
		l.t.Error(err)
	}
	if err := json.Unmarshal(o["hit_counts"], &hits); err != nil {
		l.t.Error(err)
	}
	for rule, n := range hits {
		if n < 0 || !slices.Contains(rules, rule) {
			l.t.Errorf("rule %q has %d hits, and was not applied: %q", rule, n, rules)
		}
	}
	want := `"clean"`
	if bytes.Contains(l.raw, []byte("sk-ant")) || len(hits) > 0 {
		want = `"redacted"`
	}
	l.equal("status", o["status"], want)
}

// whole reads a file of one object.
func (l *letter) whole(name string) map[string]json.RawMessage {
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		l.t.Fatal(err)
	}
	o := l.object(name, b)
	if name == "final.json" {
		l.seqs[l.int(o["seq"])] = l.int(o["t_ms"])
	}
	return o
}

// lines reads a stream, and takes the place of each line.
func (l *letter) lines(name string, each func(where string, o map[string]json.RawMessage)) {
	b, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		l.t.Fatal(err)
	}
	if len(b) > 0 && b[len(b)-1] != '\n' {
		l.t.Errorf("%s does not end a line", name)
	}
	for i, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
		if len(line) == 0 && len(b) == 0 {
			return
		}
		where := fmt.Sprintf("%s:%d", name, i+1)
		o := l.object(where, line)
		each(where, o)
		seq := l.int(o["seq"])
		if _, twice := l.seqs[seq]; twice {
			l.t.Errorf("%s: seq %d stands twice", where, seq)
		}
		l.seqs[seq] = l.int(o["t_ms"])
	}
}

// in is the object under a key, which has a shape.
func (l *letter) in(where string, o map[string]json.RawMessage, key string, s shape) map[string]json.RawMessage {
	inner := l.object(where+"."+key, o[key])
	l.holds(where+"."+key, inner, s)
	return inner
}

func (l *letter) object(where string, b []byte) (o map[string]json.RawMessage) {
	if err := json.Unmarshal(b, &o); err != nil || o == nil {
		l.t.Fatalf("%s: %v in %s", where, err, b)
	}
	return o
}

// holds sees that an object has the keys of a shape, by their exact names and of their types. It may have others.
func (l *letter) holds(where string, o map[string]json.RawMessage, s shape) {
	for key, kind := range s {
		name, optional := bytes.CutSuffix([]byte(key), []byte("?"))
		v, there := o[string(name)]
		if !there {
			if !optional {
				l.t.Errorf("%s: %s is missing", where, name)
			}
			continue
		}
		if !isOf(kind, v) {
			l.t.Errorf("%s: %s is %s, not %s", where, name, v, kind)
		}
	}
}

func isOf(kind string, v json.RawMessage) bool {
	var to any
	switch kind {
	case whole:
		to = new(int64)
	case number:
		to = new(float64)
	case text:
		to = new(string)
	case object, orNull:
		to = new(map[string]any)
	case texts:
		to = new([]string)
	case list:
		to = new([]any)
	case yesNo:
		to = new(bool)
	default:
		return json.Valid(v)
	}
	return (kind == orNull || string(v) != "null") && json.Unmarshal(v, to) == nil
}

func (l *letter) int(v json.RawMessage) (n int64) {
	if err := json.Unmarshal(v, &n); err != nil {
		l.t.Fatalf("%v in %s", err, v)
	}
	return n
}

func (l *letter) equal(what string, got json.RawMessage, want string) {
	if string(got) != want {
		l.t.Errorf("%s is %s, not %s", what, got, want)
	}
}
