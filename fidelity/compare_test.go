package fidelity

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
	"pgregory.net/rapid"
)

var allModes = []Mode{Semantic, ByteIdentical, Outcome, PhaseAware}

func mustCompare(t testing.TB, mode Mode, a, b Records) *Report {
	t.Helper()
	r, err := Compare(mode, a, b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCategories changes one field after the other. exact says that only ByteIdentical sees it.
func TestCategories(t *testing.T) {
	file := func(of Category, get func(tape.Kind) *tape.File, kind int) []change {
		set := func(cat Category, exact bool, fn func(*tape.File)) change {
			return change{kind, cat, exact, func(k tape.Kind) { fn(get(k)) }}
		}
		return []change{
			set(of+"_path", false, func(f *tape.File) { f.Path = "b.txt" }),
			set(of+"_hash", false, func(f *tape.File) { f.ContentHash = sum("x") }),
			set(of+"_len", true, func(f *tape.File) { f.LenBytes++ }),
			set(of+"_mode", false, func(f *tape.File) { f.Mode = "100755" }),
			set(of+"_content", false, func(f *tape.File) { f.Content = nil }),
		}
	}
	changes := slices.Concat(
		[]change{
			{0, "clock_read_source", false, func(k tape.Kind) { k.(*tape.ClockRead).Source = "monotonic" }},
			{0, "clock_read_value", false, func(k tape.Kind) { k.(*tape.ClockRead).ValueMS = 2 }},
			{1, "clock_sleep_duration", false, func(k tape.Kind) { k.(*tape.ClockSleep).DurationMS = 2 }},
			{2, LLMRequestDigest, false, func(k tape.Kind) { k.(*tape.LLMCall).RequestDigest = sum("x") }},
			{2, LLMResponseHash, false, func(k tape.Kind) { k.(*tape.LLMCall).Response = inline("x") }},
			{2, "llm_model", false, func(k tape.Kind) { k.(*tape.LLMCall).Model = "n" }},
			{2, "llm_arrival", true, func(k tape.Kind) { k.(*tape.LLMCall).Arrival = 7 }},
			{3, "http_status", false, func(k tape.Kind) { k.(*tape.HTTPExchange).Status = 404 }},
			{3, "http_url", false, func(k tape.Kind) { k.(*tape.HTTPExchange).URL = "https://b.test" }},
			{3, "http_stream", true, func(k tape.Kind) { k.(*tape.HTTPExchange).Stream[0].TMS = 99 }},
			{3, "http_stream", false, func(k tape.Kind) { k.(*tape.HTTPExchange).Stream[0].Length = 99 }},
			{7, ProcessProgram, false, func(k tape.Kind) { k.(*tape.ProcessSpawn).Program = "q" }},
			{7, ProcessArgs, false, func(k tape.Kind) { k.(*tape.ProcessSpawn).Args = nil }},
			{7, ProcessCwd, false, func(k tape.Kind) { k.(*tape.ProcessSpawn).Cwd = nil }},
			{7, "process_exit_code", false, func(k tape.Kind) { k.(*tape.ProcessSpawn).ExitCode = 0 }},
			{7, ProcessDuration, true, func(k tape.Kind) { k.(*tape.ProcessSpawn).DurationMS = 2 }},
			{7, ProcessStdoutHash, false, func(k tape.Kind) { k.(*tape.ProcessSpawn).Stdout = inline("x") }},
			{7, ProcessStderrHash, false, func(k tape.Kind) { k.(*tape.ProcessSpawn).Stderr = inline("x") }},
			{7, "process_signal", false, func(k tape.Kind) { k.(*tape.ProcessSpawn).Signal = "" }},
			{8, MCPServer, false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Server = "x" }},
			{8, "mcp_method", false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Method = "x" }},
			{8, MCPRequestDigest, false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).RequestDigest = sum("x") }},
			{8, MCPResponseDigest, false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).ResponseDigest = sum("x") }},
			{8, MCPLatency, true, func(k tape.Kind) { k.(*tape.MCPJSONRPC).LatencyMS = 9 }},
			{8, MCPRequestHash, false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Request = inline("x") }},
			{8, MCPResponseHash, false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Response = inline("x") }},
			{8, "mcp_from", false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).From = "client" }},
			{8, "mcp_conversation", false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Conversation = 2 }},
			{8, "mcp_transport", false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Transport = "http" }},
			{8, "mcp_arrival", true, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Arrival = 9 }},
			{8, "mcp_answered", true, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Answered = 9 }},
			{8, "mcp_params_digest", false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).ParamsDigest = sum("x") }},
			{8, "mcp_result_digest", false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).ResultDigest = sum("x") }},
			{8, "mcp_exchange", true, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Exchange = 9 }},
			{8, "mcp_answer_exchange", true, func(k tape.Kind) { k.(*tape.MCPJSONRPC).AnswerExchange = 9 }},
			{8, MCPError, false, func(k tape.Kind) { k.(*tape.MCPJSONRPC).Error = "server ended" }},
			{9, "ws_open_status", false, func(k tape.Kind) { k.(*tape.WSOpen).Status = 404 }},
			{9, "ws_open_connection", false, func(k tape.Kind) { k.(*tape.WSOpen).Connection = 4 }},
			{10, WSMessageHash, false, func(k tape.Kind) { k.(*tape.WSMessage).Payload = inline("x") }},
			{10, "ws_message_direction", false, func(k tape.Kind) { k.(*tape.WSMessage).Direction = "received" }},
			{11, "ws_close_code", false, func(k tape.Kind) { k.(*tape.WSClose).Code = 1001 }},
			{19, MCPOpenServer, false, func(k tape.Kind) { k.(*tape.MCPOpen).Server = "x" }},
			{19, "mcp_open_program", false, func(k tape.Kind) { k.(*tape.MCPOpen).Program = "x" }},
			{19, "mcp_open_args", false, func(k tape.Kind) { k.(*tape.MCPOpen).Args = nil }},
			{19, MCPOpenEnv, false, func(k tape.Kind) { k.(*tape.MCPOpen).Env = []string{"A=1"} }},
			{19, "mcp_open_protocol", false, func(k tape.Kind) { k.(*tape.MCPOpen).Protocol = "x" }},
			{20, "mcp_text_hash", false, func(k tape.Kind) { k.(*tape.MCPText).Payload = inline("x") }},
			{20, "mcp_text_arrival", true, func(k tape.Kind) { k.(*tape.MCPText).Arrival = 9 }},
			{21, "mcp_close_exit_code", false, func(k tape.Kind) { k.(*tape.MCPClose).ExitCode = nil }},
			{21, "mcp_close_arrival", true, func(k tape.Kind) { k.(*tape.MCPClose).Arrival = 10 }},
			{21, "mcp_close_by", false, func(k tape.Kind) { k.(*tape.MCPClose).By = "x" }},
			{14, "dir_list_path", false, func(k tape.Kind) { k.(*tape.DirList).Path = "x" }},
			{14, "dir_list_names", false, func(k tape.Kind) { k.(*tape.DirList).NamesDigest = sum("x") }},
			{14, "dir_list_names", false, func(k tape.Kind) { k.(*tape.DirList).Names = inline("x") }},
			{14, "dir_list_names", false, func(k tape.Kind) { l := k.(*tape.DirList); l.Names, l.NamesDigest = inline("x"), sum("x") }},
			{15, "env_read_name", false, func(k tape.Kind) { k.(*tape.EnvRead).VarName = "x" }},
			{15, "env_read_value", false, func(k tape.Kind) { k.(*tape.EnvRead).Value = inline("x") }},
			{15, "env_read_value", false, func(k tape.Kind) { k.(*tape.EnvRead).Value = nil }},
			{22, "file_stat_path", false, func(k tape.Kind) { k.(*tape.FileStat).Path = "x" }},
			{22, "file_stat_type", false, func(k tape.Kind) { k.(*tape.FileStat).Type = "none" }},
			{22, "file_stat_len", true, func(k tape.Kind) { k.(*tape.FileStat).LenBytes = 9 }},
			{22, "file_stat_mode", false, func(k tape.Kind) { k.(*tape.FileStat).Mode = "" }},
			{18, UnknownKind, false, func(k tape.Kind) { k.(*tape.Unknown).JSON = []byte(`{"kind":"later","x": 1}`) }},
		},
		file("file_read", func(k tape.Kind) *tape.File { return &k.(*tape.FileRead).File }, 4),
		file("file_write", func(k tape.Kind) *tape.File { return &k.(*tape.FileWrite).File }, 5),
		file("file_delete", func(k tape.Kind) *tape.File { return &k.(*tape.FileDelete).File }, 6),
	)
	for _, c := range changes {
		t.Run(string(c.category), func(t *testing.T) {
			a, b := everyKind()[c.kind], everyKind()[c.kind]
			c.set(b)
			got := mustCompare(t, ByteIdentical, tapeOf(a), tapeOf(b))
			if d := cmp.Diff([]Category{c.category}, categories(got)); d != "" {
				t.Errorf("byte-identical -want +got\n%s", d)
			}
			want := 1
			if c.exact {
				want = 0
			}
			if got := mustCompare(t, Semantic, tapeOf(a), tapeOf(b)); len(got.Divergences) != want {
				t.Errorf("semantic: %v, want %d", got.Divergences, want)
			}
		})
	}
}

