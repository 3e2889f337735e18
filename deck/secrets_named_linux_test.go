package deck_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["named"] = playNamed }

// namedSecret is a secret that nothing but its name tells: a program makes it up, so that no variable and no file holds it.
func namedSecret(seed, kind string) string {
	sum := sha256.Sum256([]byte(seed + kind))
	return "c9" + base64.RawURLEncoding.EncodeToString(sum[:])[:22]
}

// asked are the ways in which a request names a secret: the type, and the body around it.
var asked = map[string]func(v string) (contentType, body string){
	"form": func(v string) (string, string) {
		return "application/x-www-form-urlencoded", "grant_type=refresh_token&refresh_token=" + url.QueryEscape(v)
	},
	"form as text": func(v string) (string, string) { return "text/plain", "client_secret=" + url.QueryEscape(v) },
	"JSON": func(v string) (string, string) {
		return "application/json", fmt.Sprintf(`{"user":{"name":"ann","password":"%s"}}`, quoted(v, 1))
	},
	"JSON of no type": func(v string) (string, string) { return "", fmt.Sprintf(`[{"apiKey" : "%s"}]`, quoted(v, 1)) },
	"parts": func(v string) (string, string) {
		var b bytes.Buffer
		m := multipart.NewWriter(&b)
		m.SetBoundary("a-boundary-that-stays-the-same")
		m.WriteField("client_secret", v)
		m.Close()
		return m.FormDataContentType(), b.String()
	},
}

// answered are the ways in which an answer does.
var answered = map[string]func(v string) (contentType, body string){
	"JSON": func(v string) (string, string) {
		return "application/json", fmt.Sprintf(`{"access_token":"%s","token_type":"bearer","said":"it is %s"}`, v, v)
	},
	"JSON as text": func(v string) (string, string) { return "text/plain", fmt.Sprintf("{\n  \"id_token\": %q\n}", v) },
	"form": func(v string) (string, string) {
		return "application/x-www-form-urlencoded", "access_token=" + v + "&token_type=bearer"
	},
	"event": func(v string) (string, string) {
		return "text/event-stream", "data: {\"n\":1}\n\nevent: message\ndata: {\"result\":{\"session_token\":\"" + v + "\"}}\n\n"
	},
	"line": func(v string) (string, string) {
		return "application/x-ndjson", "{\"n\":1}\n{\"password\":\"" + v + "\"}\n"
	},
	"compressed": func(v string) (string, string) { return "application/json", fmt.Sprintf(`{"client_secret":%q}`, v) },
}

// playNamed sends secrets that it makes of args[1], and uses those that it gets.
func playNamed(args []string) int {
	base, seed := args[0], args[1]
	for _, kind := range slices.Sorted(maps.Keys(asked)) {
		v := namedSecret(seed, kind)
		contentType, body := asked[kind](v)
		fmt.Println(kind, posted(base+"/asked", contentType, body, ""))
		fmt.Println(kind, posted(base+"/echo?q="+url.QueryEscape(v), "text/plain", all(v), ""))
		fmt.Println(all(v))
		os.WriteFile("written.txt", []byte(all(v)), 0o644)
	}
	for _, kind := range slices.Sorted(maps.Keys(answered)) {
		got := posted(base+"/answered/"+url.PathEscape(kind), "", "", "")
		v := valueIn(got)
		fmt.Println(kind, "gave", v)
		fmt.Println(kind, posted(base+"/use/"+v, "text/plain", all(v), "Bearer "+v))
	}
	return 0
}

// valueIn is the secret in an answer: what stands behind the name.
func valueIn(answer string) string {
	for _, name := range []string{"access_token", "id_token", "session_token", "password", "client_secret"} {
		if _, after, ok := strings.Cut(answer, name); ok {
			after = strings.TrimLeft(after, `"=: `)
			if end := strings.IndexAny(after, `"&`); end > 0 {
				return after[:end]
			}
		}
	}
	return "NOTHING in " + answer
}

func posted(url, contentType, body, authorization string) string {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "FAILED " + err.Error()
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "FAILED " + err.Error()
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return fmt.Sprintf("FAILED %d %.300s", res.StatusCode, b)
	}
	return string(b)
}

// serveNamed gives secrets of its own seed, and what it was sent to who sent it.
func serveNamed(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	kind, gives := strings.CutPrefix(r.URL.Path, "/answered/")
	if !gives {
		fmt.Fprintf(w, "%s %s %s", r.URL, r.Header.Get("Authorization"), body)
		return
	}
	contentType, answer := answered[kind](namedSecret("upstream", kind))
	w.Header().Set("Content-Type", contentType)
	if kind == "compressed" {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packedAs("gzip", answer))
		return
	}
	if contentType == "text/event-stream" || contentType == "application/x-ndjson" {
		at := strings.Index(answer, "\n") + 1
		io.WriteString(w, answer[:at])
		w.(http.Flusher).Flush()
		answer = answer[at:]
	}
	io.WriteString(w, answer)
}

