package deck_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["late"] = playLate }

// lateForms are forms in which a value stands before anything says that it is a secret; the program reads each.
var lateForms = map[string]struct {
	of, from func(v string) string
}{
	"plain":   {func(v string) string { return v }, func(v string) string { return v }},
	"base64":  {func(v string) string { return base64.StdEncoding.EncodeToString([]byte("k:" + v)) }, unbase64},
	"percent": {url.QueryEscape, func(v string) string { out, _ := url.QueryUnescape(v); return out }},
}

func unbase64(v string) string {
	b, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		return "no base64"
	}
	return strings.TrimPrefix(string(b), "k:")
}

// playLate gets a value from somewhere in a form, shows it in that form in many places, and only then names it.
func playLate(args []string) int {
	base, where, form := args[0], args[1], lateForms[args[2]]
	var text string
	switch where {
	case "file":
		b, err := os.ReadFile("config.json")
		if err != nil {
			return fail(err)
		}
		var c struct{ Service, Note string }
		if err := json.Unmarshal(b, &c); err != nil {
			return fail(err)
		}
		text = c.Note
	case "argument":
		text = strings.TrimPrefix(args[3], "--user=ann:")
	case "variable":
		text = os.Getenv("NOTE")
	case "stdin":
		b, _ := io.ReadAll(os.Stdin)
		text = strings.TrimSpace(string(b))
	case "answer":
		b, err := get(base + "/note")
		if err != nil {
			return fail(err)
		}
		text = string(b)
	}
	// A value that a header cannot hold is none: the program asks for nothing then.
	value := form.from(text)
	fmt.Println("the note is", form.of(value))
	fmt.Fprintln(os.Stderr, "and again", form.of(value))
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, "remember "+form.of(value)+strings.Repeat(" and so on", 600))
	for _, path := range []string{"/v1/chat/completions", "/first"} {
		res, err := http.Post(base+path, "application/json", strings.NewReader(body))
		if err != nil {
			return fail(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		fmt.Println("answered", len(b) > 0, err)
	}
	if err := os.WriteFile("kept.txt", []byte("kept "+form.of(value)+"\n"), 0o644); err != nil {
		return fail(err)
	}
	req, _ := http.NewRequest(http.MethodGet, base+"/named", nil)
	req.Header.Set("X-Api-Key", value)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fail(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	fmt.Printf("named: %s\n", b)
	return 0
}

// serveLate answers playLate. What it says to the first request holds the value too: plain, in a stream, and packed.
func serveLate(value, form string) http.HandlerFunc {
	of := lateForms[form].of
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/note":
			io.WriteString(w, of(value))
		case "/v1/chat/completions":
			w.Header().Set("Content-Type", "text/event-stream")
			inPieces(w, "data: {\"delta\":\"you said "+of(value)+"\"}\n\n", 9)
		case "/first":
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(packedAs("gzip", "you sent "+string(body)))
		default:
			fmt.Fprintf(w, "right: %t", r.Header.Get("X-Api-Key") == value)
		}
	}
}

const (
	lateSecret = "cnry7Q2x9+p/m4Vt8KrW3nHd"
	otherLate  = "Zother1Y0v+j/Gd6BqTsEfA8"
)

// TestLateSecrets: a value that is written in many places before a header names it is in none of them afterwards, in no
// form, and a replay is green with the same value, with another and with none.
func TestLateSecrets(t *testing.T) {
	t.Parallel()
	forms := slices.Sorted(maps.Keys(lateForms))
	for i, where := range []string{"file", "argument", "variable", "stdin", "answer"} {
		for j, form := range forms {
			if !long && i%len(forms) != j { // each place in one form, each form in a place
				continue
			}
			t.Run(where+" "+form, func(t *testing.T) { testLate(t, where, form, false) })
		}
	}
	t.Run("outside the jail", func(t *testing.T) { testLate(t, "file", "base64", true) })
}

