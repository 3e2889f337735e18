package mcp_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/fidelity"
)

// batchServer answers batches of two calls, of which the second fails.
func batchServer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `[{"jsonrpc":"2.0","id":1,"result":{"content":[]}},{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"none"}}]`)
}

// batchOf is a batch of calls, a tool and its path each, with ids of their own; a call that needs no answer goes with them.
func batchOf(first int, paths ...string) string {
	calls := []string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`}
	for i, p := range paths {
		tool, path, _ := strings.Cut(p, " ")
		calls = append(calls, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"path":%q}}}`, first+i, tool, path))
	}
	return "[" + strings.Join(calls, ",") + "]"
}

// again posts to a replay of g, and returns the last answer.
func (g *webRig) again(bodies ...string) (last string, again *webRig) {
	g.replay(func(r *webRig) {
		again = r
		for _, b := range bodies {
			_, _, last = r.post(b)
		}
	})
	return last, again
}

// Of a batch with one changed call that call is refused, and named; the others get what was recorded.
func TestChangedCallOfABatchOverHTTP(t *testing.T) {
	t.Parallel()
	g := recordWeb(t, http.HandlerFunc(batchServer))
	g.post(batchOf(1, "stat a.txt", "read a.txt"))
	for _, tt := range []struct {
		calls    []string
		refused  string // what the answer names, and not the call before it
		was, now string // what the answer holds of the other call
		first    string // that the verdict names
	}{
		{[]string{"stat a.txt", "read b.txt"}, `"id":8,"error":{"code":-32000,"message":"not on the tape: tools/call read; `,
			`{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`, `[2].params.arguments.path: \"a.txt\" -> \"b.txt\"`, "tools/call read: arguments.path"},
		{[]string{"stat b.txt", "read a.txt"}, `"id":7,"error":{"code":-32000,"message":"not on the tape: tools/call stat; `,
			`{"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"none"}}`, `[1].params.arguments.path: \"a.txt\" -> \"b.txt\"`, "tools/call stat: arguments.path"},
	} {
		got, again := g.again(batchOf(7, tt.calls...))
		for _, want := range []string{tt.refused, tt.was, tt.now} {
			if !strings.Contains(got, want) {
				t.Errorf("%q: got %s, without %s", tt.calls, got, want)
			}
		}
		if n := strings.Count(got, "not on the tape"); n != 1 {
			t.Errorf("%q: %d calls are refused: %s", tt.calls, n, got)
		}
		r, err := fidelity.CompareLanes(fidelity.Semantic, g.reader().Records(), again.reader().Records(), &fidelity.LaneOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Divergences) != 1 || !strings.Contains(r.Divergences[0].Message, tt.first) {
			t.Errorf("%q: the verdict names %+v", tt.calls, r.Divergences)
		}
	}
}

// What was recorded once is answered once, and a batch that holds nothing new, put together otherwise, is refused as a whole.
func TestBatchPutTogetherOtherwise(t *testing.T) {
	t.Parallel()
	g := recordWeb(t, http.HandlerFunc(batchServer))
	g.post(batchOf(1, "stat a.txt", "read a.txt"))
	for _, tt := range []struct {
		name  string
		posts [][]string
		want  int // calls that the last one refuses
	}{
		{"in another order", [][]string{{"read a.txt", "stat a.txt"}}, 2},
		{"asked again", [][]string{{"stat a.txt", "read a.txt"}, {"stat a.txt", "read b.txt"}}, 2},
		{"refused again", [][]string{{"stat a.txt", "read b.txt"}, {"stat a.txt", "read b.txt"}}, 2},
		{"one more", [][]string{{"stat a.txt", "read a.txt", "read c.txt"}}, 1},
	} {
		var posts []string
		for _, calls := range tt.posts {
			posts = append(posts, batchOf(7, calls...))
		}
		last, _ := g.again(posts...)
		if n := strings.Count(last, "not on the tape"); n != tt.want {
			t.Errorf("%s: %d calls are refused: %s", tt.name, n, last)
		}
	}
}

// A recorded answer in which a secret lay is given with that of this run.
func TestSecretInABatch(t *testing.T) {
	t.Parallel()
	const secret = "sk-ant-api03-a-secret-of-this-run-0123456789"
	g := recordWeb(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `[{"jsonrpc":"2.0","id":1,"result":{"text":%q}},{"jsonrpc":"2.0","id":2,"result":{}}]`, secret)
	}), "MY_API_KEY="+secret)
	g.post(batchOf(1, "stat a.txt", "read a.txt"))
	g.replay(func(again *webRig) {
		if _, _, got := again.post(batchOf(7, "stat a.txt", "read b.txt")); !strings.Contains(got, `"id":7,"result":{"text":"`+secret) {
			again.t.Errorf("got %s", got)
		}
		again.end()
		if strings.Contains(string(again.file.bytes()), secret) {
			again.t.Error("the secret is on the replay's tape")
		}
	}, "MY_API_KEY="+secret)
}
