package deck_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func init() { programs["late brought"] = playBrought }

// broughtValue is a secret that a program brings with it: no variable, no argument and no file of the recording holds it. It has
// what URLs and base64 escape.
func broughtValue(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return "c9+" + base64.RawURLEncoding.EncodeToString(sum[:])[:22] + "/Q7"
}

// broughtTo are the ways in which the value passes before anything says what it is.
var broughtTo = map[string]func(base, v string) error{
	"text": func(base, v string) error {
		return says(base+"/make", "text/plain", "create a project for "+v+", and soon")
	},
	"JSON": func(base, v string) error {
		return says(base+"/make", "application/json", fmt.Sprintf(`{"for":%q,"at":1}`, v))
	},
	"form": func(base, v string) error {
		return says(base+"/make", "application/x-www-form-urlencoded", "for="+url.QueryEscape(v))
	},
	"escaped": func(base, v string) error {
		return says(base+"/make", "application/json", `{"for":"`+strings.ReplaceAll(quoted(v, 1), "/", `\/`)+`"}`)
	},
	"base64": func(base, v string) error {
		return says(base+"/make", "text/plain", "for "+base64.StdEncoding.EncodeToString([]byte("ann:"+v+" and more")))
	},
	"hex": func(base, v string) error {
		return says(base+"/make", "text/plain", "for "+hex.EncodeToString([]byte(v)))
	},
	"query": func(base, v string) error {
		_, err := get(base + "/make?for=" + url.QueryEscape(v) + "&at=1")
		return err
	},
	"path": func(base, v string) error { _, err := get(base + "/make/" + url.PathEscape(v) + "/now"); return err },
	"gzip": func(base, v string) error {
		req, err := http.NewRequest(http.MethodPost, base+"/make", strings.NewReader(string(packedAs("gzip", "create a project for "+v))))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Encoding", "gzip")
		return done(http.DefaultClient.Do(req))
	},
	"model": func(base, v string) error {
		return says(base+"/v1/chat/completions", "application/json", fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, "remember "+v))
	},
	"socket": func(base, v string) error {
		c, _, err := websocket.Dial(context.Background(), strings.Replace(base, "https", "wss", 1)+"/socket", nil)
		if err != nil {
			return err
		}
		defer c.CloseNow()
		if err := c.Write(context.Background(), websocket.MessageText, []byte(`{"for":"`+v+`"}`)); err != nil {
			return err
		}
		if _, _, err := c.Read(context.Background()); err != nil {
			return err
		}
		return c.Close(websocket.StatusNormalClosure, "")
	},
	"output": func(_, v string) error { fmt.Println("made for", v); return nil },
	"output in bytes": func(_, v string) error {
		for _, c := range []byte("made for " + v + ".\n") {
			if _, err := os.Stdout.Write([]byte{c}); err != nil {
				return err
			}
		}
		return nil
	},
	"kept file":  func(_, v string) error { return os.WriteFile("kept.txt", []byte("made for "+v+"\n"), 0o644) },
	"MCP":        func(_, v string) error { return asksServer(v) },
	"MCP server": func(_, v string) error { return asksServer("nothing", "--for", v) },
}

// asksServer has the server in MCP_SERVER, which is started with args, say a text.
func asksServer(text string, args ...string) error {
	p, err := startMCP(mcpStart{Argv: append([]string{os.Getenv("MCP_SERVER"), "thing"}, args...)})
	if err != nil {
		return err
	}
	said, err := p.call("tools/call", map[string]any{"name": "echo", "arguments": map[string]any{"text": text}})
	fmt.Println(len(said))
	p.in.Close()
	return errors.Join(err, p.cmd.Wait())
}

func says(to, contentType, body string) error {
	return done(http.Post(to, contentType, strings.NewReader(body)))
}

func done(res *http.Response, err error) error {
	if err != nil {
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	fmt.Println(res.StatusCode, len(b) > 0)
	return err
}

// broughtTold are the ways in which it is then said to be a secret.
var broughtTold = map[string]func(base, v string) error{
	"file": func(_, v string) error { return os.WriteFile(".env", []byte("API_KEY="+v+"\n"), 0o600) },
	"header": func(base, v string) error {
		req, err := http.NewRequest(http.MethodGet, base+"/named", nil)
		if err != nil {
			return err
		}
		req.Header.Set("X-Api-Key", v)
		return done(http.DefaultClient.Do(req))
	},
	"answer": func(base, v string) error {
		b, err := get(base + "/key")
		if err == nil && !strings.Contains(string(b), v) {
			err = fmt.Errorf("another key than %d bytes: %s", len(v), b)
		}
		return err
	},
}

// playBrought makes a value of a seed, lets it pass in some way, and only then has it said to be a secret.
func playBrought(args []string) int {
	base, how, told := args[0], args[1], args[2]
	seed, err := os.ReadFile(args[3])
	if err != nil {
		return fail(err)
	}
	v := broughtValue(string(seed))
	if err := broughtTo[how](base, v); err != nil {
		return fail(err)
	}
	if err := broughtTold[told](base, v); err != nil {
		return fail(err)
	}
	return 0
}

// serveBrought answers playBrought.
func serveBrought(v string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/key":
			fmt.Fprintf(w, `{"api_key":%q}`, v)
		case "/socket":
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer c.CloseNow()
			if kind, b, err := c.Read(r.Context()); err == nil && c.Write(r.Context(), kind, b) == nil {
				_, _, _ = c.Read(r.Context()) // the close
			}
		default:
			io.WriteString(w, `{"made":true}`)
		}
	}
}

