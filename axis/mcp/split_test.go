package mcp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
)

// A part is what one side says without a word of the other.
type part struct {
	from mcp.Side
	text string
}

// fed is what a relay made of parts.
type fed struct{ toServer, toClient, stderr, tape string }

// feed gives the parts to a relay, cut as cuts says: each call returns how many bytes the next read gives, of so many that there are.
func feed(t testing.TB, r *rig, parts []part, limit int, next func(left int) int) fed {
	t.Helper()
	f := mcp.NewFed(r.log, nil)
	f.SetLimit(limit)
	var toServer, toClient, stderr bytes.Buffer
	out := map[mcp.Side]*bytes.Buffer{mcp.Client: &toServer, mcp.Server: &toClient, "stderr": &stderr}
	for _, p := range parts {
		for b := []byte(p.text); len(b) > 0; {
			n := next(len(b))
			pass, err := f.From(p.from, bytes.Clone(b[:n]))
			if err != nil {
				t.Fatal(err)
			}
			out[p.from].Write(pass)
			b = b[n:]
		}
	}
	for _, side := range []mcp.Side{mcp.Client, mcp.Server} {
		pass, err := f.End(side)
		if err != nil {
			t.Fatal(err)
		}
		out[side].Write(pass)
	}
	if err := f.Conversation().End(mcp.Ended{}); err != nil {
		t.Fatal(err)
	}
	return fed{toServer.String(), toClient.String(), stderr.String(), r.said()}
}

func whole(left int) int { return left }

// checkCuts feeds the parts whole and cut, and wants the same of both, and every byte passed on.
func checkCuts(t testing.TB, rigs func() *rig, parts []part, limit int, next func(left int) int) fed {
	t.Helper()
	want, got := feed(t, rigs(), parts, limit, whole), feed(t, rigs(), parts, limit, next)
	if got != want {
		t.Errorf("cut into reads:\n%+v\nwhole:\n%+v", got, want)
	}
	said := map[mcp.Side]string{}
	for _, p := range parts {
		said[p.from] += p.text
	}
	if got.toServer != said[mcp.Client] || got.toClient != said[mcp.Server] || got.stderr != said["stderr"] {
		t.Errorf("of %q passed %+v", said, got)
	}
	return got
}

// someLine draws a line of a side.
func someLine(t *rapid.T) string {
	id := rapid.IntRange(0, 3).Draw(t, "id")
	ends := rapid.SampledFrom([]string{"\n", "\r\n", " \n"}).Draw(t, "end")
	return rapid.SampledFrom([]string{
		"", "a log line", "h\u00e4lf \U0001f642 \xe2\x82", `{"level":"info"}`, "[]", inited,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"_meta":{"progressToken":%[1]d},"a":"é"}}`, id),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"x":[1,2.50]}}`, id),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-1,"message":"no"}}`, id),
		fmt.Sprintf(`[{"jsonrpc":"2.0","id":%d,"result":{}},{"jsonrpc":"2.0","id":%[1]d,"method":"ping"}]`, id),
		fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id),
		`{"jsonrpc":"2.0","id":1,"meth`, strings.Repeat("x", 500),
	}).Draw(t, "line") + ends
}

// Any cut of both directions gives the same bytes, and the same records.
func TestAnyCutIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var parts []part
		if rapid.Bool().Draw(rt, "early") {
			parts = append(parts, part{mcp.Server, "starting\n"}, part{"stderr", "warn\nhalf"}, part{mcp.Client, " \r\n"})
		}
		if rapid.Bool().Draw(rt, "mcp") {
			parts = append(parts, part{mcp.Client, askInit + "\n"}, part{mcp.Server, ansInit + "\n"})
		}
		for range rapid.IntRange(0, 12).Draw(rt, "parts") {
			p := part{from: rapid.SampledFrom([]mcp.Side{mcp.Client, mcp.Server, "stderr"}).Draw(rt, "from")}
			for range rapid.IntRange(1, 3).Draw(rt, "lines") {
				p.text += someLine(rt)
			}
			parts = append(parts, p)
		}
		if rapid.Bool().Draw(rt, "dies") {
			parts = append(parts, part{mcp.Server, `{"jsonrpc":"2.0","id":1,"result":{"ha`})
		}
		limit := rapid.SampledFrom([]int{mcp.MaxLine, 200}).Draw(rt, "limit")
		most := rapid.SampledFrom([]int{1, 3, 64, 10000}).Draw(rt, "most")
		checkCuts(t, func() *rig { return newRig(t) }, parts, limit, func(left int) int { return rapid.IntRange(1, min(most, left)).Draw(rt, "cut") })
	})
}

// Whatever the bytes are, they pass, and cut anyhow they are the same records. Secrets are not looked for: that takes a hundred times as long
// where coverage is measured.
func FuzzRelay(f *testing.F) {
	f.Add([]byte(askInit+"\n"+inited+"\n"), []byte("log\n"+ansInit+"\n"), uint64(1), false)
	f.Add([]byte("\v\n{\"a\":1}\n"), []byte("x"), uint64(2), true)
	f.Add([]byte("["+askInit+"]\n"), []byte("["+ansInit+"]"), uint64(3), true)
	f.Add([]byte(askInit), []byte{}, uint64(4), false)
	f.Fuzz(func(t *testing.T, client, server []byte, seed uint64, early bool) {
		parts := []part{{mcp.Client, string(client)}, {mcp.Server, string(server)}}
		if early {
			parts = append([]part{{mcp.Server, "early\n"}}, parts...)
		}
		random := rand.New(rand.NewPCG(seed, 0))
		checkCuts(t, func() *rig { return newRigWith(t, nil, nil) }, parts, 4096, func(left int) int { return 1 + random.IntN(left) })
	})
}

// Whatever Parse takes for messages, their parts are those of the line, and the line is one.
func FuzzParse(f *testing.F) {
	for _, s := range []string{askInit, ansInit, inited, "[]", "[" + ansInit + "," + inited + "]", `{"jsonrpc":"2.0","id":null,"method":"m"}`,
		`{"jsonrpc":"2.0","jsonrpc":"1","method":"m"}`, `{"method":"a","jsonrpc":"2.0","method":"b"}`, strings.Repeat("[", 20000), "\ufeff{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		messages, batch, err := mcp.Parse(line)
		if err != nil {
			if messages != nil {
				t.Fatalf("messages %v beside an error %v", messages, err)
			}
			return
		}
		if !batch && len(messages) != 1 {
			t.Fatalf("%d messages that are no batch", len(messages))
		}
		for i := range messages {
			m := &messages[i]
			again, batch, err := mcp.Parse(m.Raw)
			if err != nil || batch || len(again) != 1 || fmt.Sprint(again[0]) != fmt.Sprint(*m) {
				t.Fatalf("%q is read as %v, %v", m.Raw, again, err)
			}
			if n := btoi(m.IsRequest()) + btoi(m.IsNotification()) + btoi(m.IsAnswer()); n != 1 {
				t.Fatalf("%q is %d things", m.Raw, n)
			}
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