// change is one field set in one of everyKind.
type change struct {
	kind     int
	category Category
	exact    bool
	set      func(tape.Kind)
}

// TestEveryFieldCounts changes every field of every kind by reflection: ByteIdentical must see each, as one divergence.
func TestEveryFieldCounts(t *testing.T) {
	for i, k := range everyKind() {
		if _, unknown := k.(*tape.Unknown); unknown {
			continue
		}
		for _, path := range fieldPaths(reflect.TypeOf(k).Elem(), nil) {
			b := everyKind()[i]
			f := reflect.ValueOf(b).Elem().FieldByIndex(path)
			alter(t, f)
			name := k.Name() + " " + reflect.TypeOf(k).Elem().FieldByIndex(path).Name
			if got := mustCompare(t, ByteIdentical, tapeOf(k), tapeOf(b)); len(got.Divergences) != 1 {
				t.Errorf("%s: %v, want one divergence", name, got.Divergences)
			}
		}
	}
}

// fieldPaths lists the fields of a struct, those of embedded ones too.
func fieldPaths(typ reflect.Type, prefix []int) [][]int {
	var out [][]int
	for i := range typ.NumField() {
		path := append(slices.Clone(prefix), i)
		if f := typ.Field(i); f.Anonymous {
			out = append(out, fieldPaths(f.Type, path)...)
		} else {
			out = append(out, path)
		}
	}
	return out
}

