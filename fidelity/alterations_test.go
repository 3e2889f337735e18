package fidelity

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// mixed is the number of records of the tape that is altered.
const mixed = 100

// TestAlterations alters one value of a tape of 100 mixed records, and holds the verdict of each mode against a table that was
// written from the format's specification: testdata/alterations.txt, whose head says how it reads.
func TestAlterations(t *testing.T) {
	b, err := os.ReadFile("testdata/alterations.txt")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for number, line := range strings.Split(string(b), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		rows++
		cells := strings.Split(line, "|")
		if len(cells) != 6 {
			t.Fatalf("line %d has %d cells, want 6", number+1, len(cells))
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		t.Run(cells[0], func(t *testing.T) { alteration(t, cells[0], cells[1:]) })
	}
	if rows < 30 {
		t.Errorf("the table has %d rows", rows)
	}
}

// alteration tries one row of the table: kind.key, and what each mode says of it.
func alteration(t *testing.T, what string, want []string) {
	kind, key, _ := strings.Cut(what, ".")
	for i, tt := range []struct {
		mode  Mode
		phase string
	}{{ByteIdentical, "user_script"}, {Semantic, "user_script"}, {Outcome, "user_script"}, {PhaseAware, "user_script"}, {PhaseAware, "runtime_finalize"}} {
		lines := mixedTape(tt.phase)
		at := lastOf(lines, kind)
		altered := append([]map[string]any(nil), lines...)
		altered[at] = alterLine(t, lines[at], key)
		got := []string{}
		for _, d := range mustCompare(t, tt.mode, parsed(t, lines), parsed(t, altered)).Divergences {
			got = append(got, string(d.Category))
			if d.Seq != nil && *d.Seq != uint64(at) {
				t.Errorf("%v, %s: %s stands at %d, want %d", tt.mode, tt.phase, d.Category, *d.Seq, at)
			}
		}
		if diff := cmp.Diff(strings.Fields(strings.ReplaceAll(want[i], "-", "")), got); diff != "" {
			t.Errorf("%v, %s: -want +got\n%s", tt.mode, tt.phase, diff)
		}
	}
}

// mixedTape is a tape of every kind of the format, in turn, all of one phase.
func mixedTape(phase string) []map[string]any {
	payload := func(s string) map[string]any {
		return map[string]any{"content_hash": cas.Sum([]byte(s)).String(), "text": s}
	}
	var lines []map[string]any
	for i := range mixed {
		text, digest := fmt.Sprint("text ", i), cas.Sum(fmt.Append(nil, i)).String()
		kinds := []map[string]any{
			{"kind": "clock_read", "source": "wall", "value_ms": i},
			{"kind": "clock_sleep", "duration_ms": i},
			{"kind": "llm_call", "request_digest": digest, "response": payload(text)},
			{"kind": "file_read", "path": text, "content_hash": digest, "len_bytes": i},
			{"kind": "file_write", "path": text, "content_hash": digest, "len_bytes": i},
			{"kind": "file_delete", "path": "gone " + text},
			{"kind": "process_spawn", "program": "git", "args": []string{"log", text}, "cwd": "/src", "exit_code": 0, "duration_ms": i,
				"stdout_payload": payload("out " + text), "stderr_payload": payload("")},
			{"kind": "mcp_json_rpc", "server": "files", "method": "tools/call", "request_digest": digest, "response_digest": digest, "latency_ms": i,
				"request_payload": payload("asked " + text), "response_payload": payload("said " + text)},
			{"kind": "dreamt", "of": text},
		}
		lines = append(lines, map[string]any{
			"type": "record", "seq": i, "phase": phase, "virtual_time_ms": 1000 + i, "monotonic_ms": i, "kind": kinds[(i+1)%len(kinds)],
		})
	}
	return lines
}

// lastOf is the place of the last record of a kind; of the last record of all for any ("*").
func lastOf(lines []map[string]any, kind string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		if kind == "*" || lines[i]["kind"].(map[string]any)["kind"] == kind {
			return i
		}
	}
	panic("no record of kind " + kind)
}

// alterLine returns the line with another value of one key: of its kind, or of the record for @key.
func alterLine(t *testing.T, line map[string]any, key string) map[string]any {
	b, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	in := out["kind"].(map[string]any)
	if name, ok := strings.CutPrefix(key, "@"); ok {
		in, key = out, name
	}
	switch was := in[key].(type) {
	case float64:
		in[key] = was + 1
	case []any:
		in[key] = append(was, "more")
	case map[string]any:
		if key == "kind" { // a record of another kind
			in[key] = map[string]any{"kind": "dreamt", "of": "something else"}
			break
		}
		in[key] = map[string]any{"content_hash": cas.Sum([]byte("altered")).String(), "text": "altered"}
	case string:
		switch {
		case len(was) == 64:
			in[key] = cas.Sum([]byte(was)).String()
		case key == "phase":
			in[key] = map[string]string{"user_script": "runtime_finalize", "runtime_finalize": "user_script"}[was]
		case key == "source":
			in[key] = map[string]string{"wall": "monotonic", "monotonic": "wall"}[was]
		default:
			in[key] = was + "x"
		}
	default:
		t.Fatalf("no key %q in %s", key, b)
	}
	return out
}

// parsed yields lines as records, each from its JSON.
func parsed(t *testing.T, lines []map[string]any) Records {
	return func(yield func(*tape.Record, error) bool) {
		for _, line := range lines {
			b, err := json.Marshal(line)
			if err != nil {
				t.Error(err)
				return
			}
			if rec, err := tape.ParseRecord(b); !yield(rec, err) || err != nil {
				return
			}
		}
	}
}
