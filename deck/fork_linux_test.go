package deck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/fork"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func init() { programs["counter"] = playCounter }

const forkToken = "zq7Xw2Lk9Vb4Nm6Tr8Yp5Ds3"

// playCounter has a conversation of so many turns: it asks, tells what was answered to another host, runs a command and writes a file. What
// the file "task" says is its prompt.
func playCounter(args []string) int {
	n, _ := strconv.Atoi(args[0])
	task, _ := os.ReadFile("task")
	messages := []map[string]string{{"role": "user", "content": "count " + string(task)}}
	for i := range n {
		body, _ := json.Marshal(map[string]any{"model": "gpt-4o", "messages": messages})
		said, err := counted("http://llm.test/v1/chat/completions", string(body))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		messages = append(messages, map[string]string{"role": "assistant", "content": said}, map[string]string{"role": "user", "content": "next"})
		told, err := counted(fmt.Sprintf("http://told.test/%d", i), said)
		out, _ := exec.Command("echo", said).Output()
		os.WriteFile(fmt.Sprintf("said-%d", i), out, 0o644)
		fmt.Println(i+1, said, told, err)
	}
	return 0
}

// counted posts a body and returns what was answered: of a model what it said.
func counted(url, body string) (string, error) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+os.Getenv("COUNTER_TOKEN"))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	var answer struct {
		Choices []struct{ Message struct{ Content string } }
	}
	switch {
	case err != nil || res.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: %s %w", res.Status, b, err)
	case json.Unmarshal(b, &answer) != nil || len(answer.Choices) == 0:
		return string(b), nil
	}
	return answer.Choices[0].Message.Content, nil
}

// A counterModel says what its voice is and how often it was asked.
type counterModel struct {
	voice  atomic.Value // string
	asked  atomic.Int64
	wrong  atomic.Int64 // requests without the token
	status int          // 0 is 200
}