// TestNamedSecrets: a secret that nothing but a name in a body gives away reaches the recording in no place and no disguise, and
// its replay is green with the same secret and with another.
func TestNamedSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	srv := b.upstream("api.example.com", serveNamed)
	res, out := b.record("named", "https://api.example.com", "one")
	if res.Exit.Code != 0 || strings.Contains(out, "FAILED") || strings.Contains(out, "NOTHING") {
		t.Fatalf("exit %d:\n%s", res.Exit.Code, out)
	}
	srv.Close()
	canaries := func(dir string, seeds ...string) {
		for kind := range answered {
			v := namedSecret("upstream", kind)
			if !strings.Contains(out, v) {
				t.Errorf("%s: the program did not get its own bytes", kind)
			}
			lookFor(t, dir, v)
		}
		for kind := range asked {
			for _, seed := range seeds {
				lookFor(t, dir, namedSecret(seed, kind))
			}
		}
	}
	canaries(res.Recording.Dir, "one")
	for _, seed := range []string{"one", "two"} {
		argv, _ := b.self("named", "https://api.example.com", seed)
		kept := t.TempDir() + "/replay"
		v, again := b.replay(res.Recording, &deck.ReplayOptions{Argv: argv, Out: kept})
		if !v.Faithful() || strings.Contains(again, "FAILED") {
			var text bytes.Buffer
			v.WriteText(&text, nil)
			t.Errorf("replayed with %s:\n%s\n%.2000s", seed, &text, again)
		}
		for kind := range asked {
			if mine := namedSecret(seed, kind); !strings.Contains(again, "echo?q="+url.QueryEscape(mine)) {
				t.Errorf("%s: the answer does not hold the program's own secret", kind)
			}
		}
		canaries(kept, "one", "two")
	}
}

func init() { programs["oauth"] = playOAuth }

// playOAuth gets a token for its refresh token, which a variable holds whose name says nothing, and asks for something with it.
func playOAuth(args []string) int {
	mine := os.Getenv("MAIL_LOGIN")
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {mine}, "client_id": {"app"}, "client_secret": {mine + "/+secret"}}
	answer := posted(args[0]+"/token", "application/x-www-form-urlencoded", form.Encode(), "")
	var got struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		return fail(fmt.Errorf("%w: %s", err, answer))
	}
	fmt.Println("the same refresh token:", got.Refresh == mine)
	fmt.Println(posted(args[0]+"/mail", "", "", "Bearer "+got.Access))
	form.Set("refresh_token", got.Refresh)
	fmt.Println(posted(args[0]+"/again", "application/x-www-form-urlencoded", form.Encode(), ""))
	return 0
}

// TestOAuth: the flow replays in a closed world; the token that the program got on the replay is what it sends.
func TestOAuth(t *testing.T) {
	t.Parallel()
	const access, refresh = "ya7Q2x9ZpLm4Vt8KrW3nHdJx5", "1//0cK5Rt8Wq1Lz0pXv3BgTyUj"
	b := newBench(t)
	srv := b.upstream("login.example.com", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			r.ParseForm()
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"expires_in":3599,"token_type":"Bearer"}`, access, r.PostForm.Get("refresh_token"))
			return
		}
		if auth := r.Header.Get("Authorization"); r.URL.Path == "/mail" && auth != "Bearer "+access {
			t.Errorf("authorized by %q", auth)
		}
		io.WriteString(w, "three letters")
	})
	clean := b.env
	b.env = slices.Concat(clean, []string{"MAIL_LOGIN=" + refresh})
	res, out := b.record("oauth", "https://login.example.com")
	if res.Exit.Code != 0 || !strings.Contains(out, "token: true\nthree letters") {
		t.Fatalf("exit %d: %s", res.Exit.Code, out)
	}
	srv.Close()
	lookFor(t, res.Recording.Dir, access)
	lookFor(t, res.Recording.Dir, refresh)
	for what, env := range map[string][]string{
		"the same": b.env, "another": slices.Concat(clean, []string{"MAIL_LOGIN=1//0another-of+another/length"}), "no": clean,
	} {
		v, again := b.replay(res.Recording, &deck.ReplayOptions{Env: env})
		if again != out || !v.Faithful() {
			var text bytes.Buffer
			v.WriteText(&text, nil)
			t.Errorf("with %s refresh token:\n%s%s", what, again, &text)
		}
	}
}