func alter(t *testing.T, f reflect.Value) {
	t.Helper()
	switch v := f.Addr().Interface().(type) {
	case *string:
		*v += "x"
	case *int:
		*v++
	case *int64:
		*v++
	case *uint64:
		*v++
	case *cas.Digest:
		v[0] ^= 1
	case *json.RawMessage:
		*v = json.RawMessage(`"other"`)
	case **tape.Payload:
		*v = inline("other")
	case **string:
		*v = nil
	case **int64:
		*v = nil
	default:
		if f.Kind() != reflect.Slice {
			t.Fatalf("cannot alter a %s", f.Type())
		}
		f.Set(reflect.MakeSlice(f.Type(), f.Len()+1, f.Len()+1))
	}
}

func TestRecordFields(t *testing.T) {
	base := func() *tape.Record { return recordsOf(&tape.ClockSleep{DurationMS: 1})[0] }
	tests := []struct {
		category Category
		exact    bool
		set      func(*tape.Record)
	}{
		{PhaseMismatch, true, func(r *tape.Record) { r.Phase = tape.PhaseRuntimeFinalize }},
		{VirtualTimeDrift, true, func(r *tape.Record) { r.VirtualTimeMS = 9 }},
		{MonotonicDrift, true, func(r *tape.Record) { r.MonotonicMS = 9 }},
		{GlobalOrdinalDrift, true, func(r *tape.Record) { r.G = 9 }},
		{RawBytes, false, func(r *tape.Record) { r.Raw = []tape.RawBytes{{Key: "path", Bytes: []byte{0xff}}} }},
		{ExtraKeys, false, func(r *tape.Record) { r.Extra = []tape.Field{{Name: "x", Value: json.RawMessage("1")}} }},
		{KindMismatch, false, func(r *tape.Record) { r.Kind, r.Phase = &tape.ClockRead{}, tape.PhaseRuntimeFinalize }},
	}
	for _, tt := range tests {
		t.Run(string(tt.category), func(t *testing.T) {
			b := base()
			tt.set(b)
			pair := func() (Records, Records) {
				return yieldAll([]*tape.Record{base()}, nil), yieldAll([]*tape.Record{b}, nil)
			}
			x, y := pair()
			if d := cmp.Diff([]Category{tt.category}, categories(mustCompare(t, ByteIdentical, x, y))); d != "" {
				t.Errorf("byte-identical -want +got\n%s", d)
			}
			x, y = pair()
			if got := mustCompare(t, Semantic, x, y); got.Faithful() != tt.exact {
				t.Errorf("semantic: %v", got.Divergences)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	one, two := &tape.ClockSleep{DurationMS: 1}, &tape.ClockSleep{DurationMS: 2}
	got := mustCompare(t, Semantic, tapeOf(one, one, two, two), tapeOf(one, one))
	if d := cmp.Diff([]Category{MissingInReplay, MissingInReplay}, categories(got)); d != "" {
		t.Error(d)
	}
	if got.Score != 0.5 || *got.Divergences[1].Seq != 3 {
		t.Errorf("score %v, seq %d", got.Score, *got.Divergences[1].Seq)
	}
	got = mustCompare(t, Semantic, tapeOf(), tapeOf(one, two))
	if d := cmp.Diff([]Category{MissingInRecorded, MissingInRecorded}, categories(got)); d != "" || got.Score != 0 {
		t.Errorf("score %v\n%s", got.Score, d)
	}
	if got = mustCompare(t, Semantic, tapeOf(), tapeOf()); got.Score != 1 || !got.Faithful() {
		t.Errorf("two empty tapes: %v", got)
	}
}

func TestPhaseAware(t *testing.T) {
	rec := func(seq uint64, p tape.Phase, mono int64, k tape.Kind) *tape.Record {
		return &tape.Record{Seq: seq, Phase: p, MonotonicMS: mono, Kind: k}
	}
	user, runtime := tape.PhaseUserScript, tape.PhaseRuntimeFinalize
	read := func(v int64) tape.Kind { return &tape.ClockRead{Source: "wall", ValueMS: v} }
	sleep := func(v int64) tape.Kind { return &tape.ClockSleep{DurationMS: v} }
	tests := []struct {
		name string
		a, b []*tape.Record
		want []Category
	}{
		{
			"clock reads and times of the runtime do not count",
			[]*tape.Record{rec(0, user, 0, read(1)), rec(1, runtime, 5, read(2)), rec(2, runtime, 5, sleep(1))},
			[]*tape.Record{rec(0, user, 0, read(1)), rec(1, runtime, 9, sleep(1))},
			nil,
		},
		{
			"its other records do",
			[]*tape.Record{rec(0, user, 0, read(1)), rec(1, runtime, 5, sleep(2))},
			[]*tape.Record{rec(0, user, 0, read(1)), rec(1, runtime, 9, sleep(1))},
			[]Category{"clock_sleep_duration"},
		},
		{
			"the times of the program do",
			[]*tape.Record{rec(0, user, 0, read(1))}, []*tape.Record{rec(0, user, 1, read(1))}, []Category{MonotonicDrift},
		},
		{
			"phases compare among themselves, however they interleave",
			[]*tape.Record{rec(0, user, 0, read(1)), rec(1, user, 0, read(2)), rec(2, runtime, 0, sleep(1))},
			[]*tape.Record{rec(0, runtime, 0, sleep(1)), rec(1, user, 0, read(1)), rec(2, user, 0, read(2))},
			nil,
		},
		{
			"a record in the other phase is missing here and new there",
			[]*tape.Record{rec(0, user, 0, sleep(1))}, []*tape.Record{rec(0, runtime, 0, sleep(1))},
			[]Category{MissingInReplay, MissingInRecorded},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustCompare(t, PhaseAware, yieldAll(tt.a, nil), yieldAll(tt.b, nil))
			if d := cmp.Diff(tt.want, categories(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

func TestOutcome(t *testing.T) {
	write := func(p, s string) tape.Kind { return &tape.FileWrite{File: tape.File{Path: p, ContentHash: sum(s)}} }
	del := func(p string) tape.Kind { return &tape.FileDelete{File: tape.File{Path: p}} }
	exit := func(code int) tape.Kind { return &tape.ProcessSpawn{ExitCode: code} }
	call := &tape.LLMCall{}
	tests := []struct {
		name string
		a, b []tape.Kind
		want []Category
	}{
		{"order and steps do not count", []tape.Kind{write("a", "1"), write("b", "2")}, []tape.Kind{write("b", "x"), write("b", "2"), write("a", "1")}, nil},
		{"write then delete is deleted", []tape.Kind{write("a", "1"), del("a")}, []tape.Kind{del("a")}, nil},
		{"deleted is not untouched", []tape.Kind{del("a")}, nil, []Category{OutcomeFSDiff}},
		{"two files are one divergence", []tape.Kind{write("a", "1"), write("b", "1")}, []tape.Kind{write("a", "2")}, []Category{OutcomeFSDiff}},
		{"the last process counts", []tape.Kind{exit(1), exit(0)}, []tape.Kind{exit(0)}, nil},
		{"exit code", []tape.Kind{exit(0)}, []tape.Kind{exit(1)}, []Category{OutcomeExitCode}},
		{"no process is not exit 0", []tape.Kind{exit(0)}, nil, []Category{OutcomeExitCode}},
		{"model calls", []tape.Kind{call}, []tape.Kind{call, call}, []Category{OutcomeLLMCallCount}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mustCompare(t, Outcome, tapeOf(tt.a...), tapeOf(tt.b...))
			if d := cmp.Diff(tt.want, categories(got)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
			if want := map[bool]float64{true: 1, false: 0}[len(tt.want) == 0]; got.Score != want {
				t.Errorf("score %v, want %v", got.Score, want)
			}
			for _, d := range got.Divergences {
				if d.Seq != nil {
					t.Errorf("%s has seq %d", d.Category, *d.Seq)
				}
			}
		})
	}
	got := mustCompare(t, Outcome, tapeOf(write("kept", "1"), write("lost.txt", "1")), tapeOf(write("kept", "1")))
	if m := got.Divergences[0].Message; !strings.Contains(m, "lost.txt") || strings.Contains(m, "kept") {
		t.Errorf("message %q", m)
	}
}

func TestATapeThatCannotBeRead(t *testing.T) {
	whole := recordsOf(&tape.ClockSleep{})
	for _, mode := range allModes {
		if _, err := Compare(mode, yieldAll(whole, errBroken), yieldAll(whole, nil)); !errors.Is(err, errBroken) {
			t.Errorf("%v recorded: %v", mode, err)
		}
		if _, err := CompareLanes(mode, yieldAll(whole, nil), yieldAll(whole, errBroken), nil); !errors.Is(err, errBroken) {
			t.Errorf("%v replay: %v", mode, err)
		}
	}
	if _, err := Compare(Mode(9), tapeOf(), tapeOf()); err == nil {
		t.Error("mode 9 is taken")
	}
}

func TestManyDivergencesAreCounted(t *testing.T) {
	n := MaxDivergences + 5
	kinds := make([]tape.Kind, n)
	for i := range kinds {
		kinds[i] = &tape.ClockSleep{}
	}
	got := mustCompare(t, Semantic, tapeOf(kinds...), tapeOf())
	if len(got.Divergences) != MaxDivergences || got.Omitted != 5 || got.Score != 0 {
		t.Errorf("%d listed, %d omitted, score %v", len(got.Divergences), got.Omitted, got.Score)
	}
}

func TestSampleIsFaithfulToItself(t *testing.T) {
	path := samplePath(t, "harn/replay_fidelity.testbench-tape")
	open := func() Records {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		r, err := tape.NewReader(f, path)
		if err != nil {
			t.Fatal(err)
		}
		return r.Records()
	}
	for _, mode := range allModes {
		got := mustCompare(t, mode, open(), open())
		if !got.Faithful() || got.Score != 1 || got.RecordedRecords != 8 || got.ReplayRecords != 8 {
			t.Errorf("%v: %v %v", mode, got, got.Divergences)
		}
	}
}

func TestAnyTapeIsFaithfulToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := drawTape(t)
		for _, mode := range allModes {
			got, err := Compare(mode, yieldAll(recs, nil), yieldAll(recs, nil))
			if err != nil || !got.Faithful() || got.Score != 1 {
				t.Fatalf("%v: %v %v", mode, got, err)
			}
			if got, err = CompareTapes(mode, yieldAll(recs, nil), yieldAll(recs, nil), &TapeOptions{Aligned: true}); err != nil || !got.Faithful() {
				t.Fatalf("%v aligned: %v %v", mode, got, err)
			}
			if got, err = CompareLanes(mode, yieldAll(recs, nil), yieldAll(recs, nil), nil); err != nil || !got.Faithful() {
				t.Fatalf("%v by lane: %v %v %v", mode, got, got.Divergences, err)
			}
		}
	})
}

func TestOneInsertedRecordIsOneDivergenceAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := drawTape(t)
		at := rapid.IntRange(0, len(recs)).Draw(t, "at")
		more := slices.Insert(slices.Clone(recs), at, &tape.Record{Seq: 999, Kind: &tape.EnvRead{VarName: "INSERTED"}})
		got, err := CompareTapes(Semantic, yieldAll(recs, nil), yieldAll(more, nil), &TapeOptions{Aligned: true})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Divergences) != 1 || got.Divergences[0].Category != MissingInRecorded || *got.Divergences[0].Seq != 999 {
			t.Fatalf("%v", got.Divergences)
		}
	})
}

// drawTape draws records of any kind, in either phase.
func drawTape(t *rapid.T) []*tape.Record {
	kinds := everyKind()
	n := rapid.IntRange(0, 20).Draw(t, "records")
	var out []*tape.Record
	for i := range n {
		out = append(out, &tape.Record{
			Seq: uint64(i), Phase: rapid.SampledFrom([]tape.Phase{0, 1}).Draw(t, "phase"), MonotonicMS: int64(i),
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
		})
	}
	return out
}

func BenchmarkCompare(b *testing.B) {
	kinds := everyKind()
	var recs []*tape.Record
	for i := range 100_000 {
		recs = append(recs, &tape.Record{Seq: uint64(i), Kind: kinds[i%len(kinds)]})
	}
	for _, mode := range []Mode{Semantic, ByteIdentical} {
		b.Run(mode.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustCompare(b, mode, yieldAll(recs, nil), yieldAll(recs, nil))
			}
		})
	}
}
