package fidelity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A writtenCall is one mcp_json_rpc as a writer that shares nothing with package tape spells it.
type writtenCall struct {
	server, method, request, response string
	requestDigest, responseDigest     string // what they are digests of; "" is the payload
	latency                           int
	phase                             string
	virtual, monotonic                int64
	further                           string // further keys, each with a comma before it
}

func aCall() writtenCall {
	return writtenCall{
		server: "files", method: "tools/call", latency: 12, phase: "user_script", virtual: 1767225600500, monotonic: 500,
		request:  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"a.txt"}}}`,
		response: `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"alpha"}]}}`,
		further:  `,"later_key":{"a":[1,2.50,"x"]}`,
	}
}

// line spells the record with the keys in the order of the format.
func (w writtenCall) line(seq int) string {
	digest := func(of, payload string) string {
		if of == "" {
			of = payload
		}
		return cas.Sum([]byte(of)).String()
	}
	payload := func(s string) string {
		return fmt.Sprintf(`{"content_hash":"%s","text":"%s"}`, cas.Sum([]byte(s)), strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s))
	}
	return fmt.Sprintf(`{"type":"record","seq":%d,"phase":"%s","virtual_time_ms":%d,"monotonic_ms":%d,"kind":{"kind":"mcp_json_rpc",`+
		`"server":"%s","method":"%s","request_digest":"%s","response_digest":"%s","latency_ms":%d,"request_payload":%s,"response_payload":%s%s}}`+"\n",
		seq, w.phase, w.virtual, w.monotonic, w.server, w.method, digest(w.requestDigest, w.request),
		digest(w.responseDigest, w.response), w.latency, payload(w.request), payload(w.response), w.further)
}

// writtenTape is a whole tape: a clock read, the calls, and the program's end.
func writtenTape(calls ...writtenCall) string {
	none := `{"content_hash":"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262","text":""}`
	var b strings.Builder
	b.WriteString(`{"type":"header","version":1,"harn_version":"hand 1","started_at_unix_ms":null,"script_path":null,"argv":[],"by":"hand"}` + "\n")
	b.WriteString(`{"type":"record","seq":0,"phase":"user_script","virtual_time_ms":1767225600000,"monotonic_ms":0,"kind":{"kind":"clock_read","source":"wall","value_ms":1767225600000}}` + "\n")
	for i, c := range calls {
		b.WriteString(c.line(i + 1))
	}
	fmt.Fprintf(&b, `{"type":"record","seq":%d,"phase":"runtime_finalize","virtual_time_ms":1767225601000,"monotonic_ms":1000,"kind":{"kind":"process_spawn","program":"p","args":[],"cwd":null,"exit_code":0,"duration_ms":1000,"stdout_payload":%s,"stderr_payload":%s}}`+"\n",
		len(calls)+1, none, none)
	return b.String()
}

// load reads a tape that was written by hand.
func load(t *testing.T, written string) Records {
	t.Helper()
	r, err := tape.NewReader(strings.NewReader(written), "written")
	if err != nil {
		t.Fatal(err)
	}
	return r.Records()
}

// TestMCPOfAnotherWriter holds two tapes with one call against each other, one field changed after the other. What each mode
// must say stands in the columns: byte-identical, semantic, outcome, phase-aware with the call of the program, and phase-aware
// with one of the runtime.
func TestMCPOfAnotherWriter(t *testing.T) {
	type found = []Category
	const all = 5
	everywhere := func(c ...Category) [all]found { return [all]found{c, c, nil, c, c} }
	exact := func(c Category) [all]found { return [all]found{{c}, nil, nil, {c}, nil} }
	tests := []struct {
		name   string
		change func(*writtenCall)
		want   [all]found
	}{
		{"the same", func(*writtenCall) {}, [all]found{}},
		{"server", func(w *writtenCall) { w.server = "memory" }, everywhere(MCPServer)},
		{"method", func(w *writtenCall) { w.method = "tools/list" }, everywhere("mcp_method")},
		{"request digest", func(w *writtenCall) { w.requestDigest = "other" }, everywhere(MCPRequestDigest)},
		{"response digest", func(w *writtenCall) { w.responseDigest = "other" }, everywhere(MCPResponseDigest)},
		{"latency", func(w *writtenCall) { w.latency = 13 }, exact(MCPLatency)},
		{"request bytes", func(w *writtenCall) { w.requestDigest, w.request = w.request, "{}" }, everywhere(MCPRequestHash)},
		{"response bytes", func(w *writtenCall) { w.responseDigest, w.response = w.response, "{}" }, everywhere(MCPResponseHash)},
		{"request", func(w *writtenCall) { w.request = "{}" }, everywhere(MCPRequestDigest, MCPRequestHash)},
		{"response", func(w *writtenCall) { w.response = "" }, everywhere(MCPResponseDigest, MCPResponseHash)},
		{"a further key", func(w *writtenCall) { w.further = `,"later_key":{"a":[1,2.5,"x"]}` }, everywhere(ExtraKeys)},
		{"virtual time", func(w *writtenCall) { w.virtual++ }, exact(VirtualTimeDrift)},
		{"monotonic", func(w *writtenCall) { w.monotonic++ }, exact(MonotonicDrift)},
		{
			"everything",
			func(w *writtenCall) {
				*w = writtenCall{
					server: "s", method: "m", request: "{}", response: "{}", latency: 1, phase: w.phase, virtual: 1, monotonic: 1,
				}
			},
			[all]found{
				{VirtualTimeDrift, MonotonicDrift, MCPServer, "mcp_method", MCPRequestDigest, MCPResponseDigest, MCPRequestHash, MCPResponseHash, MCPLatency, ExtraKeys},
				{MCPServer, "mcp_method", MCPRequestDigest, MCPResponseDigest, MCPRequestHash, MCPResponseHash, ExtraKeys},
				nil,
				{VirtualTimeDrift, MonotonicDrift, MCPServer, "mcp_method", MCPRequestDigest, MCPResponseDigest, MCPRequestHash, MCPResponseHash, MCPLatency, ExtraKeys},
				{MCPServer, "mcp_method", MCPRequestDigest, MCPResponseDigest, MCPRequestHash, MCPResponseHash, ExtraKeys},
			},
		},
	}
	modes := [all]struct {
		mode  Mode
		phase string
	}{
		{ByteIdentical, "user_script"}, {Semantic, "user_script"}, {Outcome, "user_script"}, {PhaseAware, "user_script"},
		{PhaseAware, "runtime_finalize"},
	}
	for _, tt := range tests {
		for i, m := range modes {
			t.Run(fmt.Sprintf("%s/%s/%s", tt.name, m.mode, m.phase), func(t *testing.T) {
				a, b := aCall(), aCall()
				a.phase, b.phase = m.phase, m.phase
				tt.change(&b)
				r := mustCompare(t, m.mode, load(t, writtenTape(a)), load(t, writtenTape(b)))
				if d := cmp.Diff(tt.want[i], categories(r)); d != "" {
					t.Errorf("-want +got\n%s", d)
				}
				for _, div := range r.Divergences {
					if div.Seq == nil || *div.Seq != 1 {
						t.Errorf("%s at seq %v, want 1", div.Category, div.Seq)
					}
				}
				if want := 1 - min(1, float64(len(tt.want[i]))/3); r.Score != want {
					t.Errorf("score %v, want %v", r.Score, want)
				}
			})
		}
	}
}

// TestMCPPhaseOfAnotherWriter: a phase counts where every field does, and sets records apart in phase-aware.
func TestMCPPhaseOfAnotherWriter(t *testing.T) {
	a, b := aCall(), aCall()
	b.phase = "runtime_finalize"
	for mode, want := range map[Mode][]Category{
		ByteIdentical: {PhaseMismatch},
		Semantic:      nil,
		Outcome:       nil,
		// The program's records are the clock read and the call against the clock read; the runtime's the end against the call.
		PhaseAware: {MissingInReplay, KindMismatch, MissingInRecorded},
	} {
		r := mustCompare(t, mode, load(t, writtenTape(a)), load(t, writtenTape(b)))
		if d := cmp.Diff(want, categories(r)); d != "" {
			t.Errorf("%s: -want +got\n%s", mode, d)
		}
	}
}

// TestMCPCallInserted: by position a call more moves what follows, aligned it is one divergence.
func TestMCPCallInserted(t *testing.T) {
	list := aCall()
	list.method, list.request, list.response = "tools/list", `{"method":"tools/list"}`, `{"result":{"tools":[]}}`
	a, b := writtenTape(aCall(), aCall()), writtenTape(aCall(), list, aCall())
	r := mustCompare(t, Semantic, load(t, a), load(t, b))
	want := []Category{"mcp_method", MCPRequestDigest, MCPResponseDigest, MCPRequestHash, MCPResponseHash, KindMismatch, MissingInRecorded}
	if d := cmp.Diff(want, categories(r)); d != "" {
		t.Errorf("by position: -want +got\n%s", d)
	}
	if last := r.Divergences[len(r.Divergences)-1]; *last.Seq != 4 {
		t.Errorf("what the replay has alone stands at its seq %d, want 4", *last.Seq)
	}
	r, err := CompareTapes(Semantic, load(t, a), load(t, b), &TapeOptions{Aligned: true})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]Category{MissingInRecorded}, categories(r)); d != "" {
		t.Errorf("aligned: -want +got\n%s", d)
	}
	if r = mustCompare(t, Outcome, load(t, a), load(t, b)); len(r.Divergences) > 0 {
		t.Errorf("outcome: %v", r.Divergences)
	}
}

// TestMCPChangedArgument: two tapes of another writer tell a changed argument by its path.
func TestMCPChangedArgument(t *testing.T) {
	b := aCall()
	b.request = strings.Replace(b.request, "a.txt", "b.txt", 1)
	r := mustCompare(t, Semantic, load(t, writtenTape(aCall())), load(t, writtenTape(b)))
	if len(r.Divergences) != 2 {
		t.Fatalf("%v", r.Divergences)
	}
	var told string
	for _, d := range r.Divergences {
		told += d.Message + "\n" + d.Cause + "\n"
	}
	for _, want := range []string{"read_file", "arguments.path", `"a.txt"`, `"b.txt"`} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not told in\n%s", want, told)
		}
	}
}
