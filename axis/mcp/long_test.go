package mcp_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A long result passes and is kept, with what is secret in it taken out: 4 MB, or, where TAPEDECK_LONG is set, 20 MB.
func TestLongResult(t *testing.T) {
	t.Parallel()
	r := newRig(t, "API_TOKEN="+member)
	p := newPlug(t, r)
	p.write(p.toServer, askInit+"\n")
	p.read(p.in, askInit+"\n")
	p.write(p.out, ansInit+"\n")
	p.read(p.fromServer, ansInit+"\n")
	p.write(p.toServer, `{"jsonrpc":"2.0","id":1,"method":"resources/read"}`+"\n")
	n := 200_000
	if os.Getenv("TAPEDECK_LONG") != "" {
		n = 1_000_000
	}
	long := `{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat("hälf a line of text, ", n) + member + `"}}`
	go func() { _, _ = io.WriteString(p.out, long+"\n") }()
	began := time.Now()
	line, err := p.fromServer.ReadString('\n')
	if err != nil || line != long+"\n" {
		t.Fatalf("%d bytes passed of %d, %v", len(line), len(long)+1, err)
	}
	t.Logf("%d MB took %v", len(long)>>20, time.Since(began))
	all := r.records()
	k := all[len(all)-1].(*tape.MCPJSONRPC)
	want := strings.Replace(long, member, r.scrub.String(member), 1)
	if got := r.text(k.Response); got != want {
		t.Errorf("%d bytes are kept, want %d", len(got), len(want))
	}
}

// A line that is too long passes; what follows is recorded, and the end of the conversation says what is missing.
func TestLineIsTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := mcp.NewFed(r.log, nil)
	f.SetLimit(300)
	give := func(from mcp.Side, text string) {
		t.Helper()
		pass, err := f.From(from, []byte(text))
		if err != nil || string(pass) != text {
			t.Fatalf("%d bytes of %d pass, %v", len(pass), len(text), err)
		}
	}
	give(mcp.Client, askInit+"\n")
	give(mcp.Server, ansInit+"\n")
	give(mcp.Client, `{"jsonrpc":"2.0","id":1,"method":"a"}`+"\n")
	give(mcp.Server, strings.Repeat("x", 200))
	give(mcp.Server, strings.Repeat("x", 200))
	give(mcp.Server, "x\n"+`{"jsonrpc":"2.0","id":1,"result":{}}`+"\n")
	if err := f.Conversation().End(mcp.Ended{By: mcp.Client, Exited: true}); err != nil {
		t.Fatal(err)
	}
	said := r.said()
	for _, want := range []string{
		`files client a 3-5 `, "close files 5 0  line 4, of 402 bytes from the server, is too long to be kept",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the tape says\n%s\nwithout %s", said, want)
		}
	}
	if lost := r.log.Lost(); len(lost) != 1 || !strings.Contains(lost[0], "line 4") {
		t.Errorf("lost is %q", lost)
	}
}

