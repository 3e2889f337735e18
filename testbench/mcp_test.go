package testbench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/axis/mcp/mcpsdk"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	benchsdk "github.com/tapedeck-dev/tapedeck/testbench/mcpsdk"
)

// weatherServer is a server with a tool that answers otherwise each time, and one that fails.
func weatherServer(t *testing.T) sdk.Transport {
	t.Helper()
	type in struct {
		City string `json:"city"`
	}
	asked := 0
	s := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "degrees"}, func(_ context.Context, _ *sdk.CallToolRequest, in in) (*sdk.CallToolResult, any, error) {
		if asked++; in.City == "Atlantis" {
			return nil, nil, errors.New("it has sunk")
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("%d degrees in %s", 20+asked, in.City)}}}, nil, nil
	})
	there, here := sdk.NewInMemoryTransports()
	if _, err := s.Connect(context.Background(), there, nil); err != nil {
		t.Fatal(err)
	}
	return here
}

// askTools is a Go program that uses the official SDK: it lists the tools and asks for cities.
func askTools(ctx context.Context, tools sdk.Transport, cities ...string) (all []string) {
	client := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	cs, err := client.Connect(ctx, tools, nil)
	if err != nil {
		return []string{err.Error()}
	}
	defer cs.Close()
	if list, err := cs.ListTools(ctx, nil); err != nil {
		all = append(all, err.Error())
	} else {
		all = append(all, list.Tools[0].Name)
	}
	for _, city := range cities {
		all = append(all, degrees(ctx, cs, city))
	}
	return all
}

func degrees(ctx context.Context, cs *sdk.ClientSession, city string) string {
	res, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "degrees", Arguments: map[string]any{"city": city}})
	if err != nil {
		return err.Error()
	}
	return res.Content[0].(*sdk.TextContent).Text
}

var cities = []string{"Lisbon", "Porto", "Lisbon", "Atlantis"}

// recordedTools is the tape of a real conversation: the cities are asked for in their order.
func recordedTools(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "weather.mcp.tape")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	store, err := cas.OpenDir(path+tape.StoreSuffix, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tape.NewWriter(f, &tape.Header{Producer: "tapedeck test"})
	if err != nil {
		t.Fatal(err)
	}
	log := mcp.NewLog(tape.NewRecorder(w, &tape.RecorderOptions{Store: store}), nil, nil, nil)
	got := askTools(context.Background(), &mcpsdk.RecordTransport{Transport: weatherServer(t), Log: log}, cities...)
	want := []string{"degrees", "21 degrees in Lisbon", "22 degrees in Porto", "23 degrees in Lisbon", "it has sunk"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("recorded %q", got)
	}
	return path
}

