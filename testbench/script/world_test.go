package script_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

// world gives every axis something to answer with, as often as it is asked up to n times.
func world(t testing.TB, n int) *testbench.Config {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"notes.txt": "a note\n", "old.txt": "old\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := fixture.ReadRules(strings.NewReader(fmt.Sprintf(
		`{"match":{"contains":"repository"},"response":{"text":"look","tool_calls":[{"id":"t1","name":"run","arguments":{"args":["status","--short"]}}]}}
{"match":{"glob":"slow *"},"times":%[1]d,"response":{"text":"slow"},"stream":[{"text":"sl","delay_ms":11},{"text":"ow","delay_ms":6}]}
{"match":{"any":true},"times":%[1]d,"response":{"text":"quick","usage":{"input_tokens":5,"output_tokens":3},"stop_reason":"end_turn"}}`, n)), "rules")
	if err != nil {
		t.Fatal(err)
	}
	c := &testbench.Config{
		Name: "world.star", LLM: testbench.LLM{Rules: rules}, Files: testbench.Files{Dir: dir}, MCP: toolTape(t, n),
		Net: testbench.Net{Transport: constant{}}, Env: map[string]string{"MODE": "daily"}, Unused: true,
	}
	for i := range n {
		c.Processes.Calls = append(c.Processes.Calls, process.Call{
			Program: "git", Args: []string{"status", "--short"}, Stdout: fmt.Sprintf(" M file%d\n", i), DurationMS: int64(i % 7),
		})
	}
	return c
}

// constant is a network that always gives the same.
type constant struct{}

func (constant) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/plain"}},
		Body: io.NopCloser(strings.NewReader("hello")), ContentLength: 5, Request: r,
	}, nil
}

// toolTape is a tape of a server's tool, asked with n of 0 to n-1 and once for "tape".
func toolTape(t testing.TB, n int) (path string) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(`{"type":"header","version":1,"harn_version":"tapedeck test","started_at_unix_ms":null}` + "\n")
	payload := func(text string) []byte {
		p, err := tape.MakePayload(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p.AppendJSON(nil)
	}
	call := func(seq int, arguments string, latency int) {
		request := payload(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"query","arguments":%s}}`, seq+1, arguments))
		answer := payload(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"found %d"}]}}`, seq+1, seq))
		hash := func(p []byte) string { return string(p[len(`{"content_hash":"`):][:64]) }
		fmt.Fprintf(&b, `{"type":"record","seq":%d,"phase":"user_script","virtual_time_ms":0,"monotonic_ms":0,"kind":{"kind":"mcp_json_rpc",`+
			`"server":"search","method":"tools/call","request_digest":"%s","response_digest":"%s","latency_ms":%d,"request_payload":%s,"response_payload":%s}}`+"\n",
			seq, hash(request), hash(answer), latency, request, answer)
	}
	for i := range n {
		call(i, fmt.Sprintf(`{"n":%d}`, i), i%5)
	}
	call(n, `{"q":"tape"}`, 3)
	for i := range 8 {
		call(n+1+i, `{"q":"same"}`, (8-i)*10)
	}
	path = filepath.Join(t.TempDir(), "tools.tape")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// taped runs a script and returns the bytes of its tape.
