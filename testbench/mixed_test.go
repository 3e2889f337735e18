package testbench_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

// rounds is how often mixed goes round: each makes 16 records, and what follows the body four, so the tape has 100.
const rounds = 6

// mixed makes a call of every sort in each round, and passes by what it is answered: an answer that was altered changes nothing else.
func mixed(ctx context.Context, b *testbench.Bench) error {
	for i := range rounds {
		if err := mixedRound(ctx, b, i); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	b.OnFinish(func(context.Context) error {
		b.Clock().Now()
		_, _, err := b.LookupEnv("LAST")
		if err != nil {
			return err
		}
		if _, err := b.Random().Int(1, 6); err != nil {
			return err
		}
		return b.Files().WriteFile("final.txt", []byte("done\n"), 0o644)
	})
	return b.Finish(ctx)
}

func mixedRound(ctx context.Context, b *testbench.Bench, i int) error {
	name := fmt.Sprintf("%d.txt", i)
	files := b.Files()
	for _, f := range []func() error{
		func() error { _, err := b.Clock().ReadWall(); return err },
		func() error { _, err := files.ReadFile("in/" + name); return err },
		func() error { _, err := files.List(fmt.Sprintf("list/%d", i)); return err },
		func() error { _, err := files.Exists("stat/" + name); return err },
		func() error {
			_, err := b.Model().Complete(ctx, &fixture.Request{Model: "some-model", Messages: fmt.Sprintf("step %d", i)})
			return err
		},
		func() error { _, _, err := b.LookupEnv(fmt.Sprintf("NAME_%d", i)); return err },
		func() error { _, err := b.Random().Bytes(4 + i); return err },
		func() error { return b.Clock().Sleep(ctx, time.Second) },
		func() error {
			cwd := "in"
			_, err := b.Processes().Run(ctx, &process.Command{Program: "git", Args: []string{"show", name}, Cwd: &cwd, Stdin: []byte("in " + name)})
			return err
		},
		func() error { _, err := b.CallTool(ctx, "files", "read", map[string]any{"n": i}); return err },
		func() error {
			return get(ctx, b.Client(), fmt.Sprintf("http://api.test/%d", i), fmt.Sprintf(`{"n":%d}`, i))
		},
		func() error { return files.WriteFile("out/"+name, []byte("new "+name), 0o644) },
		func() error { return files.WriteFile("over/"+name, []byte("newer "+name), 0o644) },
		func() error { return files.WriteFile("tmp/"+name, []byte("short-lived "+name), 0o644) },
		func() error { return files.Remove("tmp/" + name) },
		func() error { _, err := b.Clock().ReadMonotonic(); return err },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func get(ctx context.Context, c *http.Client, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// upstream answers any request with its body.
type upstream struct{}

func (upstream) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: 200, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}, "X-Served-By": {"upstream"}},
		Body:   io.NopCloser(bytes.NewReader(append([]byte("you said "), body...))), ContentLength: int64(len(body) + 9),
	}, nil
}

// mixedConf is what mixed runs on.
func mixedConf(t *testing.T, path string) *testbench.Config {
	t.Helper()
	dir := t.TempDir()
	conf := &testbench.Config{
		Name: "mixed", Emit: path, Seed: 7, Files: testbench.Files{Dir: filepath.Join(dir, "tree")},
		Net: testbench.Net{Transport: upstream{}}, MCP: filepath.Join(dir, "mcp.tape"),
		Env: map[string]string{"LAST": "the last one"},
	}
	var calls []*tape.MCPJSONRPC
	for i := range rounds {
		name := fmt.Sprintf("%d.txt", i)
		for _, file := range []string{"in/" + name, fmt.Sprintf("list/%d/a", i), fmt.Sprintf("list/%d/b", i), "stat/" + name, "over/" + name} {
			writeFile(t, filepath.Join(conf.Files.Dir, file), "old "+file)
		}
		conf.Env[fmt.Sprintf("NAME_%d", i)] = fmt.Sprintf("value %d", i)
		conf.LLM.Rules = append(conf.LLM.Rules, fixture.Rule{
			Match:  fixture.Match{Contains: fmt.Sprintf("step %d", i)},
			Stream: []fixture.Piece{{Text: fmt.Sprintf("answer %d", i), DelayMS: 20}}, Response: &fixture.Response{StopReason: "end_turn"},
		})
		conf.Processes.Calls = append(conf.Processes.Calls, process.Call{
			Program: "git", Args: []string{"show", name}, Stdout: "shown " + name, Stderr: "warning", DurationMS: 5,
		})
		calls = append(calls, toolCall(t, i))
	}
	writeTape(t, conf.MCP, calls)
	return conf
}

func toolCall(t *testing.T, i int) *tape.MCPJSONRPC {
	t.Helper()
	text := func(v any) *tape.Payload {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return textPayload(string(b))
	}
	k := &tape.MCPJSONRPC{Server: "files", Method: "tools/call", LatencyMS: 7, Request: text(map[string]any{
		"jsonrpc": "2.0", "id": i + 1, "method": "tools/call", "params": map[string]any{"name": "read", "arguments": map[string]any{"n": i}},
	}), Response: text(map[string]any{
		"jsonrpc": "2.0", "id": i + 1, "result": map[string]any{"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf("file %d", i)}}},
	})}
	k.RequestDigest, k.ResponseDigest = k.Request.Hash, k.Response.Hash
	return k
}

func textPayload(s string) *tape.Payload {
	return &tape.Payload{Hash: cas.Sum([]byte(s)), Text: s, Inline: true, Len: int64(len(s))}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeTape writes a tape of these records.
func writeTape[K tape.Kind](t *testing.T, path string, kinds []K) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := tape.NewWriter(f, &tape.Header{Producer: "tapedeck test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, nil)
	for _, k := range kinds {
		if err := rec.Record(k); err != nil {
			t.Fatal(err)
		}
	}
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
}

// recordMixed runs mixed and returns the path of its tape.
func recordMixed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mixed.tape")
	b := testbench.New(t, mixedConf(t, path))
	if err := mixed(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMixedTape has 100 records of every kind that a bench writes, the same bytes twice, and its replay is faithful in every mode.
func TestMixedTape(t *testing.T) {
	path := recordMixed(t)
	if a, b := everything(t, path), everything(t, recordMixed(t)); a != b {
		t.Error("two runs write different bytes")
	}
	kinds := map[string]int{}
	for _, rec := range load(t, path) {
		kinds[rec.Kind.Name()]++
	}
	total := 0
	for _, n := range kinds {
		total += n
	}
	if total != 100 || len(kinds) != 13 {
		t.Errorf("%d records of %d kinds: %v", total, len(kinds), kinds)
	}
	for _, mode := range modes {
		b := testbench.NewReplay(t, path, nil)
		if err := mixed(context.Background(), b); err != nil {
			t.Fatal(err)
		}
		report, err := b.Verdict(mode)
		if err != nil {
			t.Fatal(err)
		}
		if !report.Faithful() {
			t.Errorf("%s: %s: %v", mode, report, categories(report))
		}
	}
}

func load(t *testing.T, path string) []*tape.Record {
	t.Helper()
	f, err := tape.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*tape.Record
	for rec, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}
