package testbench_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// begun is where the clock of written tapes begins.
const begun = 1767225600000

// at is a line of a tape: a kind object, so many ms after the beginning.
type at struct {
	ms   int64
	kind string
}

// written writes a tape as another program would, from the words of the format.
func written(t *testing.T, producer string, lines ...at) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, `{"type":"header","version":1,"harn_version":%q,"started_at_unix_ms":%d,"script_path":"a","argv":[]}`+"\n", producer, int64(begun))
	for i, l := range lines {
		fmt.Fprintf(&b, `{"type":"record","seq":%d,"phase":"user_script","virtual_time_ms":%d,"monotonic_ms":%d,"kind":%s}`+"\n", i, begun+l.ms, l.ms, l.kind)
	}
	path := filepath.Join(t.TempDir(), "written.tape")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// inline is a payload that stands in its record.
func inline(text string) string {
	return fmt.Sprintf(`{"content_hash":"%s","text":%q}`, cas.Sum([]byte(text)), text)
}

// spilled is a payload in the store of the tape at path, which gets it unless path is "".
func spilled(t *testing.T, path, text string) string {
	t.Helper()
	d := cas.Sum([]byte(text))
	if path != "" {
		store, err := cas.OpenDir(path+".cas", nil)
		if err == nil {
			_, err = store.Put([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf(`{"content_hash":"%s","len_bytes":%d}`, d, len(text))
}

func fileLine(kind, path, text string) at {
	return at{kind: fmt.Sprintf(`{"kind":%q,"path":%q,"content_hash":"%s","len_bytes":%d}`, kind, path, cas.Sum([]byte(text)), len(text))}
}

func deleteLine(path string) at {
	return at{kind: fmt.Sprintf(`{"kind":"file_delete","path":%q}`, path)}
}

func callLine(request, response, more string) at {
	return at{kind: fmt.Sprintf(`{"kind":"llm_call","request_digest":"%s","response":%s%s}`, cas.Sum([]byte(request)), inline(response), more)}
}

func readingLine(ms int64, source string, value int64) at {
	return at{ms, fmt.Sprintf(`{"kind":"clock_read","source":%q,"value_ms":%d}`, source, value)}
}

func toolLine(request, response string) at {
	return at{kind: fmt.Sprintf(`{"kind":"mcp_json_rpc","server":"s","method":"tools/call","request_digest":"%s","response_digest":"%s",`+
		`"latency_ms":0,"request_payload":%s,"response_payload":%s}`,
		cas.Sum([]byte(request)), cas.Sum([]byte(response)), inline(request), inline(response))}
}

// hi is the canonical JSON of what ask asks.
const hi = `{"messages":[{"content":"hi","role":"user"}]}`

func ask(want string) func(context.Context, *testbench.Bench) error {
	return func(ctx context.Context, b *testbench.Bench) error {
		r, err := b.Model().Complete(ctx, &fixture.Request{Messages: "hi"})
		if err == nil && r.Text != want {
			err = fmt.Errorf("the model said %q, not %q", r.Text, want)
		}
		return err
	}
}

// TestTapesWithTheRequiredKeys replays what the format asks for and no more, whoever's name stands in the header: what is ours alone is
// neither needed for an answer nor compared.
func TestTapesWithTheRequiredKeys(t *testing.T) {
	call := func(ctx context.Context, b *testbench.Bench) error {
		_, err := b.CallTool(ctx, "s", "t", map[string]any{"i": 1})
		return err
	}
	remove := func(_ context.Context, b *testbench.Bench) error { return b.Files().Remove("a.txt") }
	for name, c := range map[string]struct {
		tape []at
		run  func(ctx context.Context, b *testbench.Bench) error
		only string // the one producer; "" for both
		want []fidelity.Category
	}{
		"a removal": {tape: []at{deleteLine("a.txt")}, run: remove},
		"a removal behind a look": {tape: []at{deleteLine("a.txt")}, run: func(_ context.Context, b *testbench.Bench) error {
			if there, err := b.Files().Exists("a.txt"); err != nil || !there {
				return fmt.Errorf("it is there: %t, %w", there, err)
			}
			return b.Files().Remove("a.txt")
		}},
		"a removal behind a read": {tape: []at{
			{kind: fmt.Sprintf(`{"kind":"file_read","path":"a.txt","content_hash":"%s","len_bytes":1,"content":%s}`, cas.Sum([]byte("x")), inline("x"))},
			deleteLine("a.txt"),
		}, run: func(_ context.Context, b *testbench.Bench) error {
			_, err := b.Files().ReadFile("a.txt")
			return errors.Join(err, b.Files().Remove("a.txt"))
		}},
		"a removal of something else": {tape: []at{deleteLine("b.txt")}, run: remove, want: []fidelity.Category{fidelity.FileDeletePath}},
		"a write": {tape: []at{fileLine("file_write", "a.txt", "x")}, run: func(_ context.Context, b *testbench.Bench) error {
			return b.Files().WriteFile("a.txt", []byte("x"), 0o644)
		}},
		"a call":                 {tape: []at{callLine(hi, `{"text":"yo"}`, "")}, run: ask("yo")},
		"an answer that is text": {tape: []at{callLine(hi, "plain", "")}, run: ask("plain")},
		"a JSON string":          {tape: []at{callLine(hi, `"quoted"`, "")}, run: ask("quoted")},
		"a list":                 {tape: []at{callLine(hi, `["x"]`, "")}, run: ask(`["x"]`)},
		"another digest": {tape: []at{callLine("x", `{"text":"yo"}`, "")}, run: ask("yo"), only: "indep 1.0",
			want: []fidelity.Category{fidelity.LLMRequestDigest}},
		"a command with stdin": {tape: []at{callLine(hi, `{"text":"yo"}`, ""), {kind: `{"kind":"process_spawn","program":"wc","args":[],"cwd":null,` +
			`"exit_code":0,"duration_ms":0,"stdout_payload":` + inline("1") + `,"stderr_payload":` + inline("") + `}`}},
			run: func(ctx context.Context, b *testbench.Bench) error {
				asked := ask("yo")(ctx, b)
				_, err := b.Processes().Run(ctx, &process.Command{Program: "wc", Stdin: []byte("x")})
				return errors.Join(asked, err)
			}},
		"a tool, with blanks in its answer": {tape: []at{toolLine(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"i":1}}}`,
			`{"jsonrpc": "2.0", "id": 1, "result": {"content": []}}`)}, run: call},
		"a tool, by another id": {tape: []at{toolLine(`{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"arguments": {"i": 1}, "name": "t"}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)}, run: call, only: "indep 1.0"},
		"a tool, asked for something else": {tape: []at{toolLine(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"i":2}}}`,
			`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)}, run: call, only: "indep 1.0",
			want: []fidelity.Category{fidelity.MCPRequestDigest, fidelity.MCPRequestHash}},
	} {
		for _, producer := range []string{"indep 1.0", "tapedeck 0.1.0"} {
			if c.only != "" && c.only != producer {
				continue
			}
			t.Run(name+"/"+producer, func(t *testing.T) {
				b, err := testbench.Replay(written(t, producer, c.tape...), nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.run(t.Context(), b); err != nil && c.want == nil {
					t.Error(err)
				}
				report, err := b.Verdict(fidelity.Semantic)
				if err != nil {
					t.Fatal(err)
				}
				if got := categories(report); !slices.Equal(got, append([]fidelity.Category{}, c.want...)) {
					t.Errorf("%v, want %v: %s", got, c.want, report)
				}
			})
		}
	}
}

