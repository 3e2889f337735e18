//go:build unix

package mcp_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// A takenOver is a conversation that a server's program takes over. The test is the client and the program.
type takenOver struct {
	t        *testing.T
	tape     *memoryTape // of the run
	past     atomic.Bool
	client   side
	program  side
	told     []string
	finished chan error
}

// A side is what one of the two reads and writes.
type side struct {
	t   *testing.T
	in  *bufio.Reader
	out *os.File
}

func (s *side) say(line string) {
	s.t.Helper()
	if _, err := s.out.WriteString(line + "\n"); err != nil {
		s.t.Error(err)
	}
}

func (s *side) wants(lines ...string) {
	s.t.Helper()
	for _, want := range lines {
		if got, err := s.in.ReadString('\n'); strings.TrimSpace(got) != want {
			s.t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func newTakenOver(t *testing.T, scene ...string) *takenOver {
	t.Helper()
	k := &takenOver{t: t, tape: newMemoryTape(t), finished: make(chan error, 1)}
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close(); w.Close() })
		return r, w
	}
	clientIn, toServer := pipe()
	fromServer, clientOut := pipe()
	programIn, serverIn := pipe()
	serverOut, programOut := pipe()
	k.client = side{t, bufio.NewReader(fromServer), toServer}
	k.program = side{t, bufio.NewReader(programIn), programOut}
	served, why := recorded(t, scene...).book(nil).Spawn(opened().Program, opened().Args)
	if served == nil {
		t.Fatal(why)
	}
	o := opened()
	o.Recorded = served.Recorded()
	log := mcp.NewLog(k.tape.rec, nil, nil, nil).Begin(o)
	go func() {
		err := served.TakeOver(t.Context(), &mcp.TakeOverOptions{
			ServeOptions: mcp.ServeOptions{In: clientIn, Out: clientOut, Log: log}, ServerIn: serverIn, ServerOut: serverOut,
			Past: k.past.Load, Told: func(a *mcp.ToldAnswer) {
				now := a.Why
				if a.Now != nil {
					now = string(a.Now.Result)
				}
				k.told = append(k.told, fmt.Sprintf("%s: %s, %s", a.Asked.Method, a.Recorded.Result, now))
			},
		})
		clientOut.Close()
		k.finished <- err
	}()
	return k
}

// end waits for the end, and compares what was told.
func (k *takenOver) end(told ...string) {
	k.t.Helper()
	if err := <-k.finished; err != nil {
		k.t.Error(err)
	}
	if got, want := strings.Join(k.told, "\n"), strings.Join(told, "\n"); got != want {
		k.t.Errorf("told:\n%s\nwant:\n%s", got, want)
	}
}

const (
	takenCall   = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{"n":%d}}}`
	takenAnswer = `{"jsonrpc":"2.0","id":%v,"result":{"said":%q}}`
	takenAsk    = `{"jsonrpc":"2.0","id":%q,"method":"sampling/createMessage","params":{}}`
)

func call(n int) string                 { return fmt.Sprintf(takenCall, n, n) }
func answer(id any, text string) string { return fmt.Sprintf(takenAnswer, id, text) }
func question(id string) string         { return fmt.Sprintf(takenAsk, id) }

// TestTakeOver has the program know what the tape knows when it takes over, its own questions included, and the client hear it from there on.
func TestTakeOver(t *testing.T) {
	k := newTakenOver(t, "> "+call(1), "< "+question("a"), "> "+answer(`"a"`, "mine"), "< "+answer(1, "one"), "> "+call(2), "< "+answer(2, "two"))
	k.client.say(call(1))
	k.client.wants(question("a"))
	k.client.say(answer(`"a"`, "mine"))
	k.program.wants(call(1))
	k.program.say(question("other")) // later, and called otherwise
	k.program.wants(answer(`"other"`, "mine"))
	k.program.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`) // goes nowhere
	k.program.say(answer(1, "ONE"))
	k.client.wants(answer(1, "one"))
	k.past.Store(true)
	k.client.say(call(2))
	k.program.wants(call(2))
	k.program.say(question("a"))
	k.client.wants(question("a"))
	k.client.say(answer(`"a"`, "again"))
	k.program.wants(answer(`"a"`, "again"))
	k.program.say(answer(2, "live"))
	k.client.wants(answer(2, "live"))
	k.client.out.Close()
	k.program.wants("")
	k.program.out.Close()
	k.end(`tools/call: {"said":"one"}, {"said":"ONE"}`)
	if n := len(k.tape.records()); n != 5 { // mcp_open, two questions, two calls
		t.Errorf("%d records", n)
	}
}

// TestTakeOverGone: the tape answers for a program that has ended until the point, and nobody past it.
func TestTakeOverGone(t *testing.T) {
	k := newTakenOver(t, "> "+call(1), "< "+answer(1, "one"), "> "+call(2), "< "+answer(2, "two"))
	k.program.out.Close()
	k.client.say(call(1))
	k.client.wants(answer(1, "one"))
	k.past.Store(true)
	k.client.say(call(2))
	k.client.wants("")
	k.end(`tools/call: {"said":"one"}, the program has ended`)
}

// TestTakeOverLeft: of an answer that was under way at the point the program's own is not given too.
func TestTakeOverLeft(t *testing.T) {
	k := newTakenOver(t, "> "+call(1), "> "+call(2), "< "+answer(1, "one"), "< "+answer(2, "two"), `< {"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
	k.client.say(call(1))
	k.client.say(call(2))
	k.program.wants(call(1), call(2))
	k.past.Store(true)
	k.client.say(call(3))
	k.program.wants(call(3))
	for i := range 3 {
		k.program.say(answer(3-i, "now"))
	}
	got := make(map[string]bool)
	for range 3 {
		line, _ := k.client.in.ReadString('\n')
		got[strings.TrimSpace(line)] = true
	}
	for _, want := range []string{answer(1, "one"), answer(2, "two"), answer(3, "now")} {
		if !got[want] {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	k.program.out.Close()
	k.client.wants("")
	k.end(`tools/call: {"said":"one"}, {"said":"now"}`, `tools/call: {"said":"two"}, {"said":"now"}`)
}
