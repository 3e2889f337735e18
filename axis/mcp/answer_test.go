package mcp_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

const (
	initialize  = `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	initResult  = `< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"files","version":"1"}}}`
	initialized = `> {"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// said is a line of a scene without its side.
func said(line string) string { return line[2:] }

// as is a message with another id.
func as(id, line string) string {
	line = said(line)
	at := strings.Index(line, `"id":`) + 5
	end := at + strings.IndexAny(line[at:], ",}")
	return line[:at] + id + line[end:]
}

func callTool(id int, name, args string) string {
	return fmt.Sprintf(`> {"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

func result(id int, text string) string {
	return fmt.Sprintf(`< {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":%q}]}}`, id, text)
}

// spawned is the recorded server of opened.
func spawned(t testing.TB, b *mcp.Book) *mcp.Served {
	t.Helper()
	s, why := b.Spawn("server", []string{"--dir", "/data"})
	if s == nil {
		t.Fatalf("no such server: %s", why)
	}
	return s
}

func served(t *testing.T, lines ...string) (*mcp.Book, *client) {
	t.Helper()
	b := recorded(t, append([]string{initialize, initResult, initialized}, lines...)...).book(nil)
	return b, converse(t, spawned(t, b), mcp.ServeOptions{})
}

// opens says what every client begins with.
func (c *client) opens() {
	c.t.Helper()
	c.say(said(initialize))
	c.hears(said(initResult))
	c.say(said(initialized))
}

func TestAnswerHasTheIDOfThisRun(t *testing.T) {
	t.Parallel()
	_, c := served(t, callTool(2, "read", `{"path":"a"}`), result(2, "A"), callTool(3, "read", `{"path":"b"}`), result(3, "B"))
	c.opens()
	for _, id := range []string{`"x-1"`, `9007199254740993`} {
		name, want := `{"path":"a"}`, result(2, "A")
		if id != `"x-1"` {
			name, want = `{"path":"b"}`, result(3, "B")
		}
		c.say(as(id, callTool(0, "read", name)))
		c.hears(as(id, want))
	}
	if rest := c.end(); rest != "" || c.exit != 0 || c.err != nil {
		t.Errorf("heard %q at the end, exit %d, error %v", rest, c.exit, c.err)
	}
}

func TestAnswersComeInRecordedOrder(t *testing.T) {
	t.Parallel()
	_, c := served(t, callTool(2, "t", `{"n":2}`), callTool(3, "t", `{"n":3}`), callTool(4, "t", `{"n":4}`),
		result(4, "four"), result(2, "two"), result(3, "three"))
	c.opens()
	c.say(as("20", callTool(0, "t", `{"n":3}`)), as("21", callTool(0, "t", `{"n":4}`)), as("22", callTool(0, "t", `{"n":2}`)))
	c.hears(as("21", result(0, "four")), as("22", result(0, "two")), as("20", result(0, "three")))
}

func TestEqualCallsInRecordedOrder(t *testing.T) {
	t.Parallel()
	b, c := served(t, callTool(2, "now", `{}`), result(2, "first"), callTool(3, "now", `{}`), result(3, "second"))
	c.opens()
	c.say(as("7", callTool(0, "now", `{}`)))
	c.hears(as("7", result(0, "first")))
	c.say(as("7", callTool(0, "now", `{}`)))
	c.hears(as("7", result(0, "second")))
	c.say(as("8", callTool(0, "now", `{}`)))
	if got := <-c.lines; !strings.Contains(got, `"id":8`) || !strings.Contains(got, "recorded 2 times") {
		t.Errorf("the third of two was answered %s", got)
	}
	if n := len(b.Unasked()); n != 0 {
		t.Errorf("%d requests unasked, want none", n)
	}
}

func TestUnknownCallNamesTheNearest(t *testing.T) {
	t.Parallel()
	b, c := served(t, callTool(2, "write", `{"path":"a"}`), result(2, "A"), callTool(3, "read", `{"path":"a","deep":{"n":[1,2]}}`), result(3, "B"))
	c.opens()
	c.say(as("5", callTool(0, "read", `{"path":"b","deep":{"n":[1,2]}}`)))
	got := <-c.lines
	for _, want := range []string{`"id":5`, `"error"`, "tools/call read", "arguments.path", `\"a\" -> \"b\"`} {
		if !strings.Contains(got, want) {
			t.Errorf("the error is %swant %s in it", got, want)
		}
	}
	refused := b.Refused()
	if len(refused) != 1 || refused[0].Server != "files" || refused[0].Method != "tools/call" {
		t.Errorf("refused is %+v", refused)
	}
	if n := len(b.Unasked()); n != 2 {
		t.Errorf("%d requests unasked, want 2", n)
	}
}

func TestRefusalIsOnTheTape(t *testing.T) {
	t.Parallel()
	m := recorded(t, initialize, initResult, initialized, callTool(2, "read", `{"path":"a"}`), result(2, "A"))
	b := m.book(nil)
	again := newMemoryTape(t)
	s := spawned(t, b)
	log := mcp.NewLog(again.rec, nil, nil, nil).Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "server", Recorded: s.Recorded()})
	c := converse(t, s, mcp.ServeOptions{Log: log})
	c.opens()
	c.say(as("5", callTool(0, "read", `{"path":"b"}`)))
	<-c.lines
	c.end()
	var got *tape.MCPJSONRPC
	for _, r := range again.records() {
		if k, ok := r.Kind.(*tape.MCPJSONRPC); ok && k.Method == "tools/call" {
			got = k
		}
	}
	if got == nil || !strings.HasPrefix(got.Error, "not on the tape: ") || got.Server != "files" {
		t.Errorf("the refused request is on the tape as %+v", got)
	}
}

func TestProgressTakesTheTokenOfThisRun(t *testing.T) {
	t.Parallel()
	_, c := served(t,
		`> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":2}}}`,
		`> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slower","_meta":{"progressToken":"two"}}}`,
		`< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"two","progress":1}}`,
		`< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`,
		result(3, "B"), result(2, "A"))
	c.opens()
	c.say(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"slower","_meta":{"progressToken":{"odd":1}}}}`)
	c.say(`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"slow"}}`) // wants no progress
	c.hears(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{"odd":1},"progress":1}}`,
		as("9", result(0, "B")), as("8", result(0, "A")))
}