// A call whose answer was too long to be kept is an error on a replay, at once; the calls beside it are answered.
func TestAnswerIsTooLong(t *testing.T) {
	t.Parallel()
	m := newMemoryTape(t)
	f := mcp.NewFed(mcp.NewLog(m.rec, nil, nil, nil), nil)
	f.SetLimit(300)
	calls := []string{`{"jsonrpc":"2.0","id":1,"method":"a"}`, `{"jsonrpc":"2.0","id":2,"method":"b"}`}
	for _, l := range []string{">" + askInit, "<" + ansInit, ">" + calls[0], ">" + calls[1], "<" + strings.Repeat("x", 400), `<{"jsonrpc":"2.0","id":2,"result":{}}`} {
		from := mcp.Client
		if l[0] == '<' {
			from = mcp.Server
		}
		if _, err := f.From(from, []byte(l[1:]+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Conversation().End(mcp.Ended{By: mcp.Client, Exited: true}); err != nil {
		t.Fatal(err)
	}
	b := m.book(nil)
	c := converse(t, b.Conversation(b.Servers()[0].Conversation), mcp.ServeOptions{})
	c.say(askInit)
	c.hears(ansInit)
	c.say(calls[0])
	if got := <-c.lines; !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, "the answer was too long to be kept") {
		t.Errorf("heard %s", got)
	}
	c.say(calls[1])
	c.hears(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	if refused := b.Refused(); len(refused) != 1 || refused[0].Method != "a" {
		t.Errorf("refused %+v", refused)
	}
}

// What comes before it is decided is kept up to a bound, and what is not is told of.
func TestMuchBeforeTheFirstLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := mcp.NewFed(r.log, nil)
	for i := range 4000 {
		if _, err := f.From(mcp.Server, fmt.Appendf(nil, "line %d\n%0100d\n", i, i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.From(mcp.Client, []byte(askInit+"\n")); err != nil {
		t.Fatal(err)
	}
	if err := f.Conversation().End(mcp.Ended{}); err != nil {
		t.Fatal(err)
	}
	if said := r.said(); !strings.Contains(said, `line 1\n`) || !strings.Contains(said, "bytes that the server wrote before the client's first line are not kept") {
		t.Errorf("the tape says %s", said[len(said)-300:])
	}
}

// Records that wait for the server's name are bounded: one that never tells it is called by its program.
func TestServerNeverTellsItsName(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "/bin/npx", Args: []string{"-y", "a-server"}})
	say(t, c, askInit)
	for i := 0; c.Server() == ""; i++ {
		say(t, c, "<"+inited)
		if i > 1000 {
			t.Fatal("records wait for ever")
		}
	}
	if c.Server() != "npx a-server" {
		t.Errorf("the server is called %q", c.Server())
	}
}

// The second conversation with a server of a name has a name of its own, and numbers go on behind those of the tape that is replayed.
func TestNames(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, nil, &mcp.LogOptions{Taken: 7})
	for i, want := range []string{"files", "files#2", "files#3"} {
		c := r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "p"})
		say(t, c, askInit, "<"+ansInit)
		if c.Server() != want || c.Number() != uint64(8+i) {
			t.Errorf("conversation %d with %q, want %q", c.Number(), c.Server(), want)
		}
	}
	c := r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Recorded: &mcp.Recorded{Server: "old#2", Conversation: 3}})
	say(t, c, inited)
	if c.Server() != "old#2" || c.Number() != 3 {
		t.Errorf("conversation %d with %q", c.Number(), c.Server())
	}
	http := r.log.Begin(&mcp.Opened{Transport: mcp.HTTP, URL: "https://h.example/mcp?key=1"})
	if err := http.Line(mcp.Client, []byte(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`), 5); err != nil {
		t.Fatal(err)
	}
	if err := http.Line(mcp.Server, []byte(`{"jsonrpc":"2.0","id":"a","result":{}}`), 6); err != nil {
		t.Fatal(err)
	}
	all := r.records()
	if k, ok := all[len(all)-1].(*tape.MCPJSONRPC); !ok || k.Server != "https://h.example/mcp" || k.Exchange != 5 || k.AnswerExchange != 6 || k.Transport != "http" {
		t.Errorf("the tape says %+v", all[len(all)-1])
	}
}

// A version without initialize tells the server's name in _meta; a failed server/discover waits for what follows.
func TestNameWithoutInitialize(t *testing.T) {
	t.Parallel()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	info := `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern"}}`
	r := newRig(t)
	c := r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "p"})
	say(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+meta+`}}`, `<{"jsonrpc":"2.0","id":1,"result":{`+info+`,"tools":[]}}`)
	if open, ok := r.records()[0].(*tape.MCPOpen); !ok || open.Server != "modern" || open.Protocol != "2026-07-28" {
		t.Errorf("the tape says\n%s", r.said())
	}
	c = r.log.Begin(&mcp.Opened{Transport: mcp.Stdio, Program: "p"})
	say(t, c, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+meta+`}}`, `<{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`)
	if c.Server() != "" {
		t.Errorf("the server is called %q before it was asked", c.Server())
	}
	say(t, c, askInit, "<"+ansInit)
	if c.Server() != "files" || !bytes.Contains([]byte(r.said()), []byte("files client server/discover 1-2")) {
		t.Errorf("the tape says\n%s", r.said())
	}
}