func testLate(t *testing.T, where, form string, proxy bool) {
	t.Parallel()
	b := newBench(t)
	clean := slices.Clip(b.env)
	srv := b.upstream("api.example.com", serveLate(lateSecret, form))
	text := lateForms[form].of(lateSecret)
	b.put("readme.md", "nothing\n")
	args := []string{"https://api.example.com", where, form}
	stdin := ""
	switch where {
	case "file":
		b.putNote(text)
		b.put("dump.sql.gz", string(packedAs("gzip", "INSERT '"+text+"';\n")))
	case "argument":
		args = append(args, "--user=ann:"+text)
	case "variable":
		b.env = append(b.env, "NOTE="+text)
	case "stdin":
		stdin = text + "\n"
	}
	argv, env := b.self("late", args...)
	var out printed
	res, err := deck.Record(context.Background(), &deck.RecordOptions{
		Argv: argv, Env: env, Dir: b.dir, Tree: b.dir, ConfigDir: b.config, Upstreams: b.hosts, Proxy: proxy,
		Streams: deck.Streams{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit.Code != 0 || !strings.Contains(out.String(), "right: true") {
		t.Fatalf("exit %d:\n%s", res.Exit.Code, &out)
	}
	srv.Close()
	os.Remove(filepath.Join(b.dir, "kept.txt"))
	lookFor(t, res.Recording.Dir, lateSecret)
	b.sound(res.Recording.Dir)
	for what, note := range map[string]string{"the same": text, "another": lateForms[form].of(otherLate), "no": ""} {
		if rare(what, "the same", "no") && where != "file" { // whose values are the program's own, wherever they came from
			continue
		}
		t.Run(what, func(t *testing.T) {
			b.t = t
			b.env = slices.Clone(clean)
			if note != "" {
				b.env = append(b.env, "NOTE="+note)
			}
			if where == "file" {
				b.putNote(note)
			}
			kept := filepath.Join(t.TempDir(), "replay")
			v, _ := b.replay(res.Recording, &deck.ReplayOptions{Out: kept, Env: b.env, Proxy: proxy})
			b.green(v)
			lookFor(t, kept, lateSecret)
			b.sound(kept)
			if where == "file" && what == "the same" && !proxy {
				v, _ := b.replay(res.Recording, &deck.ReplayOptions{TreeNow: true, Env: b.env})
				b.green(v)
			}
		})
	}
}

// put writes a file of the work tree.
func (b *bench) put(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// putNote writes the file in which the program finds its value; "" removes it.
func (b *bench) putNote(note string) {
	b.t.Helper()
	if note == "" {
		os.Remove(filepath.Join(b.dir, "config.json"))
		return
	}
	b.put("config.json", fmt.Sprintf(`{"service":"x","note":%q}`, note))
}

// sound fails the test where a recording does not verify, or holds a blob that nothing names.
func (b *bench) sound(dir string) {
	b.t.Helper()
	v, err := verified(dir)
	if err != nil || len(v.Problems) > 0 {
		b.t.Errorf("%s: %v, %v", dir, err, v.Problems)
	}
	all, err := filepath.Glob(filepath.Join(dir, "run.tape.cas", "*"))
	if err != nil {
		b.t.Fatal(err)
	}
	var texts bytes.Buffer
	for _, name := range []string{"run.tape", "tree.json", "recording.json", "workspace.diff"} {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		texts.Write(text)
	}
	for _, blob := range all {
		if !bytes.Contains(texts.Bytes(), []byte(filepath.Base(blob))) {
			b.t.Errorf("nothing names %s", blob)
		}
	}
}

func init() { programs["late env"] = playLateEnv }

// playLateEnv sends a value that only the .env which it writes then tells for a secret.
func playLateEnv(args []string) int {
	res, err := http.Post(args[0], "text/plain", strings.NewReader("create a project for "+args[1][4:]))
	if err != nil {
		return fail(err)
	}
	res.Body.Close()
	fmt.Println("created with", args[1][4:])
	if err := os.WriteFile(".env", []byte("API_KEY="+args[1][4:]+"\n"), 0o600); err != nil {
		return fail(err)
	}
	return 0
}

// TestLateCredentials: what a run writes into a file of credentials is a secret, wherever it stood before.
func TestLateCredentials(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "yes") })
	res, out := b.record("late env", "https://api.example.com", "for="+lateSecret)
	if res.Exit.Code != 0 || !strings.Contains(out, lateSecret) {
		t.Fatalf("exit %+v: %s", res.Exit, out)
	}
	lookFor(t, res.Recording.Dir, lateSecret)
	b.sound(res.Recording.Dir)
	v, _ := b.replay(res.Recording, &deck.ReplayOptions{})
	b.green(v)
}
