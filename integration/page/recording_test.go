//go:build browser

package page

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// hostile stands in every field that a program can write.
const hostile = "</script><img src=x onerror=\"window.pwned=1\"><b>bold</b>\u202egpj.exe\u2066\u0000\u001b[31mred\u200b\U000e0041"

// A maker makes a recording, record by record.
type maker struct {
	t     *testing.T
	dir   string
	store *cas.Dir
	rec   *tape.Recorder
	n     int
	at    uint64
	close func() error
}

func newMaker(t *testing.T, dir string) *maker {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o755))
	name := filepath.Join(dir, recording.TapeName)
	f, err := os.Create(name)
	must(t, err)
	w, err := tape.NewWriter(f, &tape.Header{Producer: recording.Producer, Argv: []string{"--task"}})
	must(t, err)
	store, err := cas.OpenDir(name+tape.StoreSuffix, nil)
	must(t, err)
	m := &maker{t: t, dir: dir, store: store, rec: tape.NewRecorder(w, nil), close: f.Close}
	return m
}

func (m *maker) record(k tape.Kind) {
	m.t.Helper()
	must(m.t, m.rec.Record(k))
	m.n++
}

func (m *maker) payload(s string) *tape.Payload {
	m.t.Helper()
	p, err := tape.MakePayload(m.store, []byte(s))
	must(m.t, err)
	return p
}

// turn records a call of a model: what was said before it, and the answer.
func (m *maker) turn(lane string, messages []string, answer string) {
	m.t.Helper()
	m.at++
	k := &tape.LLMCall{Provider: "anthropic", Endpoint: "messages", Model: "claude-sonnet-4-5", Usage: json.RawMessage(`{"input_tokens":1200,"output_tokens":80}`)}
	k.Method, k.URL, k.Lane, k.Arrival, k.Status = "POST", "https://api.anthropic.com/v1/messages", lane, m.at, 200
	k.RequestPayload = m.payload(`{"model":"claude-sonnet-4-5","max_tokens":4096,"system":"Be careful.","tools":[{"name":"bash","description":"Run a command.","input_schema":{"type":"object"}}],"messages":[` + strings.Join(messages, ",") + `]}`)
	k.Response = m.payload(answer)
	k.Stream = []tape.Chunk{{Offset: 0, Length: int64(len(answer) / 2), TMS: 40}, {Offset: int64(len(answer) / 2), Length: int64(len(answer) - len(answer)/2), TMS: 90}}
	m.record(k)
}

func user(text string) string {
	return fmt.Sprintf(`{"role":"user","content":%s}`, quoted(text))
}

