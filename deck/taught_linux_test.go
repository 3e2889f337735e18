package deck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["taught"] = playTaught }

// playTaught gets a token and an id from args[0], and asks for both without their names.
func playTaught(args []string) int {
	b, err := get(args[0] + "/token")
	if err != nil {
		return fail(err)
	}
	var answer map[string]string
	if err := json.Unmarshal(b, &answer); err != nil {
		return fail(err)
	}
	token, id := answer["jira_api_token"], answer["jira_account_id"]
	for _, path := range []string{"/user/" + id, "/with/" + token, "/?q=" + token + "&id=" + id} {
		if b, err = get(args[0] + path); err != nil {
			return fail(err)
		}
		fmt.Printf("%s\n", b)
	}
	res, err := http.Post(args[0], "text/plain", strings.NewReader("it is "+token))
	if err != nil {
		return fail(err)
	}
	defer res.Body.Close()
	echo, err := io.ReadAll(res.Body)
	fmt.Println("status", res.StatusCode, "as sent:", string(echo) == "it is "+token, err)
	return 0
}

// TestAnswerTeaches: a token that an answer names is hidden where the program sends it without the name, an id of the same
// form stays, and a replay asks for the same, with another secret beside and without.
func TestAnswerTeaches(t *testing.T) {
	t.Parallel()
	const token, id, canary = "5b10ac8d82e05b22cc7d4ef5", "9f21bd7e93f16c33dd8e5fa6", "sk-canary-7Q2x9ZpLm4Vt8KrW3nHd"
	for name, env := range map[string][]string{"no other secret": nil, "another secret": {"CANARY_API_KEY=" + canary}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.env = slices.Concat(b.env, env)
			b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					fmt.Fprintf(w, `{"jira_account_id":%q,"jira_api_token":%q}`, id, token)
					return
				}
				if r.Method == http.MethodGet {
					fmt.Fprintf(w, "this is %s", r.URL.Path)
					return
				}
				io.Copy(w, r.Body)
			})
			res, out := b.record("taught", "https://api.example.com")
			if res.Exit.Code != 0 || !strings.Contains(out, "as sent: true") || !strings.Contains(out, "/with/"+token) {
				t.Fatalf("exit %d: %s", res.Exit.Code, out)
			}
			searchFor(t, res.Recording.Dir, token)
			v, out := b.replay(res.Recording, &deck.ReplayOptions{})
			if !v.Faithful() || !strings.Contains(out, "as sent: true") || !strings.Contains(out, "/user/"+id) {
				var text bytes.Buffer
				v.WriteText(&text, nil)
				t.Errorf("%s\n%s", &text, out)
			}
		})
	}
}