func (m *counterModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Header.Get("Authorization") != "Bearer "+forkToken {
		m.wrong.Add(1)
	}
	m.asked.Add(1)
	if m.status != 0 {
		w.WriteHeader(m.status)
		return
	}
	if !bytes.Contains(body, []byte("messages")) {
		fmt.Fprintf(w, "heard by %s", m.voice.Load())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"%s %d"}}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`,
		m.voice.Load(), bytes.Count(body, []byte(`"role"`))/2+1)
}

// forkBench is a recording of four turns, and the model that it was made with.
func forkBench(t *testing.T) (*bench, *deck.Result, *counterModel, string) {
	t.Helper()
	b := newBench(t)
	b.env = append(b.env, "COUNTER_TOKEN="+forkToken)
	m := new(counterModel)
	m.voice.Store("first")
	b.upstream("llm.test", m.ServeHTTP)
	b.upstream("told.test", m.ServeHTTP)
	res, out := b.record("counter", "4")
	if res.Exit.Code != 0 || m.wrong.Load() > 0 {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	m.voice.Store("second")
	m.asked.Store(0)
	return b, res, m, out
}

// fork forks rec at a turn.
func (b *bench) fork(rec *recording.Recording, turn int, o deck.ForkOptions, set ...string) (*deck.Forked, string) {
	b.t.Helper()
	var err error
	if o.Plan, err = fork.PlanOf(rec, fork.Place{Turn: turn}); err != nil {
		b.t.Fatal(err)
	}
	if o.Changes == nil {
		if o.Changes, err = o.Plan.Changes(nil, set); err != nil {
			b.t.Fatal(err)
		}
	}
	var out bytes.Buffer
	o.Env, o.ConfigDir, o.Stdout, o.Stderr = b.env, b.config, &out, &out
	made, err := deck.Fork(context.Background(), rec, &o)
	if err != nil {
		b.t.Fatal(err)
	}
	b.holds(made.Recording.Dir)
	return made, out.String()
}

// equal fails the test unless a fork came to its point as it was recorded.
func (b *bench) equal(made *deck.Forked) {
	b.t.Helper()
	if !made.Came || !made.Report.Faithful() || len(made.Report.NotCompared) > 0 {
		var text bytes.Buffer
		made.Report.WriteText(&text, nil)
		b.t.Fatalf("came %v:\n%s", made.Came, &text)
	}
}

// TestFork goes on live at the third turn: what came before is the tape's, and what follows another voice's, whose key is the caller's. The
// result replays with the endpoints gone, and is forked again.
func TestFork(t *testing.T) {
	t.Parallel()
	b, res, m, out := forkBench(t)
	made, forked := b.fork(res.Recording, 3, deck.ForkOptions{Live: true})
	b.equal(made)
	if m.asked.Load() != 4 || m.wrong.Load() > 0 {
		t.Errorf("%d requests went live, %d without the key; want two turns and two more", m.asked.Load(), m.wrong.Load())
	}
	lines, was := strings.Split(forked, "\n"), strings.Split(out, "\n")
	if len(lines) != len(was) || lines[0] != was[0] || lines[1] != was[1] || lines[2] != "3 second 3 heard by second <nil>" || lines[3] != "4 second 4 heard by second <nil>" {
		t.Errorf("the program printed\n%s", forked)
	}
	man := made.Recording.Manifest
	if man.Parent == nil || *man.Parent != res.Recording.Manifest.ID || man.ForkSeq == nil || man.Fork.Turn != 3 || man.Fork.Failed != "" || !man.Sealed {
		t.Errorf("its manifest says parent %v, %+v", man.Parent, man.Fork)
	}
	if turns := made.Turns; len(turns[0]) != 2 || len(turns[1]) != 2 || turns[0][0].Answer != "first 3" || turns[1][0].Answer != "second 3" || turns[1][1].InputTokens != 9 {
		t.Errorf("side by side: %+v", turns)
	}
	again, text := b.replay(made.Recording, nil)
	b.green(again)
	if text != forked {
		t.Errorf("replayed it printed\n%s", text)
	}
	m.voice.Store("third")
	second, text := b.fork(made.Recording, 4, deck.ForkOptions{Live: true})
	b.equal(second)
	if !strings.Contains(text, "3 second 3 heard by second <nil>\n4 third 4 heard by third <nil>\n") {
		t.Errorf("the fork of the fork printed\n%s", text)
	}
	again, _ = b.replay(second.Recording, nil)
	b.green(again)
}

// TestForkWithoutLive: a changed answer is given, and nothing leaves: what follows is the tape's where it fits, and else refused.
func TestForkWithoutLive(t *testing.T) {
	t.Parallel()
	b, res, m, _ := forkBench(t)
	made, out := b.fork(res.Recording, 4, deck.ForkOptions{}, "answer=other")
	b.equal(made)
	if !strings.Contains(out, "4 other  400 Bad Request") || made.Recording.Manifest.Fork.Failed == "" {
		t.Errorf("failed %q:\n%s", made.Recording.Manifest.Fork.Failed, out)
	}
	if m.asked.Load() != 0 {
		t.Errorf("%d requests went live:\n%s", m.asked.Load(), out)
	}
}

// TestForkDiverged: a program that asks for something else before the point asks nobody.
func TestForkDiverged(t *testing.T) {
	t.Parallel()
	b, res, m, _ := forkBench(t)
	if err := os.WriteFile(filepath.Join(b.dir, "task"), []byte("otherwise"), 0o644); err != nil {
		t.Fatal(err)
	}
	made, out := b.fork(res.Recording, 3, deck.ForkOptions{Live: true, TreeNow: true})
	if made.Came || made.Report.Faithful() || len(made.Report.Refused) == 0 {
		t.Errorf("it came to the point: %v\n%s", made.Came, out)
	}
	if m.asked.Load() != 0 {
		t.Errorf("%d requests went live", m.asked.Load())
	}
}

// TestForkFails: a model that refuses leaves a fork that says so.
func TestForkFails(t *testing.T) {
	t.Parallel()
	b, res, m, _ := forkBench(t)
	m.status = http.StatusUnauthorized
	made, _ := b.fork(res.Recording, 3, deck.ForkOptions{Live: true})
	b.equal(made)
	if f := made.Recording.Manifest.Fork; f.Failed != "turn 3: status 401" {
		t.Errorf("failed %q", f.Failed)
	}
	again, _ := b.replay(made.Recording, nil)
	b.green(again)
}

// BenchmarkForkPrefix forks at turn 40 of 50 a recording whose model took a second for each, and reports how many times as fast as it was
// recorded the run comes there.
func BenchmarkForkPrefix(b *testing.B) {
	if d := deck.Diagnose(); !d.Works {
		b.Skip("no jail here")
	}
	const turns, at, latency = 50, 40, time.Second
	m := new(counterModel)
	m.voice.Store("first")
	var pause atomic.Int64
	pause.Store(int64(latency))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "completions") {
			time.Sleep(time.Duration(pause.Load()))
		}
		m.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir, config := b.TempDir(), b.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.TempDir(), programVar + "=counter"}
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: []string{ownProgram(b), strconv.Itoa(turns)}, Env: env, Dir: dir, Tree: dir, ConfigDir: config,
		Upstreams: map[string]string{"llm.test": server.URL, "told.test": server.URL},
	})
	if err != nil {
		b.Fatal(err)
	}
	pause.Store(0) // what is live is not measured
	plan, err := fork.PlanOf(res.Recording, fork.Place{Turn: at})
	if err != nil {
		b.Fatal(err)
	}
	var took, recorded time.Duration
	for b.Loop() {
		made, err := deck.Fork(context.Background(), res.Recording, &deck.ForkOptions{Plan: plan, Live: true, Env: env, ConfigDir: config})
		if err != nil || !made.Came {
			b.Fatal(err, made)
		}
		took, recorded = took+made.Prefix, recorded+made.Recorded
	}
	b.ReportMetric(recorded.Seconds()/took.Seconds(), "times-as-fast")
}

// TestForkUnsealed: a fork that cannot be sealed is there all the same, with the error.
func TestForkUnsealed(t *testing.T) {
	t.Parallel()
	b, res, _, _ := forkBench(t)
	plan, err := fork.PlanOf(res.Recording, fork.Place{Turn: 3})
	if err != nil {
		t.Fatal(err)
	}
	gone := fmt.Sprintf("rm -r '%s' && echo >'%s'", b.config, b.config)
	made, err := deck.Fork(context.Background(), res.Recording, &deck.ForkOptions{Plan: plan, Live: true, Verify: gone, Env: b.env, ConfigDir: b.config})
	if err == nil || !strings.Contains(err.Error(), "not sealed") {
		t.Errorf("got %v", err)
	}
	if made == nil || made.Recording.Manifest.Sealed || len(made.Turns[1]) != 2 {
		t.Errorf("left is %+v", made)
	}
}
