package deck_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

// spelledSecret is what the model spells in pieces, and the program knows from its environment.
const spelledSecret = "Zk2Lm9Qw4Rt7Yp3Bn6Vc1Xd8"

func init() { programs["converse"] = playConverse }

// playConverse asks a model, does what it wants, and asks it again. With an argument it asks no model, but its host.
func playConverse(args []string) int {
	turns := []string{
		`{"role":"user","content":"do it"}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"one"}]}`,
	}
	for i := range turns {
		path := "/v1/messages"
		if len(args) > 0 {
			path = "/v1/models"
		}
		body := `{"model":"m","tools":[{"name":"read"}],"messages":[` + strings.Join(turns[:i+1], ",") + `]}`
		res, err := http.Post("https://api.anthropic.com"+path, "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return 1
		}
		res.Body.Close()
	}
	return 0
}

// serveConverse answers it: with a call, then with a text that spells the secret, a letter an event.
func serveConverse(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	if !bytes.Contains(body, []byte("tool_result")) {
		fmt.Fprint(w, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{}}}\n\n"+
			"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n")
		return
	}
	fmt.Fprint(w, "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"It is \"}}\n\n")
	for _, letter := range spelledSecret {
		fmt.Fprintf(w, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%c\"}}\n\n", letter)
	}
	fmt.Fprint(w, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n")
}

// TestSessionLogOfARecording records a conversation, reads its log, and edits it.
func TestSessionLogOfARecording(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.unsealed = true
	b.env = append(b.env, "SERVICE_TOKEN="+spelledSecret)
	b.upstream("api.anthropic.com", serveConverse)
	res, _ := b.recordOutside("converse")
	b.holds(res.Recording.Dir)
	path := filepath.Join(res.Recording.Dir, "session.jsonl")
	was, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"kind":"run_started"`, `"goal":"do it"`, `"kind":"tool_requested"`, `"call_id":"t1","output":"one"`, `"content":"It is td_`,
		`"reason":"completed","turns_used":2`, `"tape_seq":`, `"g":`, `"t_ms":`,
	} {
		if !bytes.Contains(was, []byte(want)) {
			t.Errorf("no %s in\n%s", want, was)
		}
	}
	searchFor(t, res.Recording.Dir, spelledSecret)
	if rec, err := recording.Open(res.Recording.Dir); err != nil || rec.Manifest.SessionRules != derive.SessionRules || len(rec.Manifest.SessionHidden) != 0 {
		t.Errorf("%+v, %v", rec.Manifest, err)
	}
	for _, c := range []struct {
		was, now, want string
	}{
		{`"output":"one"`, `"output":"two"`, "session.jsonl:4: it is not the event that the tape gives"},
		{"{\"seq\":5", "\n{\"seq\":5", ""}, // a blank line is none
		{"{\"seq\":1,", "{\"seq\":2,", "session.jsonl:2: want an event with seq 1"},
		{"\"kind\":\"run_started\"", "\"kind\":7", "session.jsonl:1: "},
		{"\n", "", "session.jsonl:1: "},
	} {
		now := bytes.Replace(was, []byte(c.was), []byte(c.now), 1)
		if bytes.Equal(was, now) {
			t.Fatalf("%s does not stand in\n%s", c.was, was)
		}
		if err := os.WriteFile(path, now, 0o644); err != nil {
			t.Fatal(err)
		}
		v, err := verified(res.Recording.Dir)
		if err != nil || c.want != "" && (len(v.Problems) != 1 || !strings.Contains(v.Problems[0].String(), c.want)) {
			t.Errorf("%s: %+v, %v, want %s", c.now, v, err, c.want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if v, err := verified(res.Recording.Dir); err != nil || len(v.Problems) != 1 || !strings.HasSuffix(v.Problems[0].String(), "session.jsonl: is missing") {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestNoSessionLogWithoutAModel: what called no model has no log.
func TestNoSessionLogWithoutAModel(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.unsealed = true
	b.upstream("api.anthropic.com", serveConverse)
	res, out := b.recordOutside("converse", "no model")
	b.holds(res.Recording.Dir)
	if _, err := os.Stat(filepath.Join(res.Recording.Dir, "session.jsonl")); !os.IsNotExist(err) || res.Recording.Manifest.SessionRules != 0 {
		t.Errorf("%v, %+v\n%s", err, res.Counts, out)
	}
}
