package mcp

import (
	"bytes"
	"context"
	"net/http"
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/exchange"
)

// given is what a replay gives of an answer that comes in chunks whose lengths are those in cuts, again and again.
func given(t *testing.T, answer, cuts []byte, asJSON bool, n *names) (out []byte, pieces int) {
	t.Helper()
	p := &webExchange{
		over: new(OverHTTP), conversation: new(webConversation), reader: new(eventReader),
		asked: &exchange.Asked{Request: &exchange.Request{Method: http.MethodPost}},
		given: webReplay{on: true, rename: true, name: *n},
	}
	if asJSON {
		p.reader = new(jsonReader)
	}
	give := func(b []byte, ended bool) {
		got, err := p.Chunk(context.Background(), b, ended)
		if err != nil {
			t.Fatal(err)
		}
		for _, piece := range got {
			out = append(out, piece...)
			pieces++
		}
	}
	for rest, i := answer, 0; len(rest) > 0; i++ {
		size := len(rest)
		if len(cuts) > 0 {
			size = min(size, int(cuts[i%len(cuts)])+1)
		}
		give(bytes.Clone(rest[:size]), false)
		rest = rest[size:]
	}
	give(nil, true)
	return out, pieces
}

// fuzzNames are those of requests whose ids and tokens are others now.
func fuzzNames() *names {
	n := &names{changed: true}
	n.note(&n.ids, []byte("1"), []byte(`"another"`))
	n.note(&n.ids, []byte(`"s"`), []byte("7"))
	n.note(&n.tokens, []byte("1"), []byte("2"))
	return n
}

// However an answer is cut into chunks, the same bytes come of it; and none is lost or changed where no name is another.
func FuzzGiven(f *testing.F) {
	for _, s := range []string{
		"data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n",
		"event: message\r\nid: 1_2\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"s\",\r\ndata: \"error\":{\"code\":1}}\r\n\r\n: x\r\n\r\n",
		"\uFEFFdata:{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\r\r\n\ndata: no end",
		"id: 1\nretry: 5\ndata:\n\nevent: endpoint\ndata: /m?sessionId=1\n\ndata: [{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}]\n\n",
		`[{"jsonrpc":"2.0","id":1,"result":{"a":"]}\""}},{"jsonrpc":"2.0","id":"s","result":{}}]` + "\n",
		`{"jsonrpc":"2.0","id":1,"result":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`,
		`{"id":1,"id":1,"jsonrpc":"2.0","error":{}}`, "\r", "{", "]]", ` {"jsonrpc":"2.0","id":1,"result":{}}},{"id"<1}`,
	} {
		f.Add([]byte(s), []byte{0}, false)
		f.Add([]byte(s), []byte{3, 0, 9}, true)
		f.Add([]byte(s), []byte{0}, true)
	}
	f.Fuzz(func(t *testing.T, answer, cuts []byte, asJSON bool) {
		whole, _ := given(t, answer, nil, asJSON, fuzzNames())
		parts, _ := given(t, answer, cuts, asJSON, fuzzNames())
		if !bytes.Equal(whole, parts) {
			t.Errorf("in parts %q, as a whole %q", parts, whole)
		}
		if same, _ := given(t, answer, cuts, asJSON, new(names)); !bytes.Equal(same, answer) {
			t.Errorf("without names %q of %q", same, answer)
		}
	})
}

// What is named otherwise, and what is not.
func TestEdits(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id": 1 ,"result":{"id":1}}`:                                                   `{"jsonrpc":"2.0","id": "another" ,"result":{"id":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`:                                                 `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`,
		`{"method":"notifications/progress","jsonrpc":"2.0","params":{"progressToken":1}}`:               `{"method":"notifications/progress","jsonrpc":"2.0","params":{"progressToken":2}}`,
		`{"method":"notifications/cancelled","jsonrpc":"2.0","params":{"requestId":1}}`:                  `{"method":"notifications/cancelled","jsonrpc":"2.0","params":{"requestId":1}}`,
		`{"method":"notifications/message","jsonrpc":"2.0","params":{"progressToken":1,"id":1}}`:         `{"method":"notifications/message","jsonrpc":"2.0","params":{"progressToken":1,"id":1}}`,
		`{"method":"n","jsonrpc":"2.0","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`: `{"method":"n","jsonrpc":"2.0","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"another"}}}`,
		`[{"jsonrpc":"2.0","id":1,"result":{}} , {"jsonrpc":"2.0","id":"s","result":{}}]`:                `[{"jsonrpc":"2.0","id":"another","result":{}} , {"jsonrpc":"2.0","id":7,"result":{}}]`,
		`no JSON`: `no JSON`,
	} {
		if got := applyEdits([]byte(in), editsOf([]byte(in), new(names), fuzzNames())); string(got) != want {
			t.Errorf("%s became\n%s, want\n%s", in, got, want)
		}
	}
}