// bareTools is a tape of another producer: the seven keys alone.
func bareTools(t *testing.T, records ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bare.tape")
	text := `{"type":"header","version":1,"harn_version":"harn 0.7","started_at_unix_ms":null}` + "\n"
	for i, r := range records {
		text += fmt.Sprintf(`{"type":"record","seq":%d,"phase":"user_script","virtual_time_ms":0,"monotonic_ms":0,"kind":{"kind":"mcp_json_rpc",%s}}`+"\n", i, r)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// bareCall is a record with the seven keys.
func bareCall(server, method, params, answer string, latencyMS int) string {
	payload := func(text string) string {
		p, err := tape.MakePayload(nil, []byte(text))
		if err != nil {
			panic(err)
		}
		return string(p.AppendJSON(nil))
	}
	request := `{"jsonrpc":"2.0","id":"x7","method":"` + method + `","params":` + params + `}`
	if answer != "" {
		answer = `{"jsonrpc":"2.0","id":"x7",` + answer + `}`
	}
	return fmt.Sprintf(`"server":%q,"method":%q,"request_digest":%q,"response_digest":%q,"latency_ms":%d,"request_payload":%s,"response_payload":%s`,
		server, method, cas.Sum([]byte(request)), cas.Sum([]byte(answer)), latencyMS, payload(request), payload(answer))
}

// textOf is the text of a tool's result.
func textOf(t *testing.T, result json.RawMessage) string {
	t.Helper()
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) != 1 {
		t.Fatalf("%s: %v", result, err)
	}
	return r.Content[0].Text
}

type city struct {
	City string `json:"city"`
}

func TestCallTool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	conf := &testbench.Config{Name: "agent", MCP: recordedTools(t), Emit: path}
	agent := func(b *testbench.Bench) {
		t.Helper()
		ctx := context.Background()
		for i, want := range []string{"22 degrees in Porto", "21 degrees in Lisbon", "23 degrees in Lisbon", "it has sunk"} {
			res, err := b.CallTool(ctx, "weather", "degrees", city{[]string{"Porto", "Lisbon", "Lisbon", "Atlantis"}[i]})
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, res); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	b := testbench.New(t, conf)
	agent(b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	replay, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	agent(replay)
	report, err := replay.Verdict(fidelity.ByteIdentical)
	if err != nil || len(report.Divergences) > 0 || report.RecordedRecords != 4 {
		t.Errorf("%+v, %v", report, err)
	}
	from := testbench.New(t, &testbench.Config{MCP: path}) // a run's tape answers another run
	agent(from)
}

func TestCallToolIsRecordedInSevenKeys(t *testing.T) {
	var out strings.Builder
	b := testbench.New(t, &testbench.Config{EmitTo: &out, Unused: true, MCP: bareTools(t,
		bareCall("files", "tools/call", `{"name":"read","arguments":{"path":"<a>"}}`, `"result":{"content":[]}`, 150))})
	res, err := b.CallTool(context.Background(), "files", "read", map[string]any{"path": "<a>"})
	if err != nil || string(res) != `{"content":[]}` {
		t.Errorf("%s, %v", res, err)
	}
	if now := b.Clock().Now(); now.Sub(b.Clock().Start()) != 150*time.Millisecond {
		t.Errorf("the clock stands at %v", now)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	asked := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"<a>"}}}`
	came := `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }
	want := fmt.Sprintf(`"virtual_time_ms":1767225600150,"monotonic_ms":150,"kind":{"kind":"mcp_json_rpc","server":"files","method":"tools/call",`+
		`"request_digest":"%[1]s","response_digest":"%[2]s","latency_ms":150,"request_payload":{"content_hash":"%[1]s","text":%[3]s},`+
		`"response_payload":{"content_hash":"%[2]s","text":%[4]s}}`, cas.Sum([]byte(asked)), cas.Sum([]byte(came)), quote(asked), quote(came))
	if !strings.Contains(out.String(), want) {
		t.Errorf("got  %s\nwant %s", out.String(), want)
	}
}

