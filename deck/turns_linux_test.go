package deck_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
	"github.com/tapedeck-dev/tapedeck/tape"
)

func init() {
	programs["turns"] = playTurns
	programs["spoken"] = playSpoken
}

// playTurns speaks Responses over a WebSocket as codex does: a warm-up, a turn that calls a tool, the one after it. Its arguments are
// the prompt and, where there is one, a token that it sends to the same host once the turns are over.
func playTurns(args []string) int {
	conn, _, err := websocket.Dial(context.Background(), "https://api.openai.com/v1/responses",
		&websocket.DialOptions{CompressionMode: websocket.CompressionContextTakeover})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	conn.SetReadLimit(-1)
	last, call := "", ""
	for i, input := range []string{
		`[{"role":"developer","content":"Be brief."}]`, `[{"role":"user","content":` + jsonOf(args[0]) + `}]`, "",
	} {
		message := `{"type":"response.create","model":"gpt-5","tools":[{"type":"function","name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}}],`
		if i == 0 {
			message += `"generate":false,`
		} else {
			message += `"previous_response_id":` + jsonOf(last) + `,`
		}
		if input == "" {
			input = `[{"type":"function_call_output","call_id":` + jsonOf(call) + `,"output":"ok"}]`
		}
		if last, call, err = oneTurn(conn, message+`"input":`+input+`}`); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	_ = conn.CloseNow() // as codex ends
	if len(args) > 1 {
		req, _ := http.NewRequest(http.MethodGet, "https://api.openai.com/v1/models", nil)
		req.Header.Set("Authorization", "Bearer "+args[1])
		if _, err := http.DefaultClient.Do(req); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

func jsonOf(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// oneTurn asks for one answer, prints what it says, and returns its id and that of the tool's call.
func oneTurn(conn *websocket.Conn, message string) (id, call string, err error) {
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(message)); err != nil {
		return "", "", err
	}
	for {
		_, b, err := conn.Read(context.Background())
		if err != nil {
			return "", "", err
		}
		var e struct {
			Type, Delta string
			Error       struct{ Message string }
			Item        struct {
				CallID string `json:"call_id"`
			}
			Response struct{ ID string }
		}
		if err := json.Unmarshal(b, &e); err != nil {
			return "", "", err
		}
		switch e.Type {
		case "response.output_text.delta":
			fmt.Print(e.Delta)
		case "response.output_item.done":
			call = e.Item.CallID
		case "error":
			return "", "", fmt.Errorf("refused: %s", e.Error.Message)
		case "response.completed":
			fmt.Println()
			return e.Response.ID, call, nil
		}
	}
}

// TestTurnsOverASocket records a conversation over a WebSocket, reads its log, replays it with the endpoint gone, and with another
// prompt.
func TestTurnsOverASocket(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.unsealed = true
	srv := b.upstream("api.openai.com", scriptedllm.New(nil).ServeHTTP)
	res, out := b.record("turns", "write hello.txt")
	if res.Exit.Code != 0 || !strings.Contains(out, "Done, hello.txt is written. The tool said: ok") {
		t.Fatalf("exit %d:\n%s", res.Exit.Code, out)
	}
	log, err := os.ReadFile(filepath.Join(res.Recording.Dir, "session.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"goal":"write hello.txt"`, `"system_prompt":"Be brief."`, `"kind":"tool_requested"`, `"output":"ok"`,
		`The tool said: ok`, `"reason":"completed","turns_used":2`,
	} {
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("no %s in\n%s", want, log)
		}
	}
	srv.Close()
	v, again := b.replay(res.Recording, nil)
	b.green(v)
	if again != out {
		t.Errorf("printed %q, then %q", out, again)
	}
	other, _ := b.self("turns", "write goodbye.txt")
	v, again = b.replay(res.Recording, &deck.ReplayOptions{Argv: other})
	if v.Faithful() || len(v.Refused) != 1 || !strings.Contains(again, "refused: not on the tape") ||
		!strings.Contains(v.Refused[0].Cause+v.Divergences[0].Cause, "goodbye.txt") {
		t.Errorf("with another prompt: %+v\n%s", v.Report, again)
	}
}

// TestLateSecretInTurns: a secret that the program's prompt held, and that a header gave away once the turns were over, is in none of
// them, each of which says it again; a replay that knows it early finds them all.
func TestLateSecretInTurns(t *testing.T) {
	t.Parallel()
	const secret = "qz81kdm3vx7wlp20sj5"
	b := newBench(t)
	b.unsealed = true
	b.upstream("api.openai.com", scriptedllm.New(nil).ServeHTTP)
	res, out := b.record("turns", "write hello.txt, and remember "+secret, secret)
	if res.Exit.Code != 0 {
		t.Fatalf("exit %d:\n%s", res.Exit.Code, out)
	}
	searchFor(t, res.Recording.Dir, secret)
	_, asked := callsOf(t, res.Recording.Dir)
	if len(asked) != 3 {
		t.Fatalf("%d turns", len(asked))
	}
	for _, body := range asked[1:] {
		if !strings.Contains(body, "and remember td_") {
			t.Errorf("a turn asks %s", body)
		}
	}
	v, _ := b.replay(res.Recording, nil)
	b.green(v)
}

// A spokenScene is a talk with a model that hears by itself when the user has ended.
type spokenScene struct {
	host, path string
	open       []string // messages that begin it
	sound      string   // one message of sound, %s of it
	ends       string   // what stands in the last message of an answer
	endpoint   string   // of its turns
}

var spokenScenes = map[string]*spokenScene{
	"realtime": {
		host: "api.openai.com", path: "/v1/realtime?model=gpt-realtime",
		open: []string{
			`{"type":"session.update","session":{"instructions":"Be brief.","audio":{"input":{"turn_detection":{"type":"server_vad"}}}}}`,
			`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`,
			`{"type":"response.create"}`,
		},
		sound: `{"type":"input_audio_buffer.append","audio":"%s"}`, ends: `"response.done"`, endpoint: "realtime",
	},
	"live": {
		host: "generativelanguage.googleapis.com", path: "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
		open: []string{
			`{"setup":{"model":"models/gemini-live","generationConfig":{"responseModalities":["AUDIO"]}}}`,
			`{"clientContent":{"turns":[{"role":"user","parts":[{"text":"hi"}]}],"turnComplete":true}}`,
		},
		sound: `{"realtimeInput":{"audio":{"mimeType":"audio/pcm","data":"%s"}}}`, ends: `"turnComplete"`, endpoint: "BidiGenerateContent",
	},
}

// playSpoken plays a scene: an answer that is asked for, and then one to what is spoken.
func playSpoken(args []string) int {
	scene, ctx := spokenScenes[args[0]], context.Background()
	conn, _, err := websocket.Dial(ctx, "https://"+scene.host+scene.path, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	conn.SetReadLimit(-1)
	loud := fmt.Sprintf(scene.sound, strings.Repeat("QUJD", 500))
	for _, messages := range [][]string{scene.open, {loud, loud, fmt.Sprintf(scene.sound, "AAAA")}} {
		for _, m := range messages {
			if err := conn.Write(ctx, websocket.MessageText, []byte(m)); err != nil {
				fmt.Println(err)
				return 1
			}
		}
		for ended := false; !ended; {
			kind, b, err := conn.Read(ctx)
			if err != nil {
				fmt.Println(err)
				return 1
			}
			fmt.Println(kind, len(b))
			ended = bytes.Contains(b, []byte(scene.ends))
		}
	}
	_ = conn.Close(websocket.StatusNormalClosure, "bye")
	return 0
}

// TestSpokenTurns records talks in which the server begins a turn by itself, and replays them.
func TestSpokenTurns(t *testing.T) {
	t.Parallel()
	for name, scene := range spokenScenes {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.unsealed = true
			srv := b.upstream(scene.host, scriptedllm.New(nil).ServeHTTP)
			res, out := b.record("spoken", name)
			if res.Exit.Code != 0 {
				t.Fatalf("exit %d:\n%s", res.Exit.Code, out)
			}
			srv.Close()
			var begun []string
			calls, _ := callsOf(t, res.Recording.Dir)
			for _, call := range calls {
				if call.Endpoint != scene.endpoint || call.Error != "" {
					t.Errorf("%+v", call)
				}
				begun = append(begun, string(tape.FieldValue(call.Extra, "begun_by")))
			}
			if fmt.Sprint(begun) != `[ "server"]` {
				t.Errorf("turns begun by %v", begun)
			}
			v, again := b.replay(res.Recording, nil)
			b.green(v)
			if again != out {
				t.Errorf("printed %q, then %q", out, again)
			}
		})
	}
}

// callsOf are the calls of models on a recording's tape, and their requests.
func callsOf(t *testing.T, dir string) (calls []*tape.LLMCall, asked []string) {
	t.Helper()
	tp, err := tape.Open(filepath.Join(dir, "run.tape"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tp.Close()
	for rec, err := range tp.Records() {
		if err != nil {
			t.Fatal(err)
		}
		if call, ok := rec.Kind.(*tape.LLMCall); ok {
			body, err := call.RequestPayload.Bytes(tp.Store)
			if err != nil {
				t.Fatal(err)
			}
			calls, asked = append(calls, call), append(asked, string(body))
		}
	}
	return calls, asked
}