func TestSubscriptionTakesTheIDOfThisRun(t *testing.T) {
	t.Parallel()
	const ack = `< {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2}}}`
	_, c := served(t, `> {"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{}}}`, ack)
	c.opens()
	c.say(`{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{}}}`)
	c.hears(strings.Replace(said(ack), "Id\":2", "Id\":\"s\"", 1))
}

func TestServerAsksAtItsPlace(t *testing.T) {
	t.Parallel()
	const ask, reply = `< {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":5}}`, `> {"jsonrpc":"2.0","id":1,"result":{"role":"assistant"}}`
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, callTool(2, "ask", `{}`), ask, reply, result(2, "done"))
		c.opens()
		c.say(as("7", callTool(0, "ask", `{}`)))
		c.hears(said(ask))
		synctest.Wait()
		c.hearsNothing()
		c.say(said(reply))
		c.hears(as("7", result(0, "done")))
		c.end()
	})
}

// A line of the client that does not come holds the server's up for as long as it took and two seconds, once.
func TestLineThatDoesNotComeIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, c := served(t, callTool(2, "a", `{}`), "~ 3s", callTool(3, "b", `{}`), callTool(4, "c", `{}`), "~ 1s",
			result(2, "A"), result(3, "B"), result(4, "C"), callTool(5, "d", `{}`), result(5, "D"))
		c.opens()
		start := time.Now()
		c.say(as("2", callTool(0, "a", `{}`)))
		synctest.Wait()
		c.hearsNothing()
		c.hears(as("2", result(0, "A")))
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the answer came after %v, want 5s: as long as it took and two seconds", took)
		}
		start = time.Now()
		c.say(as("5", callTool(0, "d", `{}`)))
		c.hears(as("5", result(0, "D")))
		c.say(as("3", callTool(0, "b", `{}`))) // later than it was
		c.hears(as("3", result(0, "B")))
		if took := time.Since(start); took != 0 {
			t.Errorf("what was given up held up another answer for %v", took)
		}
		if un := b.Unasked(); len(un) != 1 {
			t.Errorf("unasked is %v, want the call of c", un)
		}
		c.end()
	})
}

// Many lines that do not come hold one answer up once, not once each.
func TestManyLinesThatDoNotCome(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 100 {
		lines = append(lines, callTool(i+2, "t", fmt.Sprintf(`{"n":%d}`, i)), "~ 10ms", result(i+2, "x"))
	}
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, lines...)
		c.opens()
		start := time.Now()
		c.say(as("5", callTool(0, "t", `{"n":99}`)))
		c.hears(as("5", result(0, "x")))
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("the answer came after %v, want at most 3s", took)
		}
		c.end()
	})
}

