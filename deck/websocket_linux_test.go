package deck_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func init() { programs["socket"] = playSocket }

// playSocket opens its first argument as a WebSocket, says each of the others with a UUID of its own and the value of TEST_API_KEY, prints
// what it hears for it, and last takes in what comes without being asked.
func playSocket(args []string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, _, err := websocket.Dial(ctx, args[0], &websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		return fail(err)
	}
	defer c.CloseNow()
	for i, word := range args[1:] {
		id := fmt.Sprintf("%08x-0000-4000-8000-%012x", os.Getpid(), i)
		text := fmt.Sprintf(`{"type":"say","word":%q,"id":%q,"key":%q,"filler":%q}`, word, id, os.Getenv("TEST_API_KEY"), strings.Repeat("filler ", 300))
		if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
			return fail(err)
		}
		_, b, err := c.Read(ctx)
		if err != nil {
			return fail(err)
		}
		if !strings.Contains(string(b), os.Getenv("TEST_API_KEY")) {
			return fail(fmt.Errorf("no key of its own in %s", b))
		}
		fmt.Println(len(b))
	}
	_, b, err := c.Read(ctx)
	fmt.Println(string(b), websocket.CloseStatus(err))
	c.Close(4000, "enough")
	return 0
}

// TestWebSocket records a program's WebSocket, which keeps no secret, and replays it with the server gone: green for the same words, and
// for another one a divergence that names it.
func TestWebSocket(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const key = "fq8Rw3Lk2Vb9Nm5Tr1Yp"
	b.env = append(b.env, "TEST_API_KEY="+key)
	srv := b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{CompressionMode: websocket.CompressionContextTakeover})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for range 2 {
			kind, b, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, append(b, ' ')) != nil {
				return
			}
		}
		c.Write(r.Context(), websocket.MessageBinary, []byte("unasked"))
		_, _, _ = c.Read(r.Context()) // the close
	})
	const url = "wss://api.example.com/v1/any?api_key=" + key
	res, out := b.record("socket", url, "one", "two")
	if res.Exit.Code != 0 || !strings.Contains(out, "unasked StatusCode(-1)") {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	srv.Close()
	var kinds []string
	f, err := tape.Open(res.Recording.Dir+"/run.tape", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for rec, err := range f.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(rec.Kind.Name(), "ws_") {
			kinds = append(kinds, strings.TrimPrefix(rec.Kind.Name(), "ws_"))
		}
	}
	if got := strings.Join(kinds, " "); got != "open message message message message message close" {
		t.Errorf("on the tape: %s", got)
	}
	b.holds(res.Recording.Dir)
	if err := filepath.WalkDir(res.Recording.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(key)) {
			t.Errorf("the key stands in %s", path)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	v, again := b.replay(res.Recording, nil)
	b.green(v)
	if again != out {
		t.Errorf("the replay printed %q, recorded %q", again, out)
	}
	argv, _ := b.self("socket", url, "one", "three")
	v, _ = b.replay(res.Recording, &deck.ReplayOptions{Argv: argv})
	found := false
	for _, d := range v.Divergences {
		found = found || d.Category == fidelity.WSMessageHash && strings.Contains(fmt.Sprint(d), "three")
	}
	if v.Score == 1 || !found || len(v.Refused) == 0 {
		t.Errorf("another word: %+v", v.Divergences)
	}
}