func taped(t testing.TB, c testbench.Config, path string) []byte {
	t.Helper()
	var out bytes.Buffer
	c.EmitTo = &out
	b, err := testbench.Open(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := script.Run(t.Context(), b, path, nil); err != nil {
		_ = b.Close()
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const branches = 64

// sixtyFour are branches that draw, sleep and ask everything there is, and share a list.
const sixtyFour = `
order = []

def branch(i):
    def run():
        clock.sleep(random.int(0, 40))
        ask = "slow " if i % 3 == 0 else "quick "
        answer = llm.complete([{"role": "user", "content": ask + str(i)}])
        order.append(i)
        fs.write("out/%d.txt" % (i % 8), answer["text"] + str(i))
        clock.sleep((i * 7) % 13)
        status = process.run("git", ["status", "--short"])["stdout"]
        seen = [status, fs.read("out/%d.txt" % (i % 8)), fs.exists("out/%d.txt" % i)]
        found = mcp.call("search", "query", {"n": i})["content"][0]["text"]
        page = http.get("https://example.com/%d" % i)["body"]
        both = parallel([lambda: clock.sleep(i % 4), lambda: random.bytes(4), lambda: clock.now_ms()])
        order.append(i)
        return [seen, found, page, both[2], env.get("MODE"), fs.list("out")]
    return run

def main(args):
    results = parallel([branch(i) for i in range(64)])
    for i in range(64):
        assert_eq(results[i][1], "found %d" % i)
    on_finish(lambda: fs.write("order.json", json.encode(order)))
    return results
`

// Branches that run by turns leave the same tape whenever and wherever they run. TAPEDECK_LONG asks 1,000 times.
func TestBranchesGiveTheSameTapeEveryTime(t *testing.T) {
	times := 15
	if os.Getenv("TAPEDECK_LONG") != "" {
		times = 1000
	}
	c := world(t, branches)
	path := write(t, sixtyFour)
	first := taped(t, *c, path)
	if n := bytes.Count(first, []byte("\n")); n < branches*12 {
		t.Fatalf("the tape has %d lines: want at least 12 a branch", n)
	}
	for i := range times - 1 {
		if again := taped(t, *c, path); !bytes.Equal(first, again) {
			a, b := bytes.Split(first, []byte("\n")), bytes.Split(again, []byte("\n"))
			for n := range min(len(a), len(b)) {
				if !bytes.Equal(a[n], b[n]) {
					t.Fatalf("run %d: line %d is\n%s\nand was\n%s", i+2, n+1, b[n], a[n])
				}
			}
			t.Fatalf("run %d has %d lines, the first %d", i+2, len(b), len(a))
		}
	}
}

// What was recorded is replayed, from its tape alone, and leaves the same bytes.
func TestARunIsReplayedFromItsTape(t *testing.T) {
	c := world(t, branches)
	dir := t.TempDir()
	c.Emit = filepath.Join(dir, "run.tape")
	path := write(t, sixtyFour)
	record, err := testbench.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	first, err := script.Run(t.Context(), record, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(dir, "again.tape")
	replay, err := testbench.Replay(c.Emit, &testbench.Config{Emit: again})
	if err != nil {
		t.Fatal(err)
	}
	second, err := script.Run(t.Context(), replay, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := replay.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.JSON, second.JSON) {
		t.Errorf("the replay returned\n%s\nand the run\n%s", second.JSON, first.JSON)
	}
	report, err := replay.Verdict(fidelity.ByteIdentical)
	if err != nil || len(report.Divergences) > 0 {
		t.Errorf("%v: %d divergences, the first %+v", err, len(report.Divergences), report.Divergences[:min(3, len(report.Divergences))])
	}
	a, _ := os.ReadFile(c.Emit)
	b, _ := os.ReadFile(again)
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Error("the replay's tape is another one")
	}
}

// A script that changed asks for what the tape has not: the call fails, and the comparison names it.
func TestAChangedScriptDiverges(t *testing.T) {
	c := world(t, 3)
	c.Emit = filepath.Join(t.TempDir(), "run.tape")
	src := "def main(args):\n  clock.sleep(5)\n  a = llm.complete([{'role': 'user', 'content': 'one'}])\n  fs.write('a.txt', a['text'])\n"
	record, err := testbench.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := script.Run(t.Context(), record, write(t, src), nil); err != nil {
		t.Fatal(err)
	}
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	replay, err := testbench.Replay(c.Emit, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = script.Run(t.Context(), replay, write(t, strings.Replace(src, "'one'", "'two'", 1)), nil)
	var e *script.Error
	if !errors.As(err, &e) || e.Line != 3 {
		t.Errorf("got %v: want an error at the call", err)
	}
	_ = replay.Close()
	report, err := replay.Verdict(fidelity.Semantic)
	var got []string
	for _, d := range report.Divergences {
		got = append(got, string(d.Category))
	}
	if want := []string{"llm_request_digest"}; err != nil || !slices.Equal(got, want) || len(report.Refused) != 1 {
		t.Errorf("got %v, %v: want %v", err, got, want)
	}
}

// Paths that lead out are refused, and the host is as it was.
func TestHostilePathsStayInside(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret.txt")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{"../secret.txt", "out/secret.txt", secret, "a/../../secret.txt", "a\\0b", "..", "/etc/passwd", "out"} {
		for _, call := range []string{"fs.read(p)", "fs.write(p, 'x')", "fs.delete(p)", "fs.list(p)"} {
			r, err := runOn(t, &testbench.Config{Files: testbench.Files{Dir: dir}}, body(fmt.Sprintf("p = %q\nreturn %s", path, call)), nil)
			if err == nil && (path != "out" || call != "fs.delete(p)") && !strings.Contains(call, "write") {
				t.Errorf("%s of %q gave %s", call, path, r.Text)
			}
		}
	}
	if b, err := os.ReadFile(secret); string(b) != "secret" {
		t.Errorf("outside stands %q, %v", b, err)
	}
	if list, _ := os.ReadDir(outside); len(list) != 1 {
		t.Errorf("outside stand %v", list)
	}
}

// Callers side by side that ask for the same get their own answers again: those stand on the tape by when they came.
func TestEqualCallsSideBySideKeepTheirAnswers(t *testing.T) {
	const n = 8
	var rules strings.Builder
	c := world(t, n)
	c.Processes.Calls = nil
	for i := range n {
		fmt.Fprintf(&rules, `{"match":{"any":true},"response":{"text":"%[1]d"},"stream":[{"text":"%[1]d","delay_ms":%[2]d}]}`+"\n", i, (n-i)*10)
		c.Processes.Calls = append(c.Processes.Calls, process.Call{Program: "make", Args: []string{}, Stdout: fmt.Sprint(i), DurationMS: int64(n-i) * 10})
	}
	var err error
	if c.LLM.Rules, err = fixture.ReadRules(strings.NewReader(rules.String()), "rules"); err != nil {
		t.Fatal(err)
	}
	c.Emit = filepath.Join(t.TempDir(), "run.tape")
	for call, want := range map[string]string{
		`llm.complete([])["text"]`:                                         `["0","1","2","3","4","5","6","7"]`,
		`process.run("make", [])["stdout"]`:                                `["0","1","2","3","4","5","6","7"]`,
		`mcp.call("search", "query", {"q": "same"})["content"][0]["text"]`: `["found 9","found 10","found 11","found 12","found 13","found 14","found 15","found 16"]`,
	} {
		src := fmt.Sprintf("def main(args): return parallel([lambda: %s] * %d)\n", call, n)
		b, err := testbench.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := script.Run(t.Context(), b, write(t, src), nil)
		if err != nil || r.Text != want {
			t.Fatalf("%s: got %v, %v", call, r, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if b, err = testbench.Replay(c.Emit, nil); err != nil {
			t.Fatal(err)
		}
		if r, err := script.Run(t.Context(), b, write(t, src), nil); err != nil || r.Text != want {
			t.Errorf("%s: the replay gave %v, %v: want %s", call, r, err, want)
		}
		if report, err := b.Verdict(fidelity.ByteIdentical); err != nil || len(report.Divergences) > 0 {
			t.Errorf("%s: %v, %v", call, err, report.Divergences)
		}
		_ = b.Close()
	}
}
