package testbench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

var modes = []fidelity.Mode{fidelity.Semantic, fidelity.ByteIdentical, fidelity.Outcome, fidelity.PhaseAware}

// What an alteration of a recorded value deserves on a replay, by what the value is to the run:
//
//   - what the run itself says or does (a sleep, a write, a name that is asked for and answered all the same) differs in that field;
//   - what the run asks for by it is not on the tape any more: that field, and the run ends there: its outcome lacks what came after;
//   - what the run was answered is what it is answered again: nothing differs, unless the program does something else for it, which
//     this one does not;
//   - a time that passes with an answer makes everything after it late: times, and what is read of a clock.
const (
	nothing  = "-"
	late     = "clock_read_value virtual_time_drift monotonic_drift"
	cutOff   = "outcome_fs_diff outcome_llm_call_count"
	cutEarly = cutOff + " outcome_exit_code" // before any command ran
)

// alterations were written from spec/fidelity.md before any of them ran: the first record of a kind (round 0) is altered.
var alterations = []struct {
	name                     string
	kind                     string
	alter                    func(r *tape.Record)
	semantic, exact, outcome string
	phaseAware               string // "" where it says what exact says
}{
	// Every record.
	{name: "phase of a clock reading at the end", kind: "last user", alter: func(r *tape.Record) { r.Phase = tape.PhaseRuntimeFinalize },
		semantic: nothing, exact: "phase_mismatch", outcome: nothing, phaseAware: "missing_in_recorded"},
	{name: "virtual time", kind: "clock_read", alter: func(r *tape.Record) { r.VirtualTimeMS++ },
		semantic: nothing, exact: "virtual_time_drift", outcome: nothing},
	{name: "monotonic time", kind: "clock_read", alter: func(r *tape.Record) { r.MonotonicMS++ },
		semantic: nothing, exact: "monotonic_drift", outcome: nothing},
	{name: "time in the finalizer", kind: "last", alter: func(r *tape.Record) { r.VirtualTimeMS++ },
		semantic: nothing, exact: "virtual_time_drift", outcome: nothing, phaseAware: nothing},

	// Clocks: what a paused clock says is the run's own.
	{name: "clock source", kind: "clock_read", alter: of(func(k *tape.ClockRead) { k.Source = "monotonic" }),
		semantic: "clock_read_source", exact: "clock_read_source", outcome: nothing},
	{name: "clock value", kind: "clock_read", alter: of(func(k *tape.ClockRead) { k.ValueMS++ }),
		semantic: "clock_read_value", exact: "clock_read_value", outcome: nothing},
	{name: "clock value in the finalizer", kind: "last clock_read", alter: of(func(k *tape.ClockRead) { k.ValueMS++ }),
		semantic: "clock_read_value", exact: "clock_read_value", outcome: nothing, phaseAware: nothing},
	{name: "sleep", kind: "clock_sleep", alter: of(func(k *tape.ClockSleep) { k.DurationMS++ }),
		semantic: "clock_sleep_duration", exact: "clock_sleep_duration", outcome: nothing},

	// A model.
	{name: "llm request_digest", kind: "llm_call", alter: of(func(k *tape.LLMCall) { k.RequestDigest[0] ^= 1 }),
		semantic: "llm_request_digest", exact: "llm_request_digest", outcome: cutEarly},
	{name: "llm request_payload", kind: "llm_call", alter: of(func(k *tape.LLMCall) { k.RequestPayload = altered(k.RequestPayload, "step", "stop") }),
		semantic: "llm_request_hash", exact: "llm_request_hash", outcome: nothing},
	{name: "llm response", kind: "llm_call", alter: of(func(k *tape.LLMCall) { k.Response = altered(k.Response, "answer", "anywhere") }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "llm model", kind: "llm_call", alter: of(func(k *tape.LLMCall) { k.Model = "another" }),
		semantic: "llm_model", exact: "llm_model", outcome: nothing},
	{name: "llm status", kind: "llm_call", alter: of(func(k *tape.LLMCall) { k.Status = 529 }),
		semantic: "llm_status", exact: "llm_status", outcome: nothing},
	{name: "llm error", kind: "llm_call", alter: of(func(k *tape.LLMCall) { k.Error = "overloaded" }),
		semantic: "llm_error", exact: "llm_error", outcome: nothing},

	{name: "llm latency", kind: "llm_call", alter: of(func(k *tape.LLMCall) { k.Extra = []tape.Field{{Name: "latency_ms", Value: []byte("25")}} }),
		semantic: "clock_read_value", exact: late, outcome: nothing},

	// Files.
	{name: "file_read path", kind: "file_read", alter: of(func(k *tape.FileRead) { k.Path = "in/x.txt" }),
		semantic: "file_read_path", exact: "file_read_path", outcome: cutEarly},
	{name: "file_read hash", kind: "file_read", alter: of(func(k *tape.FileRead) { k.ContentHash[0] ^= 1 }),
		semantic: "file_read_hash", exact: "file_read_hash", outcome: nothing},
	{name: "file_read len", kind: "file_read", alter: of(func(k *tape.FileRead) { k.LenBytes++ }),
		semantic: nothing, exact: "file_read_len", outcome: nothing},
	{name: "file_read content", kind: "file_read", alter: of(func(k *tape.FileRead) { k.Content = altered(k.Content, "old", "odd") }),
		semantic: "file_read_hash", exact: "file_read_hash", outcome: nothing},
	{name: "file_write path", kind: "file_write", alter: of(func(k *tape.FileWrite) { k.Path = "out/x.txt" }),
		semantic: "file_write_path", exact: "file_write_path", outcome: "outcome_fs_diff"},
	{name: "file_write hash", kind: "file_write", alter: of(func(k *tape.FileWrite) { k.ContentHash[0] ^= 1 }),
		semantic: "file_write_hash", exact: "file_write_hash", outcome: "outcome_fs_diff"},
	{name: "file_write len", kind: "file_write", alter: of(func(k *tape.FileWrite) { k.LenBytes++ }),
		semantic: nothing, exact: "file_write_len", outcome: nothing},
	{name: "file_write content", kind: "file_write", alter: of(func(k *tape.FileWrite) { k.Content = altered(k.Content, "new", "now") }),
		semantic: "file_write_content", exact: "file_write_content", outcome: nothing},
	{name: "file_write mode", kind: "file_write", alter: of(func(k *tape.FileWrite) { k.Mode = "100755" }),
		semantic: "file_write_mode", exact: "file_write_mode", outcome: nothing},
	{name: "file_write before, which is an input", kind: "file_write over", alter: of(func(k *tape.FileWrite) { k.Before = altered(k.Before, "old", "odd") }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "file_delete path", kind: "file_delete", alter: of(func(k *tape.FileDelete) { k.Path = "tmp/x.txt" }),
		semantic: "file_delete_path", exact: "file_delete_path", outcome: "outcome_fs_diff"},
	{name: "file_delete before, which the run wrote", kind: "file_delete", alter: of(func(k *tape.FileDelete) { k.Before = altered(k.Before, "short", "long") }),
		semantic: "file_delete_before", exact: "file_delete_before", outcome: nothing},
	{name: "dir_list path", kind: "dir_list", alter: of(func(k *tape.DirList) { k.Path = "list/x" }),
		semantic: "dir_list_path", exact: "dir_list_path", outcome: cutEarly},
	{name: "dir_list names_digest", kind: "dir_list", alter: of(func(k *tape.DirList) { k.NamesDigest[0] ^= 1 }),
		semantic: "dir_list_names", exact: "dir_list_names", outcome: nothing},
	{name: "dir_list names", kind: "dir_list", alter: of(func(k *tape.DirList) { k.Names = altered(k.Names, `"a"`, `"c"`) }),
		semantic: "dir_list_names", exact: "dir_list_names", outcome: nothing},
	{name: "file_stat path", kind: "file_stat", alter: of(func(k *tape.FileStat) { k.Path = "stat/x.txt" }),
		semantic: "file_stat_path", exact: "file_stat_path", outcome: cutEarly},
	{name: "file_stat type", kind: "file_stat", alter: of(func(k *tape.FileStat) { k.Type = "none" }),
		semantic: nothing, exact: "file_stat_len", outcome: nothing},
	{name: "file_stat len", kind: "file_stat", alter: of(func(k *tape.FileStat) { k.LenBytes++ }),
		semantic: nothing, exact: nothing, outcome: nothing},

	// Commands.
	{name: "process program", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.Program = "hg" }),
		semantic: "process_program", exact: "process_program", outcome: cutEarly},
	{name: "process args", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.Args[1] = "x.txt" }),
		semantic: "process_args", exact: "process_args", outcome: cutEarly},
	{name: "process cwd", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.Cwd = nil }),
		semantic: "process_cwd", exact: "process_cwd", outcome: cutEarly},
	{name: "process stdin", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.Stdin = altered(k.Stdin, "in", "on") }),
		semantic: "process_stdin_hash", exact: "process_stdin_hash", outcome: cutEarly},
	{name: "process exit code", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.ExitCode = 3 }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "process signal", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.ExitCode, k.Signal = 143, "SIGTERM" }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "process stdout", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.Stdout = altered(k.Stdout, "shown", "shone") }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "process stderr", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.Stderr = altered(k.Stderr, "warning", "warming") }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "process duration", kind: "process_spawn", alter: of(func(k *tape.ProcessSpawn) { k.DurationMS += 3 }),
		semantic: "clock_read_value", exact: late, outcome: nothing},

	// Tools.
	{name: "mcp server", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.Server = "other" }),
		semantic: "mcp_server", exact: "mcp_server", outcome: cutOff},
	{name: "mcp method", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.Method = "tools/list" }),
		semantic: "mcp_method", exact: "mcp_method", outcome: cutOff},
	{name: "mcp request_digest", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.RequestDigest[0] ^= 1 }),
		semantic: "mcp_request_digest", exact: "mcp_request_digest", outcome: nothing},
	{name: "mcp response_digest", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.ResponseDigest[0] ^= 1 }),
		semantic: "mcp_response_digest", exact: "mcp_response_digest", outcome: nothing},
	{name: "mcp response_payload", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.Response = altered(k.Response, "file 0", "fine 0") }),
		semantic: "mcp_response_digest", exact: "mcp_response_digest", outcome: nothing},
	{name: "mcp latency", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.LatencyMS += 3 }),
		semantic: "clock_read_value", exact: late, outcome: nothing},

	{name: "mcp request_payload, its id", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.Request = altered(k.Request, `"id":1`, `"id":9`) }),
		semantic: "mcp_request_hash", exact: "mcp_request_hash", outcome: nothing},
	{name: "mcp request_payload, its arguments", kind: "mcp_json_rpc", alter: of(func(k *tape.MCPJSONRPC) { k.Request = altered(k.Request, `"n":0`, `"n":9`) }),
		semantic: "mcp_request_hash", exact: "mcp_request_hash", outcome: cutOff},

	// HTTP.
	{name: "http method", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.Method = "PUT" }),
		semantic: "http_method", exact: "http_method", outcome: cutOff},
	{name: "http url", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.URL = "http://api.test/x" }),
		semantic: "http_url", exact: "http_url", outcome: cutOff},
	{name: "http request_headers", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.RequestHeaders[0].Value += "x" }),
		semantic: "http_request_headers", exact: "http_request_headers", outcome: nothing},
	{name: "http request_digest", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.RequestDigest[0] ^= 1 }),
		semantic: "http_request_digest", exact: "http_request_digest", outcome: cutOff},
	{name: "http request_payload", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.RequestPayload = altered(k.RequestPayload, `"n"`, `"m"`) }),
		semantic: "http_request_hash", exact: "http_request_hash", outcome: nothing},
	{name: "http status", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.Status = 404 }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "http response_headers", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.ResponseHeaders[0].Value += "x" }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "http response", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.Response = altered(k.Response, "said", "told") }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "http lane", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.Lane += "x" }),
		semantic: nothing, exact: nothing, outcome: nothing}, // a replay's exchange takes the lane of the one that answers it
	{name: "http arrival", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.Arrival = 99 }),
		semantic: nothing, exact: "http_arrival", outcome: nothing},

	{name: "http chunk's time", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.Stream[0].TMS = 5 }),
		semantic: "clock_read_value", exact: late, outcome: nothing},
	{name: "http chunks", kind: "http_exchange", alter: of(func(k *tape.HTTPExchange) { k.Stream = []tape.Chunk{{Length: 8}, {Offset: 8, Length: 8}} }),
		semantic: nothing, exact: nothing, outcome: nothing},

	// Environment and random numbers.
	{name: "env name", kind: "env_read", alter: of(func(k *tape.EnvRead) { k.VarName = "X" }),
		semantic: "env_read_name", exact: "env_read_name", outcome: cutEarly},
	{name: "env value", kind: "env_read", alter: of(func(k *tape.EnvRead) { k.Value = altered(k.Value, "value", "worth") }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "env value, not set", kind: "env_read", alter: of(func(k *tape.EnvRead) { k.Value = nil }),
		semantic: nothing, exact: nothing, outcome: nothing},
	{name: "random length", kind: "random_read", alter: of(func(k *tape.RandomRead) { k.Length = 100 }),
		semantic: "random_read_length", exact: "random_read_length", outcome: cutEarly},
	{name: "random bytes", kind: "random_read", alter: of(func(k *tape.RandomRead) { k.Payload = textPayload("abcd") }),
		semantic: nothing, exact: nothing, outcome: nothing},
}