// TestForeignTime is the tape's, in each of the places where it may pass.
func TestForeignTime(t *testing.T) {
	path := written(t, "indep 1.0",
		readingLine(500, "wall", begun+500), readingLine(777, "monotonic", 777),
		at{1000, callLine(hi, `{"text":"yo"}`, "").kind}, readingLine(1000, "wall", begun+1000))
	b, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := b.Clock()
	if wall, mono := c.Now().UnixMilli(), c.Monotonic().Milliseconds(); wall != begun+500 || mono != 777 {
		t.Errorf("%d and %d", wall-begun, mono)
	}
	if err := ask("yo")(t.Context(), b); err != nil {
		t.Error(err)
	}
	if wall := c.Now().UnixMilli(); wall != begun+1000 {
		t.Errorf("after the call %d", wall-begun)
	}
	report, err := b.Verdict(fidelity.ByteIdentical)
	if err != nil || !report.Faithful() {
		t.Errorf("%v, %v", report, err)
	}
}

// TestForeignReads answers a path that the tape does not know by the next content that nobody has read.
func TestForeignReads(t *testing.T) {
	path := written(t, "indep 1.0", fileLine("file_read", "a.txt", "a"), fileLine("file_read", "a.txt", "b"), fileLine("file_read", "c.txt", "c"))
	for _, text := range []string{"a", "b", "c"} {
		spilled(t, path, text)
	}
	b, err := testbench.Replay(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, read := range [][2]string{{"q.txt", "a"}, {"q.txt", "a"}, {"a.txt", "b"}, {"a.txt", "b"}, {"r.txt", "c"}, {"c.txt", "c"}} {
		if got, err := b.Files().ReadFile(read[0]); err != nil || string(got) != read[1] {
			t.Errorf("%s: %q, %v", read[0], got, err)
		}
	}
	if _, err := b.Files().ReadFile("s.txt"); err == nil {
		t.Error("a fourth content")
	}
}

// TestLostBlobs is no divergence: it could not be looked at. What a payload names is missed before the run begins; the hash of a file
// alone never requires a blob, until somebody reads it.
func TestLostBlobs(t *testing.T) {
	lost := spilled(t, "", "lost")
	spawn := `{"kind":"process_spawn","program":"p","args":[],"cwd":null,"exit_code":0,"duration_ms":0,"stdout_payload":%s,"stderr_payload":%s}`
	for name, kind := range map[string]string{
		"stdout":  fmt.Sprintf(spawn, lost, inline("")),
		"stderr":  fmt.Sprintf(spawn, inline(""), lost),
		"answer":  fmt.Sprintf(`{"kind":"llm_call","request_digest":"%s","response":%s}`, cas.Sum(nil), lost),
		"content": fmt.Sprintf(`{"kind":"file_read","path":"a","content_hash":"%s","len_bytes":4,"content":%s}`, cas.Sum([]byte("lost")), lost),
		"tool": fmt.Sprintf(`{"kind":"mcp_json_rpc","server":"s","method":"m","request_digest":"%s","response_digest":"%[1]s","latency_ms":0,`+
			`"request_payload":%s,"response_payload":%s}`, cas.Sum(nil), inline("{}"), lost),
		"random": fmt.Sprintf(`{"kind":"random_read","length":4,"payload":%s}`, lost),
		"names":  fmt.Sprintf(`{"kind":"dir_list","path":".","names_digest":"%s","names":%s}`, cas.Sum(nil), lost),
		"page": fmt.Sprintf(`{"kind":"http_exchange","method":"GET","url":"http://a.test/","request_headers":[],"request_digest":"%s",`+
			`"request_payload":null,"status":200,"response_headers":[],"response":%s}`, cas.Sum(nil), lost),
	} {
		_, err := testbench.Replay(written(t, "indep 1.0", at{kind: kind}), nil)
		var missing *cas.MissingError
		if !errors.As(err, &missing) || missing.Digest != cas.Sum([]byte("lost")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		line at
		use  func(b *testbench.Bench) error
	}{
		"read": {fileLine("file_read", "a.txt", "lost"), func(b *testbench.Bench) error { _, err := b.Files().ReadFile("a.txt"); return err }},
		"list": {at{kind: fmt.Sprintf(`{"kind":"dir_list","path":".","names_digest":"%s"}`, cas.Sum([]byte("lost")))},
			func(b *testbench.Bench) error { _, err := b.Files().List("."); return err }},
	} {
		b, err := testbench.Replay(written(t, "indep 1.0", c.line), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.use(b); err == nil {
			t.Errorf("%s: it is answered", name)
		}
		var missing *cas.MissingError
		if _, err := b.Verdict(fidelity.Semantic); !errors.As(err, &missing) {
			t.Errorf("%s: the verdict is %v", name, err)
		}
	}
}

// TestDamagedBlob is found when it is used.
func TestDamagedBlob(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.tape")
	text := strings.Repeat("x", 5000)
	b, err := testbench.Open(&testbench.Config{Emit: path, Processes: testbench.Processes{Calls: []process.Call{{Program: "p", Stdout: text}}}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(b *testbench.Bench) error {
		_, err := b.Processes().Run(t.Context(), &process.Command{Program: "p"})
		return err
	}
	if err := errors.Join(run(b), b.Close()); err != nil {
		t.Fatal(err)
	}
	blob := filepath.Join(path+".cas", cas.Sum([]byte(text)).String())
	if err := errors.Join(os.Chmod(blob, 0o644), os.WriteFile(blob, []byte(strings.Repeat("y", 5000)), 0o644)); err != nil {
		t.Fatal(err)
	}
	if b, err = testbench.Replay(path, nil); err != nil {
		t.Fatal(err)
	}
	if err := run(b); err == nil {
		t.Error("it is answered")
	}
	var corrupt *cas.CorruptError
	if report, err := b.Verdict(fidelity.Semantic); !errors.As(err, &corrupt) {
		t.Errorf("%v, %v", report, err)
	}
}
