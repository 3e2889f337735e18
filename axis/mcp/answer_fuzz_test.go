package mcp_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/mcp"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// scenes are conversations that fuzzing begins with.
var scenes = [][]string{
	{initialize, initResult, initialized, callTool(2, "a", `{"path":"x"}`), result(2, "A"), callTool(3, "a", `{}`), "! log", "< text", result(3, "B")},
	{
		`> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"s","_meta":{"progressToken":2}}}`,
		`< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}`,
		`< {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`, `> {"jsonrpc":"2.0","id":1,"result":{}}`,
		`> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, result(2, "A"),
	},
	{"> [" + said(callTool(2, "a", `{}`)) + "," + said(callTool(3, "b", `{}`)) + "]", "< [" + said(result(3, "B")) + "," + said(result(2, "A")) + "]", "= 1"},
}

// clientLines are the client's lines of a scene.
func clientLines(scene []string) []byte {
	var out strings.Builder
	for _, l := range scene {
		if strings.HasPrefix(l, "> ") {
			out.WriteString(said(l) + "\n")
		}
	}
	return []byte(out.String())
}

// FuzzServe reads any tape and lets any client ask what it holds: nothing panics, and every conversation ends with its client.
func FuzzServe(f *testing.F) {
	for i, scene := range scenes {
		m := recorded(f, scene...)
		if err := m.rec.Flush(); err != nil {
			f.Fatal(err)
		}
		f.Add(m.buf.Bytes(), clientLines(scenes[i]))
		f.Add(m.buf.Bytes(), clientLines(scenes[(i+1)%len(scenes)]))
	}
	f.Fuzz(func(t *testing.T, b, lines []byte) {
		r, err := tape.NewReaderOptions(bytes.NewReader(b), "fuzz", &tape.ReaderOptions{Tolerant: true})
		if err != nil {
			return
		}
		book, err := mcp.NewBook(r.Records(), cas.NewMemory(), nil)
		if err != nil {
			return
		}
		var served []*mcp.Served
		for _, rec := range book.Servers() {
			if s, _ := book.Spawn(rec.Program, rec.Args); s != nil {
				served = append(served, s)
			}
			if s, err := book.Named(rec.Server); err == nil {
				served = append(served, s)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for _, s := range served {
			for _, lenient := range []bool{false, true} {
				o := &mcp.ServeOptions{In: bytes.NewReader(lines), Out: io.Discard, Lenient: lenient}
				_, _ = s.Serve(ctx, o) // a damaged tape is an error
			}
		}
		book.Refusal("/x", nil, "why").Line(lines)
		book.Unasked()
		book.Refused()
		if ctx.Err() != nil {
			t.Error("a conversation did not end with its client")
		}
	})
}