func uses(id, command string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"I run it."},{"type":"tool_use","id":%q,"name":"bash","input":{"command":%s}}]}`, id, quoted(command))
}

func gives(id, text string) string {
	return fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, id, quoted(text))
}

func answer(message string) string {
	return strings.Replace(message, `{"role"`, `{"type":"message","id":"msg_1","stop_reason":"end_turn","usage":{"input_tokens":1200,"output_tokens":80},"role"`, 1)
}

func says(text string) string {
	return fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":%s}]}`, quoted(text))
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func (m *maker) spawn(id uint64, args []string, exit int, out string) {
	cwd := "."
	m.record(&tape.ProcessSpawn{Program: "/usr/bin/go", Args: args, Cwd: &cwd, ExitCode: exit, DurationMS: 120, Stdout: m.payload(out), Stderr: m.payload(""), SpawnID: id})
}

func (m *maker) write(path, before, now string, spawn uint64) {
	f := tape.File{Path: path, ContentHash: cas.Sum([]byte(now)), LenBytes: int64(len(now)), Content: m.payload(now), Mode: "0644", SpawnID: spawn}
	if before != "" {
		f.Before = m.payload(before)
	}
	m.record(&tape.FileWrite{File: f})
}

// finish ends the tape and writes recording.json.
func (m *maker) finish(argv []string, totals *recording.Totals) *recording.Recording {
	m.t.Helper()
	must(m.t, m.rec.Flush())
	must(m.t, m.close())
	man := recording.NewManifest(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	man.ID, man.State, man.Argv, man.Cwd, man.Records, man.Totals = strings.TrimSuffix(filepath.Base(m.dir), ".rec"), "finished", argv, "/home/dev/parser", m.n, totals
	man.Program.Path, man.Exit = "/usr/bin/agent", &recording.Exit{}
	man.Host = recording.Host{OS: "linux", Arch: "amd64", Kernel: "6.8"}
	man.Axes = map[string]recording.Axis{"network": {On: true, NotCovered: []string{"udp " + argv[len(argv)-1]}}, "files": {On: true}, "clock": {}}
	man.Masks = map[string]int{"uuid": 3}
	b, err := json.MarshalIndent(man, "", "  ")
	must(m.t, err)
	must(m.t, os.WriteFile(filepath.Join(m.dir, recording.ManifestName), b, 0o644))
	rec, err := recording.Open(m.dir)
	must(m.t, err)
	return rec
}

const parser = "package parser\n\nfunc split(s string) []string {\n\tfor i := 0; i <= len(s); i++ {\n\t}\n\treturn nil\n}\n"

// agent is a run of an agent that works with a text in all that it does.
func agent(t *testing.T, dir, text string, turns int) *recording.Recording {
	t.Helper()
	m := newMaker(t, dir)
	messages := []string{user("Fix the failing test. " + text)}
	for i := range turns {
		id := fmt.Sprintf("toolu_%d", i)
		m.turn("llm:1", messages, answer(uses(id, "go test ./... "+text)))
		m.spawn(uint64(i+1), []string{"test", "./...", text}, i%2, "--- FAIL: TestSplit\n"+text+"\n")
		m.write("parser.go", strings.Repeat("//\n", i)+parser, strings.Repeat("//\n", i+1)+strings.ReplaceAll(parser, "<=", "<"), uint64(i+1))
		messages = append(messages, uses(id, "go test ./... "+text), gives(id, "ok needle "+text))
	}
	m.turn("llm:1", messages, answer(says("Done. "+text+"\n\n```go\nfor i := 0; i < len(s); i++ {\n```\n")))
	m.write("docs/"+strings.Map(path, text)+".md", "", "# notes\n"+text, 1)
	m.write("long/"+strings.Repeat("n", 4000)+".txt", "", text, 0)
	m.record(&tape.HTTPExchange{Exchange: tape.Exchange{Method: "GET", URL: "https://example.com/" + text, Lane: "example.com", Arrival: 99, Status: 200,
		RequestHeaders: []tape.HeaderField{{Name: "x-text", Value: text}}, Response: m.payload(`{"text":` + quoted(text) + `}`)}})
	m.record(&tape.NetRefused{Addr: "10.0.0.1", Port: 53, Reason: text})
	m.record(&tape.ProcessSpawn{Program: "/usr/bin/agent", Args: []string{text}, ExitCode: 0, DurationMS: 4000, Stdout: m.payload(strings.Repeat("a long name ", 6000)), Stderr: m.payload("")})
	cost := 0.0421
	terminal(t, filepath.Join(dir, recording.TerminalName), text)
	return m.finish([]string{"agent", "--task", text}, &recording.Totals{Models: []string{"claude-sonnet-4-5"}, Turns: turns + 1, Tools: turns, Spawns: turns, Files: 3, InputTokens: 1200 * int64(turns+1), OutputTokens: 80, CostUSD: &cost})
}

// path keeps a text from being several names of a path.
func path(r rune) rune {
	if r == '/' || r == 0 {
		return '_'
	}
	return r
}

func terminal(t *testing.T, dir, text string) {
	var now time.Duration
	rec, err := cassette.Create(dir, &cassette.CreateOptions{Command: cassette.Command{Argv: []string{"agent"}}, ResolutionMS: 1, Clock: func() time.Duration { return now }})
	must(t, err)
	must(t, rec.Output([]byte("\x1b[1;32m$ agent\x1b[0m first\r\n"+strings.Map(letters, text)+"\r\n")))
	now = 2 * time.Second
	must(t, rec.Output([]byte("second line\r\n日本 ✓\r\n")))
	now = 3 * time.Second
	_, err = rec.Finish(&cassette.Final{Exit: &cassette.Exit{Exited: true}, DurationMS: 3000})
	must(t, err)
}

func letters(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}

// judge notes the verdict of a replay that differs.
func judge(rec *recording.Recording, text string) {
	seq, other := uint64(0), uint64(1)
	r := &fidelity.Report{Mode: "lane", RecordedRecords: 9, ReplayRecords: 9, Score: 0.8, Masked: map[string]int{"uuid": 3}, Notes: []string{text}, NotCovered: []string{"udp " + text},
		Divergences: []fidelity.Divergence{
			{Seq: &seq, ReplaySeq: &seq, Category: fidelity.LLMRequestDigest, Lane: "llm:1", Message: "the request differs " + text, Cause: "messages[0].content\n" + text, Recorded: "a " + text, Replay: "b " + text,
				Changes: []fidelity.Change{{Path: "messages[0].content", Op: "changed", Was: "was " + text, Now: "now " + text}}, Hint: "look at " + text},
			{Seq: &other, Category: fidelity.ProcessStdoutHash, Message: "stdout differs", Follows: "seq 0"},
		},
		Refused:     []fidelity.RequestRef{{Seq: &other, Method: "POST", URL: "https://api.anthropic.com/" + text, Cause: text}},
		MaskedPairs: []fidelity.MaskedPair{{Lane: "llm:1", Seq: &seq, Place: "messages[1].id", Mask: "uuid", Recorded: "toolu_1 " + text, Replay: "toolu_2", Records: 3}},
	}
	library.Judged(rec, library.Verdict{Status: "diverged", Summary: "2 divergences " + text}, library.Judgement{Report: r})
}

// long is a run of many records.
func long(t *testing.T, dir string, records int) *recording.Recording {
	t.Helper()
	m := newMaker(t, dir)
	out := m.payload(strings.Repeat("a line of output\n", 300))
	for i := range records {
		switch i % 10 {
		case 0:
			m.record(&tape.ProcessSpawn{Program: "/usr/bin/go", Args: []string{"test", fmt.Sprintf("./pkg%d", i%700)}, ExitCode: i / 10 % 40 / 39, DurationMS: int64(i % 300), Stdout: out, Stderr: m.payload(""), SpawnID: uint64(i + 1)})
		case 5:
			m.record(&tape.FileRead{File: tape.File{Path: fmt.Sprintf("src/file%d.go", i%900), ContentHash: cas.Sum([]byte("x")), LenBytes: 1, SpawnID: uint64(i - 4)}})
		default:
			m.record(&tape.ClockRead{Source: "wall", ValueMS: 1700000000000 + int64(i)})
		}
	}
	return m.finish([]string{"make", "test"}, nil)
}

// damage cuts a tape in the middle of a record.
func damage(t *testing.T, rec *recording.Recording) {
	info, err := os.Stat(rec.TapePath())
	must(t, err)
	must(t, os.Truncate(rec.TapePath(), info.Size()*2/3))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