// TestLateSecretsThatAreBrought: a program sends a value that nothing gives away yet and that the replay can have from nowhere. The
// replay knows it again where it first passes, by its keyed digest, and another value is still another.
func TestLateSecretsThatAreBrought(t *testing.T) {
	t.Parallel()
	some := []string{"form then file", "socket then file", "model then header", "output then answer"}
	try := func(how, told string) {
		if name := how + " then " + told; long || slices.Contains(some, name) {
			t.Run(name, func(t *testing.T) { testBrought(t, how, told) })
		}
	}
	for how := range broughtTo {
		try(how, "file")
	}
	for _, how := range []string{"JSON", "model", "output"} { // in what way it is told does not depend on how it passed
		try(how, "header")
		try(how, "answer")
	}
}

func testBrought(t *testing.T, how, told string) {
	t.Parallel()
	b := newBench(t)
	seed := filepath.Join(t.TempDir(), "seed") // outside of what is recorded
	if err := os.WriteFile(seed, []byte(how+told), 0o644); err != nil {
		t.Fatal(err)
	}
	v := broughtValue(how + told)
	server := b.server("thing-server")
	b.env = append(b.env, "MCP_SERVER="+server)
	srv := b.upstream("api.example.com", serveBrought(v))
	res, out := b.record("late brought", "https://api.example.com", how, told, seed)
	if res.Exit.Code != 0 {
		t.Fatalf("exit %+v: %s", res.Exit, out)
	}
	srv.Close()
	b.gone(server)
	os.Remove(filepath.Join(b.dir, ".env"))
	os.Remove(filepath.Join(b.dir, "kept.txt"))
	lookFor(t, res.Recording.Dir, v)
	b.sound(res.Recording.Dir)

	kept := filepath.Join(t.TempDir(), "replay")
	verdict, _ := b.replay(res.Recording, &deck.ReplayOptions{Out: kept})
	b.green(verdict)
	lookFor(t, kept, v)
	b.sound(kept)
}

// TestLateSecretsThatAreOthers: another value in the place of one that is sought, and the same one without the key that tells it, are
// divergences, and in the second case the verdict says why.
func TestLateSecretsThatAreOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seed := filepath.Join(t.TempDir(), "seed")
	write := func(text string) {
		if err := os.WriteFile(seed, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	b.upstream("api.example.com", serveBrought(broughtValue("one")))
	res, out := b.record("late brought", "https://api.example.com", "JSON", "header", seed)
	if res.Exit.Code != 0 {
		t.Fatalf("exit %+v: %s", res.Exit, out)
	}
	write("two")
	kept := filepath.Join(t.TempDir(), "replay")
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Out: kept})
	b.refusedMake(v)
	lookFor(t, kept, broughtValue("two")) // which the header gave away in the end
	if notes := strings.Join(v.Notes, "\n"); strings.Contains(notes, "project key") {
		t.Errorf("the key is the recording's, and the notes say %s", notes)
	}

	write("one")
	b.config = filepath.Join(t.TempDir(), "config")
	v, _ = b.replay(res.Recording, nil)
	b.refusedMake(v)
	if notes := strings.Join(v.Notes, "\n"); !strings.Contains(notes, "another project key") || !strings.Contains(notes, "1 of its secrets") {
		t.Errorf("the notes say %s", notes)
	}
}

// refusedMake fails the test unless the request to make something was refused.
func (b *bench) refusedMake(v *deck.Verdict) {
	b.t.Helper()
	var text bytes.Buffer
	v.WriteText(&text, nil)
	if v.Faithful() || !strings.Contains(text.String(), "/make") {
		b.t.Errorf("the verdict is\n%s", &text)
	}
}

// TestLateSecretsOfAReplay: what a replay found again is sought by a replay of that replay, too.
func TestLateSecretsOfAReplay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seed := filepath.Join(t.TempDir(), "seed")
	if err := os.WriteFile(seed, []byte("again"), 0o644); err != nil {
		t.Fatal(err)
	}
	srv := b.upstream("api.example.com", serveBrought(broughtValue("again")))
	res, _ := b.record("late brought", "https://api.example.com", "form", "answer", seed)
	srv.Close()
	kept := filepath.Join(t.TempDir(), "replay")
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{Out: kept})
	b.green(v)
	again, err := recording.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	v, _ = b.replay(again, nil)
	b.green(v)
}