func TestUnaskedNotificationWaitsForItsPlace(t *testing.T) {
	t.Parallel()
	const note = `< {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, callTool(2, "a", `{}`), result(2, "A"), "~ 5s", callTool(3, "b", `{}`), note, result(3, "B"), "~ 1s", note)
		c.opens()
		c.say(as("2", callTool(0, "a", `{}`)))
		c.hears(as("2", result(0, "A")))
		time.Sleep(20 * time.Second) // a slow program
		c.hearsNothing()
		c.say(as("3", callTool(0, "b", `{}`)))
		c.hears(said(note), as("3", result(0, "B")), said(note))
		c.end()
	})
}

func TestCutCallGetsNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, callTool(2, "slow", `{}`), `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
			callTool(3, "a", `{}`), result(3, "A"))
		c.opens()
		c.say(as("8", callTool(0, "slow", `{}`)), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
		c.say(as("9", callTool(0, "a", `{}`)))
		c.hears(as("9", result(0, "A")))
		if rest := c.end(); rest != "" {
			t.Errorf("heard %q", rest)
		}
	})
}

func TestServerThatDiedInAnAnswer(t *testing.T) {
	t.Parallel()
	_, c := served(t, callTool(2, "a", `{}`), `half {"jsonrpc":"2.0","id":2,"res`, "! panic: boom", "= 123")
	c.opens()
	c.say(as("2", callTool(0, "a", `{}`)))
	var heard string
	for l := range c.lines {
		heard += l
	}
	<-c.done
	if heard != `{"jsonrpc":"2.0","id":2,"res` || c.exit != 3 || c.err != nil {
		t.Errorf("heard %q, exit %d, error %v", heard, c.exit, c.err)
	}
	if got := c.errs.String(); got != "panic: boom\n" {
		t.Errorf("stderr has %q", got)
	}
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// A client that kills its server as soon as it has its answer reads what that had written to its stderr before.
func TestServerThatIsKilledBehindItsLogs(t *testing.T) {
	t.Parallel()
	s := spawned(t, recorded(t, callTool(2, "a", `{}`), result(2, "A"), "! working", "! done", callTool(3, "b", `{}`), "! never asked for", "terminated").book(nil))
	ctx, kill := context.WithCancel(t.Context())
	in, client := io.Pipe()
	var errs syncBuffer
	o := mcp.ServeOptions{In: in, Err: &errs, Out: writerFunc(func(b []byte) (int, error) {
		kill()
		return len(b), nil
	})}
	go io.WriteString(client, said(callTool(2, "a", `{}`))+"\n")
	if _, err := s.Serve(ctx, &o); err != nil || errs.String() != "working\ndone\n" {
		t.Errorf("stderr has %q, %v", errs.String(), err)
	}
}

func TestServerThatWroteLogs(t *testing.T) {
	t.Parallel()
	_, c := served(t, "< starting …", callTool(2, "a", `{}`), "! to stderr", "< [info] reading", result(2, "A"))
	c.opens()
	c.hears("starting …")
	c.say(as("2", callTool(0, "a", `{}`)))
	c.hears("[info] reading", as("2", result(0, "A")))
	c.end()
	if got := c.errs.String(); got != "to stderr\n" {
		t.Errorf("stderr has %q", got)
	}
}

func TestPingAsOftenAsItComes(t *testing.T) {
	t.Parallel()
	b, c := served(t, `> {"jsonrpc":"2.0","id":2,"method":"ping"}`, `< {"jsonrpc":"2.0","id":2,"result":{"at":1}}`)
	c.opens()
	c.say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`, `{"jsonrpc":"2.0","id":"q","method":"ping"}`)
	c.hears(`{"jsonrpc":"2.0","id":"p","result":{"at":1}}`, `{"jsonrpc":"2.0","id":"q","result":{}}`)
	if un := b.Unasked(); len(un) != 0 {
		t.Errorf("unasked is %v", un)
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	one, two := said(callTool(2, "a", `{}`)), said(callTool(3, "b", `{}`))
	r1, r2 := said(result(2, "A")), said(result(3, "B"))
	_, c := served(t, "> ["+one+","+two+"]", "< ["+r2+","+r1+"]")
	c.opens()
	c.say("[" + one + "," + two + "]")
	c.hears("[" + r2 + "," + r1 + "]")
}

// A batch of which one call is not on the tape: that one is refused, the other is answered.
func TestBatchInPart(t *testing.T) {
	t.Parallel()
	one, two := said(callTool(2, "a", `{}`)), said(callTool(3, "b", `{}`))
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, "> ["+one+","+two+"]", "< ["+said(result(3, "B"))+","+said(result(2, "A"))+"]")
		c.opens()
		c.say("[" + one + "," + said(callTool(3, "b", `{"x":1}`)) + "]")
		if got := <-c.lines; !strings.Contains(got, `"id":3,"error"`) {
			t.Errorf("heard %s", got)
		}
		c.hears("[" + said(result(2, "A")) + "]")
		c.say(two)
		c.hears("[" + said(result(3, "B")) + "]")
		c.end()
	})
}

func TestClientThatStopsEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, c := served(t, callTool(2, "a", `{}`), callTool(3, "b", `{}`), result(2, "A"), result(3, "B"), callTool(4, "c", `{}`), result(4, "C"))
		c.opens()
		c.say(as("2", callTool(0, "a", `{}`)))
		start := time.Now()
		if rest := c.end(); rest != as("2", result(0, "A"))+"\n" {
			t.Errorf("heard %q", rest)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the end took %v", took)
		}
		if n := len(b.Unasked()); n != 2 {
			t.Errorf("%d unasked, want 2", n)
		}
	})
}

func TestRealTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := recorded(t, initialize, initResult, initialized, callTool(2, "a", `{}`), "~ 4s", result(2, "A")).book(nil)
		c := converse(t, spawned(t, b), mcp.ServeOptions{Speed: 2})
		c.opens()
		start := time.Now()
		c.say(as("2", callTool(0, "a", `{}`)))
		c.hears(as("2", result(0, "A")))
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the answer took %v at twice the speed, want 2s", took)
		}
		c.end()
	})
}

func TestSpawn(t *testing.T) {
	t.Parallel()
	m := newMemoryTape(t)
	log := mcp.NewLog(m.rec, nil, nil, nil)
	for _, dir := range []string{"/a", "/b", "/a"} {
		m.scene(log, &mcp.Opened{Transport: mcp.Stdio, Program: "/opt/bin/server", Args: []string{dir}}, initialize, initResult)
	}
	b := m.book(nil)
	var got []string
	for _, dir := range []string{"/a", "/b", "/a", "/a", "/c"} {
		s, why := b.Spawn("server", []string{dir})
		if s != nil {
			why = s.Recorded().Server
		}
		got = append(got, why)
	}
	want := []string{"files", "files#2", "files#3"}
	for i, w := range want {
		if got[i] != w {
			t.Errorf("spawn %d is %q, want %q", i, got[i], w)
		}
	}
	if !strings.Contains(got[3], "recorded 2 times") || !strings.Contains(got[4], "`/opt/bin/server /a`") {
		t.Errorf("not recorded: %q, %q", got[3], got[4])
	}
	if s, why := b.Spawn("other", nil); s != nil || !strings.Contains(why, "the tape holds `/opt/bin/server /a`") {
		t.Errorf("another program: %v %q", s, why)
	}
}

func TestUnknownServerIsRefused(t *testing.T) {
	t.Parallel()
	b := recorded(t, initialize, initResult).book(nil)
	answer := string(b.Refusal("/bin/other", []string{"--x", "/dir"}, "the tape holds `server`").Line([]byte(as(`"i"`, initialize) + "\n")))
	if !strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":"i","error":{"code":-32000,"message":"not on the tape: initialize; the tape holds`) || !strings.HasSuffix(answer, "}\n") {
		t.Errorf("the answer is %q", answer)
	}
	if r := b.Refused(); len(r) != 1 || r[0].Server != "other /dir" {
		t.Errorf("refused is %+v", r)
	}
}

// An answer that came after the client had cancelled its request comes then again, and not before.
func TestAnswerAfterItsCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := served(t, callTool(2, "slow", `{}`), "~ 1s", `> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
			result(2, "too late"), callTool(3, "a", `{}`), result(3, "A"))
		c.opens()
		c.say(as("8", callTool(0, "slow", `{}`)))
		time.Sleep(time.Minute)
		c.hearsNothing()
		c.say(as("9", callTool(0, "a", `{}`)))
		c.hears(as("9", result(0, "A")))
		c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
		c.hears(as("8", result(0, "too late")))
		c.end()
	})
}
