package fidelity

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// errBroken is what a broken tape yields.
var errBroken = errors.New("broken")

// yieldAll yields records, numbered, and then err unless it is nil.
func yieldAll(recs []*tape.Record, err error) Records {
	return func(yield func(*tape.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// tapeOf returns a tape of kinds.
func tapeOf(kinds ...tape.Kind) Records { return yieldAll(recordsOf(kinds...), nil) }

func recordsOf(kinds ...tape.Kind) []*tape.Record {
	var out []*tape.Record
	for i, k := range kinds {
		out = append(out, &tape.Record{Seq: uint64(i), Kind: k, G: uint64(i + 1)})
	}
	return out
}

func sum(s string) cas.Digest { return cas.Sum([]byte(s)) }

func inline(s string) *tape.Payload {
	return &tape.Payload{Hash: sum(s), Text: s, Inline: true, Len: int64(len(s))}
}

// everyKind returns one record of every kind with every field set.
func everyKind() []tape.Kind {
	cwd := "/w"
	extra := []tape.Field{{Name: "x", Value: json.RawMessage("1")}}
	headers := []tape.HeaderField{{Name: "A", Value: "b"}}
	ex := tape.Exchange{
		Method: "POST", URL: "https://api.test/v1", RequestHeaders: headers, RequestDigest: sum("q"), RequestPayload: inline("q"),
		Status: 200, ResponseHeaders: headers, Response: inline("r"), Stream: []tape.Chunk{{Length: 1, TMS: 5, G: 9}},
		Lane: "lane", Arrival: 1, Error: "cut",
	}
	file := tape.File{
		Path: "a.txt", ContentHash: sum("f"), LenBytes: 1, Content: inline("f"), Before: inline("e"), ContentDigest: sum("f"),
		Mode: "100644", SpawnID: 1, Extra: extra,
	}
	return []tape.Kind{
		&tape.ClockRead{Source: "wall", ValueMS: 1, Extra: extra},
		&tape.ClockSleep{DurationMS: 1, Extra: extra},
		&tape.LLMCall{
			Provider: "anthropic", Endpoint: "messages", Model: "m", ParamsDigest: sum("p"), Usage: json.RawMessage("{}"),
			Exchange: ex, Extra: extra,
		},
		&tape.HTTPExchange{Exchange: ex, Extra: extra},
		&tape.FileRead{File: file}, &tape.FileWrite{File: file}, &tape.FileDelete{File: file},
		&tape.ProcessSpawn{
			Program: "/bin/p", Args: []string{"a"}, Cwd: &cwd, ExitCode: 1, DurationMS: 1, Stdout: inline("o"),
			Stderr: inline("e"), SpawnID: 2, ParentSpawnID: 1, Signal: "SIGTERM", Stdin: inline("i"),
			StdoutDigest: sum("o"), StderrDigest: sum("e"), Extra: extra,
		},
		&tape.MCPJSONRPC{
			Server: "s", Method: "m", RequestDigest: sum("q"), ResponseDigest: sum("r"), LatencyMS: 1,
			Request: inline("q"), Response: inline("r"), From: "server", Conversation: 1, Transport: "stdio", Arrival: 3, Answered: 4,
			ParamsDigest: sum("p"), ResultDigest: sum("o"), Exchange: 5, AnswerExchange: 6, Error: "cancelled", Extra: extra,
		},
		&tape.WSOpen{
			URL: "wss://x.test/", Lane: "ws", Arrival: 1, RequestHeaders: headers, ResponseHeaders: headers, Extra: extra,
		},
		&tape.WSMessage{Connection: 1, Direction: "sent", Opcode: "text", Payload: inline("m"), Extra: extra},
		&tape.WSClose{Connection: 1, Code: 1000, Reason: "done", Extra: extra},
		&tape.TLSRefused{Host: "h", Port: 443, Reason: "pin", Extra: extra},
		&tape.NetRefused{Addr: "10.0.0.1", Port: 5432, Reason: "port", Extra: extra},
		&tape.DirList{Path: "d", NamesDigest: sum("n"), Names: inline("n"), Extra: extra},
		&tape.EnvRead{VarName: "HOME", Value: inline("/h"), Extra: extra},
		&tape.RandomRead{Length: 8, Payload: inline("12345678"), Extra: extra},
		&tape.PolicyVerdict{
			PolicySet: "p", ActionID: "a", Tool: "t", ParamsDigest: sum("p"), ParamsPayload: inline("p"),
			State: json.RawMessage("1"), Verdict: json.RawMessage("2"), Extra: extra,
		},
		&tape.Unknown{KindName: "later", JSON: []byte(`{"kind":"later","x":1}`)},
		&tape.MCPOpen{
			Server: "s", Conversation: 1, Transport: "stdio", Program: "node", Args: []string{"a"}, Cwd: "/w", URL: "http://x.test/mcp",
			Protocol: "2025-06-18", Extra: extra,
		},
		&tape.MCPText{Server: "s", Conversation: 1, From: "server", Arrival: 2, Payload: inline("log"), Extra: extra},
		&tape.MCPClose{
			Server: "s", Conversation: 1, Arrival: 9, ExitCode: new(int64), Signal: "SIGTERM", Error: "cut", By: "server", Extra: extra,
		},
		&tape.FileStat{Path: "a.txt", Type: "file", LenBytes: 3, Mode: "100755", Extra: extra},
		&tape.NameLookup{Host: "x.test", Type: "A", Result: "answered", Extra: extra},
	}
}

// samplePath returns the path of a sample of another producer, or skips the test.
func samplePath(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skip("no go.mod above the test")
		}
		dir = parent
	}
	path := filepath.Join(dir, "..", "shared", "samples", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("sample %s is not here", name)
	}
	return path
}

func categories(r *Report) []Category {
	var out []Category
	for _, d := range r.Divergences {
		out = append(out, d.Category)
	}
	return out
}