func TestCallToolRefuses(t *testing.T) {
	b, err := testbench.Open(&testbench.Config{MCP: recordedTools(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx := context.Background()
	for _, test := range []struct{ server, tool, city, want string }{
		{"weather", "degrees", "Reykjavík", `not on the tape: tools/call degrees of weather; nearest is record `},
		{"weather", "degrees", "Reykjavík", `which differs in arguments.city: "Lisbon" -> "Reykjavík"`},
		{"weather", "rain", "Lisbon", `which differs in name: "degrees" -> "rain"`},
		{"maps", "degrees", "Lisbon", `the tape holds no server "maps"; it has weather`},
	} {
		_, err := b.CallTool(ctx, test.server, test.tool, city{test.city})
		var refused *testbench.RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
	if _, err := b.CallTool(ctx, "weather", "degrees", city{"Porto"}); err != nil {
		t.Error(err)
	}
	_, err = b.CallTool(ctx, "weather", "degrees", city{"Porto"})
	if err == nil || !strings.Contains(err.Error(), "it was recorded once, as record ") {
		t.Error(err)
	}
	for _, arguments := range []any{[]int{1}, "text", func() {}} {
		if _, err := b.CallTool(ctx, "weather", "degrees", arguments); err == nil {
			t.Errorf("%T is no object", arguments)
		}
	}
	if unused := b.Unused(); len(unused) != 3 || !strings.Contains(unused[0], "tools/call degrees of weather") {
		t.Errorf("%q", unused)
	}
}

func TestCallToolDenied(t *testing.T) {
	b, err := testbench.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = b.CallTool(context.Background(), "files", "read", nil)
	for _, want := range []string{"denied", "tools/call read of files", "--mcp REC", "Config.MCP"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: no %q", err, want)
		}
	}
	if got := askTools(context.Background(), benchsdk.Transport(b, "files"), "Lisbon"); len(got) != 1 || !strings.Contains(got[0], "denied") {
		t.Errorf("%q", got)
	}
}

// TestCallToolOfOthers answers from bare records: an error of the server, no answer, facts that differ from run to run, no arguments.
func TestCallToolOfOthers(t *testing.T) {
	day := `{"name":"day","arguments":{"date":"2026-01-0%d","n":7}}`
	b, err := testbench.Open(&testbench.Config{Keep: true, MCP: bareTools(t,
		bareCall("s", "initialize", `{"protocolVersion":"2025-06-18"}`, `"result":{}`, 0),
		bareCall("s#2", "tools/call", `{"name":"bad"}`, `"error":{"code":-32602,"message":"no such tool","data":[1]}`, 0),
		bareCall("s", "tools/call", `{"name":"dead","arguments":{}}`, ``, 0),
		bareCall("s", "tools/call", fmt.Sprintf(day, 1), `"result":{"day":1}`, 0),
		bareCall("s", "tools/call", fmt.Sprintf(day, 2), `"result":{"day":2}`, 0))})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	ctx := context.Background()
	_, err = b.CallTool(ctx, "s", "bad", nil)
	var failed *testbench.ToolError
	if !errors.As(err, &failed) || failed.Code != -32602 || failed.Message != "no such tool" || string(failed.Data) != "[1]" {
		t.Errorf("%#v", err)
	}
	if _, err := b.CallTool(ctx, "s", "dead", map[string]any{}); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
	for _, day := range []struct{ date, want string }{
		{"2026-01-02", `{"day":2}`}, // the exact one first
		{"2027-12-31", `{"day":1}`}, // a date may differ
	} {
		res, err := b.CallTool(ctx, "s", "day", map[string]any{"n": 7, "date": day.date})
		if err != nil || string(res) != day.want {
			t.Errorf("%s: %s, %v", day.date, res, err)
		}
	}
}

// TestMCPTransport has the official client of the SDK answered from the tape of a real conversation.
func TestMCPTransport(t *testing.T) {
	b, err := testbench.Open(&testbench.Config{MCP: recordedTools(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	got := askTools(context.Background(), benchsdk.Transport(b, "weather"), "Atlantis", "Porto", "Lisbon", "Lisbon", "Porto")
	want := []string{"degrees", "it has sunk", "22 degrees in Porto", "21 degrees in Lisbon", "23 degrees in Lisbon"}
	if fmt.Sprint(got[:5]) != fmt.Sprint(want) || !strings.Contains(got[5], "asked once more") {
		t.Errorf("got %q", got)
	}
}

// TestMCPTransportOfBareCalls has the SDK begin with a server of which the tape holds calls alone.
func TestMCPTransportOfBareCalls(t *testing.T) {
	var out strings.Builder
	b, err := testbench.Open(&testbench.Config{EmitTo: &out, MCP: bareTools(t,
		bareCall("weather", "tools/call", `{"name":"degrees","arguments":{"city":"Lisbon"}}`, `"result":{"content":[{"type":"text","text":"21"}]}`, 0))})
	if err != nil {
		t.Fatal(err)
	}
	got := askTools(context.Background(), benchsdk.Transport(b, "weather"), "Lisbon")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || !strings.Contains(got[0], "the tape holds no tools/list to weather") || got[1] != "21" {
		t.Errorf("got %q", got)
	}
	if n := strings.Count(out.String(), `"kind":"mcp_json_rpc"`); n != 1 {
		t.Errorf("%d records: what is made up stands on no tape\n%s", n, out.String())
	}
}

// TestMCPTransportIsDeterministic has a client used from branches that sleep, with answers that take their time, leave the same tape
// each time: the SDK's own goroutines decide nothing of it.
func TestMCPTransportIsDeterministic(t *testing.T) {
	const branches, times = 8, 200
	var records []string
	for i := range branches {
		for j := range 2 {
			records = append(records, bareCall("weather", "tools/call", fmt.Sprintf(`{"name":"degrees","arguments":{"city":"%d"}}`, i),
				fmt.Sprintf(`"result":{"content":[{"type":"text","text":"%d.%d"}]}`, i, j), 10*(i%3)))
		}
	}
	tools := bareTools(t, records...)
	agent := func(b *testbench.Bench) error {
		ctx := context.Background()
		cs, err := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil).Connect(ctx, benchsdk.Transport(b, "weather"), nil)
		if err != nil {
			return err
		}
		defer cs.Close()
		var all []func(ctx context.Context) error
		for i := range branches {
			all = append(all, func(ctx context.Context) error {
				for j := range 2 {
					if got := degrees(ctx, cs, fmt.Sprint(i)); got != fmt.Sprintf("%d.%d", i, j) {
						return fmt.Errorf("branch %d got %s", i, got)
					}
					if err := b.Clock().Sleep(ctx, time.Duration(i%4)*5*time.Millisecond); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return b.Parallel(ctx, all...)
	}
	first := ""
	for i := range times {
		var out strings.Builder
		b, err := testbench.Open(&testbench.Config{EmitTo: &out, MCP: tools})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(agent(b), b.Close()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if first = out.String(); strings.Count(first, "mcp_json_rpc") != 2*branches {
				t.Fatal(first)
			}
		}
		if out.String() != first {
			t.Fatalf("time %d left another tape:\n%s\n%s", i, first, out.String())
		}
	}
}

// TestMCPTransportReplays has a run's tape answer the same program.
func TestMCPTransportReplays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	b := testbench.New(t, &testbench.Config{MCP: recordedTools(t), Emit: path})
	want := askTools(context.Background(), benchsdk.Transport(b, "weather"), cities...)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	replay, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := askTools(context.Background(), benchsdk.Transport(replay, "weather"), cities...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	report, err := replay.Verdict(fidelity.ByteIdentical)
	if err != nil || len(report.Divergences) > 0 || report.RecordedRecords < 5 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestForeignToolsReplay answers each method in recorded order, whatever is asked, and the comparison tells.
func TestForeignToolsReplay(t *testing.T) {
	path := bareTools(t, bareCall("s", "tools/call", `{"name":"a"}`, `"result":{"n":1}`, 0), bareCall("s", "tools/call", `{"name":"b"}`, `"result":{"n":2}`, 0))
	replay, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, tool := range []string{"a", "other"} {
		res, err := replay.CallTool(context.Background(), "s", tool, nil)
		if want := fmt.Sprintf(`{"n":%d}`, i+1); err != nil || string(res) != want {
			t.Errorf("%s, %v", res, err)
		}
	}
	if report, err := replay.Verdict(fidelity.Semantic); err != nil || len(report.Divergences) == 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestEqualToolsInBranchesReplay gives each of two branches that ask the same its own answer again: the one asked first came last.
func TestEqualToolsInBranchesReplay(t *testing.T) {
	call := func(answer string, latencyMS int) string {
		return bareCall("s", "tools/call", `{"name":"q"}`, `"result":{"content":[{"type":"text","text":"`+answer+`"}]}`, latencyMS)
	}
	agent := func(b *testbench.Bench) (got [2]string) {
		var branches []func(ctx context.Context) error
		for i := range got {
			branches = append(branches, func(ctx context.Context) error {
				result, err := b.CallTool(ctx, "s", "q", nil)
				if err == nil {
					got[i] = textOf(t, result)
				}
				return err
			})
		}
		if err := b.Parallel(context.Background(), branches...); err != nil {
			t.Fatal(err)
		}
		return got
	}
	path := filepath.Join(t.TempDir(), "run.tape")
	b := testbench.New(t, &testbench.Config{MCP: bareTools(t, call("slow", 100), call("fast", 10)), Emit: path})
	want := agent(b)
	if err := b.Close(); err != nil || want != [2]string{"slow", "fast"} {
		t.Fatalf("%q, %v", want, err)
	}
	replay := testbench.NewReplay(t, path, nil)
	if got := agent(replay); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if report, err := replay.Verdict(fidelity.ByteIdentical); err != nil || !report.Faithful() {
		t.Errorf("%+v, %v", report, err)
	}
}
