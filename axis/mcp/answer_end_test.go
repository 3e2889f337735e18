package mcp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A server that ended by itself while nobody waited for it ends so again; one whose client ended does not before that does.
func TestWhoEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, callTool(2, "a", `{}`), result(2, "A"), "= 12345")
		c.opens()
		c.say(as("2", callTool(0, "a", `{}`)))
		c.hears(as("2", result(0, "A")))
		<-c.done
		if c.exit != 5 {
			t.Errorf("exit status %d, want 5", c.exit)
		}
		_, c = served(t, callTool(2, "a", `{}`), result(2, "A"))
		c.opens()
		c.say(as("2", callTool(0, "a", `{}`)))
		c.hears(as("2", result(0, "A")))
		time.Sleep(time.Hour)
		select {
		case <-c.done:
			t.Error("the server ended though its client had ended it")
		default:
		}
		c.end()
	})
}

// A server ends when what it may have ended for has come again, however little an answer to it was waited for.
func TestEndWaitsForWhatWasTold(t *testing.T) {
	t.Parallel()
	exit, progress := `{"jsonrpc":"2.0","method":"notifications/exit"}`, `{"jsonrpc":"2.0","method":"notifications/progress"}`
	for name, scene := range map[string][]string{
		"a notification":         {"> " + exit, "= 1"},
		"the second of its kind": {"> " + exit, "> " + exit, "= 1"},
		"behind another":         {"> " + progress, "> " + exit, "= 1"},
		"no JSON":                {"> quit", "! what is that?", "= 1"},
		"two lines":              {"> quit", "> now", "= 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := served(t, scene...)
				c.opens()
				for _, line := range scene {
					text, ok := strings.CutPrefix(line, "> ")
					if !ok {
						continue
					}
					time.Sleep(20 * time.Second) // what it says then is given out by itself after 30
					select {
					case <-c.done:
						t.Fatalf("the server ended before %s", text)
					default:
					}
					c.say(text)
				}
				<-c.done
			})
		})
	}
}

// A client that waits for an answer and then ends the server comes first again.
func TestEndComesAfterTheClientsPatience(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		scene       []string
		least, most time.Duration
	}{
		"killed":                 {[]string{callTool(2, "a", `{}`), "~ 5s", "killed"}, 6 * time.Second, 8 * time.Second},
		"killed at once":         {[]string{callTool(2, "a", `{}`), "killed"}, time.Second, 3 * time.Second},
		"ended when told to":     {[]string{callTool(2, "a", `{}`), "~ 5s", "= 1"}, 6 * time.Second, 8 * time.Second},
		"died of the question":   {[]string{callTool(2, "a", `{}`), "~ 20ms", "= 1"}, 20 * time.Millisecond, 50 * time.Millisecond},
		"ended when it was idle": {[]string{callTool(2, "a", `{}`), result(2, "A"), "~ 5s", "= 1"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := served(t, tt.scene...)
				c.opens()
				start := time.Now()
				c.say(as("2", callTool(0, "a", `{}`)))
				<-c.done
				if took := time.Since(start); took < tt.least || took > tt.most {
					t.Errorf("the server ended after %v, want %v to %v", took, tt.least, tt.most)
				}
			})
		})
	}
}

// A server that went on when its client had closed its stdin, until it was sent a signal, does so again.
func TestEndWaitsForItsSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, callTool(2, "a", `{}`), result(2, "A"), "~ 5s", "terminated")
		c.opens()
		c.say(as("2", callTool(0, "a", `{}`)))
		c.hears(as("2", result(0, "A")))
		start := time.Now()
		c.end()
		if took := time.Since(start); took < 6*time.Second || took > 8*time.Second {
			t.Errorf("the server ended %v after its stdin, want the five seconds and two for the signal", took)
		}
	})
}

// Several lines that are JSON together were no message, and are none.
func TestMessageOverSeveralLines(t *testing.T) {
	t.Parallel()
	m := recorded(t, initialize, initResult, initialized, callTool(2, "a", `{}`), "< {", `< "jsonrpc":"2.0","id":2,"result":{}`, "< }")
	replay := newMemoryTape(t)
	log := mcp.NewLog(replay.rec, nil, nil, nil).Begin(opened())
	c := converse(t, spawned(t, m.book(nil)), mcp.ServeOptions{Log: log})
	c.opens()
	c.say(as("2", callTool(0, "a", `{}`)))
	c.hears("{", `"jsonrpc":"2.0","id":2,"result":{}`, "}")
	c.end()
	if err := log.End(mcp.Ended{By: mcp.Client, Exited: true}); err != nil {
		t.Fatal(err)
	}
	texts := 0
	for _, r := range replay.records() {
		if k, ok := r.Kind.(*tape.MCPText); ok && k.Payload.Text == "{\n"+`"jsonrpc":"2.0","id":2,"result":{}`+"\n}\n" {
			texts++
		}
	}
	if texts != 1 {
		t.Errorf("the replay's tape has it %d times as text, want once", texts)
	}
}

// What a server had written before its client's next line stands before that on a replay's tape too, however quick the client is: else
// two texts would be one.
func TestTextStandsBeforeTheNextLine(t *testing.T) {
	t.Parallel()
	m := recorded(t, initialize, initResult, "< one", callTool(2, "a", `{}`), "< two", result(2, "A"))
	for range 50 {
		synctest.Test(t, func(t *testing.T) { // in which a machine that stalls takes no time
			replay := newMemoryTape(t)
			log := mcp.NewLog(replay.rec, nil, nil, nil).Begin(opened())
			c := converse(t, spawned(t, m.book(nil)), mcp.ServeOptions{Log: log})
			c.say(said(initialize))
			c.hears(said(initResult))
			c.say(as("2", callTool(0, "a", `{}`)))
			c.hears("one", "two", as("2", result(0, "A")))
			c.end()
			if err := log.End(mcp.Ended{By: mcp.Client, Exited: true}); err != nil {
				t.Fatal(err)
			}
			var texts []string
			for _, r := range replay.records() {
				if k, ok := r.Kind.(*tape.MCPText); ok {
					texts = append(texts, k.Payload.Text)
				}
			}
			if !slices.Equal(texts, []string{"one\n", "two\n"}) {
				t.Fatalf("the replay's tape has %q", texts)
			}
		})
	}
}

// TestAfterTheRecorderFailed: whoever has a conversation take something is told that nothing is recorded any more.
func TestAfterTheRecorderFailed(t *testing.T) {
	m, full := newMemoryTape(t), errors.New("the disk is full")
	c := mcp.NewLog(m.rec, nil, nil, nil).Begin(opened())
	m.rec.Fail(full)
	for what, err := range map[string]error{
		"a line":  c.Line(mcp.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), 0),
		"a text":  c.Text(mcp.Server, []byte("log\n")),
		"the end": c.Cut(mcp.Client, []byte("1"), "gone"),
	} {
		if !errors.Is(err, full) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