// of makes an alteration of one kind.
func of[K tape.Kind](alter func(k K)) func(r *tape.Record) {
	return func(r *tape.Record) { alter(r.Kind.(K)) }
}

// altered is a payload with a word replaced, whose digest fits it.
func altered(p *tape.Payload, from, to string) *tape.Payload {
	text := strings.Replace(p.Text, from, to, 1)
	if text == p.Text {
		panic("nothing to alter in " + p.Text)
	}
	return textPayload(text)
}

// TestAlterations replays a tape of which one value was altered.
func TestAlterations(t *testing.T) {
	path := recordMixed(t)
	for _, tt := range alterations {
		t.Run(tt.name, func(t *testing.T) {
			changed := filepath.Join(t.TempDir(), "altered.tape")
			alterTape(t, path, changed, tt.kind, tt.alter)
			for _, mode := range modes {
				want := map[fidelity.Mode]string{
					fidelity.Semantic: tt.semantic, fidelity.ByteIdentical: tt.exact, fidelity.Outcome: tt.outcome, fidelity.PhaseAware: tt.phaseAware,
				}[mode]
				if want == "" {
					want = tt.exact
				}
				b, err := testbench.Replay(changed, nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = mixed(context.Background(), b) // it may be refused
				report, err := b.Verdict(mode)
				if err != nil {
					t.Fatal(err)
				}
				if got := categorySet(report); got != sorted(want) {
					t.Errorf("%s: got %s, want %s (%v)", mode, got, sorted(want), b.Refused())
				}
				if refused := strings.Contains(tt.outcome, "llm_call_count"); refused != (len(report.Refused) == 1) {
					t.Errorf("%s: refused %+v", mode, report.Refused)
				}
			}
		})
	}
}

// TestAlteredAnswerShowsWhereItIsUsed has a program that passes an answer on: what it makes of it differs, and no more.
func TestAlteredAnswerShowsWhereItIsUsed(t *testing.T) {
	program := func(b *testbench.Bench) error {
		n, err := b.Random().Int(1, 6)
		if err != nil {
			return err
		}
		return b.Files().WriteFile("n.txt", fmt.Append(nil, n), 0o644)
	}
	path := filepath.Join(t.TempDir(), "run.tape")
	b := testbench.New(t, &testbench.Config{Emit: path})
	if err := program(b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	changed := path + ".altered"
	alterTape(t, path, changed, "random_read", of(func(k *tape.RandomRead) {
		n := []byte(k.Payload.Text)
		n[7] = n[7]%6 + 1
		k.Payload = textPayload(string(n))
	}))
	b = testbench.NewReplay(t, changed, nil)
	if err := program(b); err != nil {
		t.Fatal(err)
	}
	report, err := b.Verdict(fidelity.Semantic)
	if err != nil {
		t.Fatal(err)
	}
	if got := categorySet(report); got != "file_write_hash" {
		t.Errorf("categories %s", got)
	}
}

// categorySet lists the categories of a report, each once, sorted.
func categorySet(r *fidelity.Report) string {
	var all []string
	for _, c := range categories(r) {
		all = append(all, string(c))
	}
	return sorted(strings.Join(all, " "))
}

func sorted(categories string) string {
	all := strings.Fields(categories)
	slices.Sort(all)
	return cmpOr(strings.Join(slices.Compact(all), " "), nothing)
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// alterTape copies a tape with the record altered that which names: a kind (its first), "last", "last user", "last clock_read", or
// "file_write over" (its first over another file).
func alterTape(t *testing.T, from, to, which string, alter func(r *tape.Record)) {
	t.Helper()
	f, err := tape.Open(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records := load(t, from)
	r := find(records, which)
	if r == nil {
		t.Fatalf("no record is %s", which)
	}
	alter(r)
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w, err := tape.NewWriter(out, f.Header())
	if err != nil {
		t.Fatal(err)
	}
	store, err := cas.OpenDir(to+tape.StoreSuffix, nil)
	if err != nil {
		t.Fatal(err)
	}
	for d, err := range f.Store.All() {
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.Store.Get(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Put(b); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range records {
		if err := w.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

func find(records []*tape.Record, which string) *tape.Record {
	kind, over := strings.CutSuffix(which, " over")
	kind, last := strings.CutPrefix(kind, "last")
	kind = strings.TrimSpace(kind)
	if last {
		records = slices.Clone(records)
		slices.Reverse(records)
	}
	for _, r := range records {
		switch k, _ := r.Kind.(*tape.FileWrite); {
		case kind == "user" && r.Phase == tape.PhaseUserScript, kind == "":
			return r
		case r.Kind.Name() == kind && (!over || k.Before != nil):
			return r
		}
	}
	return nil
}