// What opens a conversation, and what does not.
func TestOpens(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		askInit: true, "[" + askInit + "]": true, " " + askInit + "\r\n": true,
		`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":"9999-99-99"}}`:                                 true,
		`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"capabilities":{},"clientInfo":{}}}`:                              true,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`:                                                                        true,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`: true,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`:                      true, // of ACP
		`{"id":0,"method":"initialize","params":{"clientInfo":{},"capabilities":{}}}`:                                                false,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":1,"capabilities":{}}}`:                                  false, // of language servers
		`{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`:                                          false,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:                                                                             false, "Content-Length: 10": false, "": false, "[]": false, ansInit: false,
	} {
		if got := mcp.Opens([]byte(line)); got != want {
			t.Errorf("%s opens: %v", line, got)
		}
	}
}

// A client that opens a conversation on a replay which may not is answered, and its server gets nothing; another program gets everything.
func TestRefuse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	book := recorded(t, initialize, initResult).book(nil)
	refuse := book.Refusal("/bin/server", nil, "why")
	f := mcp.NewFed(r.log, refuse)
	for _, text := range []string{"\n", askInit[:9], askInit[9:], "\n" + inited + "\n"} {
		if pass, err := f.From(mcp.Client, []byte(text)); err != nil || len(pass) > 0 {
			t.Errorf("%q passed, %v", pass, err)
		}
	}
	if pass, _ := f.From(mcp.Server, []byte("x")); len(pass) > 0 || len(book.Refused()) != 1 {
		t.Errorf("%q passed, %+v was refused", pass, book.Refused())
	}
	if err := f.Conversation().End(mcp.Ended{}); err != nil {
		t.Fatal(err)
	}
	all := r.records()
	if k, ok := all[1].(*tape.MCPJSONRPC); len(all) != 4 || !ok || k.Error != mcp.RefusedAs+"why" || !strings.Contains(k.Response.Text, "not on the tape: initialize; why") {
		t.Errorf("on the tape stands %+v", all)
	}
	f = mcp.NewFed(r.log, refuse)
	var passed []byte
	for _, text := range []string{" \n", "{", `"a":1}`, "\n{}"} {
		pass, err := f.From(mcp.Client, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		passed = append(passed, pass...)
	}
	if string(passed) != " \n{\"a\":1}\n{}" {
		t.Errorf("%q passed", passed)
	}
	f = mcp.NewFed(r.log, refuse) // an agent that is on no tape runs
	const agent = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n"
	if pass, err := f.From(mcp.Client, []byte(agent)); string(pass) != agent || err != nil {
		t.Errorf("of an agent %q passed, %v", pass, err)
	}
	f = mcp.NewFed(r.log, refuse)
	if pass, _ := f.From(mcp.Client, []byte("{\"a\"")); len(pass) > 0 {
		t.Errorf("%q passed", pass)
	}
	if pass, _ := f.End(mcp.Client); string(pass) != "{\"a\"" {
		t.Errorf("%q passed at the end", pass)
	}
}

// TestBlankLinesWithoutEnd are not held for ever by a replay that waits for what a client's first line says.
func TestBlankLinesWithoutEnd(t *testing.T) {
	t.Parallel()
	f := mcp.NewFed(newRig(t).log, new(mcp.Refusal))
	sent, passed := 0, 0
	for range 32 {
		b, err := f.From(mcp.Client, bytes.Repeat([]byte("\n"), 1<<16))
		if err != nil {
			t.Fatal(err)
		}
		sent, passed = sent+1<<16, passed+len(b)
	}
	if passed != sent {
		t.Errorf("%d bytes of %d have passed", passed, sent)
	}
}
