package deck_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
)

func init() {
	programs["cookies"] = playCookies
	programs["prints keys.txt"] = playKeys
}

// cookieValues are session cookies of every length, two of which differ in a digit alone.
var cookieValues = []string{"7", "4", "ab", "f3Q", "ab12", "4821", "x9-Qz", "a1b2c3", "Zx9QvT2", "Zx9QvT2m", "eyJ1IjoxfQ.ZkQ-9aT2mKw7Lp4Rn"}

// documents hold keys as documents show them, and some that might be one.
const (
	examples = "AKIAIOSFODNN7EXAMPLE ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk_test_4eC39HqLyjWDarjtT1zdp7dc\n" +
		"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c\n"
	genuine = "AKIAIOSFODNN7QZX23YV ghp_Zk2Lm9Qw4Rt7Yp3Bn6Vc1Xd8Sf5Gh0JTq3W4 sk-ant-api03-f8Jk2Lm9Qw4Rt7Yp3Bn6Vc1X\n" +
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U\n" +
		"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx7Gh29KdmqPvZ1c0\nq83Jd91kMIIEpAIBAAKCAQEAx7Gh29Kd\nabcd==\n-----END RSA PRIVATE KEY-----\n"
	remoteToken = "7f3a9b2c4d5e6f708192a3b4"
)

// playCookies gets cookies and documents from args[0], reads files, and says of all how long they are and that what it
// sends is what it got.
func playCookies(args []string) int {
	res, err := http.Get(args[0] + "/login")
	if err != nil {
		return fail(err)
	}
	res.Body.Close()
	seen := make(map[string]bool)
	for _, c := range res.Cookies() {
		fmt.Println(c.Name, len(c.Value), strings.HasPrefix(c.Value, "td_"), seen[c.Value])
		seen[c.Value] = true
		req, _ := http.NewRequest("GET", args[0]+"/with", nil)
		req.AddCookie(c)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return fail(err)
		}
		b, err := io.ReadAll(res.Body)
		fmt.Println(res.StatusCode, len(b), res.ContentLength, bytes.Contains(b, []byte(c.Value)), err)
		if len(c.Value) >= 8 { // in other places and disguises too
			for _, text := range []string{c.Value, base64.StdEncoding.EncodeToString([]byte("sid=" + c.Value))} {
				if _, err := http.Post(args[0]+"/echo", "text/plain", strings.NewReader(text)); err != nil {
					return fail(err)
				}
			}
		}
	}
	for _, path := range []string{"/examples", "/genuine"} {
		res, err := http.Get(args[0] + path)
		if err != nil {
			return fail(err)
		}
		b, err := io.ReadAll(res.Body)
		fmt.Println(path, res.StatusCode, len(b), res.ContentLength, bytes.Contains(b, []byte("td_")), err)
		fmt.Printf("%s\n", b)
	}
	for _, name := range []string{"README.md", "keys.txt", ".git/config"} {
		b, err := os.ReadFile(name)
		fmt.Println(name, len(b), bytes.Contains(b, []byte("td_")), err)
		fmt.Printf("%s\n", b)
	}
	return 0
}

// TestSecretsOfTheTraffic: where a replay cannot know a secret that an answer or a file brought, the program gets one of its
// shape and length, that works: it sends it back and is answered. Examples of documents are no secrets.
func TestSecretsOfTheTraffic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login":
			for i, v := range cookieValues {
				http.SetCookie(w, &http.Cookie{Name: fmt.Sprintf("c%d", i), Value: v, Path: "/", HttpOnly: true})
			}
		case "/with":
			c := r.Cookies()[0]
			if len(c.Value) >= 8 {
				fmt.Fprintf(w, "hello, %s", c.Value)
			}
		case "/examples":
			io.WriteString(w, examples)
		case "/genuine":
			io.WriteString(w, genuine)
		}
	})
	put := func(name, text string) {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gitConfig := "[remote \"origin\"]\n\turl = https://" + remoteToken + "@github.com/a/b.git\n"
	put("README.md", examples)
	put("keys.txt", genuine)
	put(".git/config", gitConfig)
	for _, round := range []string{"the first", "another, whose files come from the first"} {
		res, out := b.record("cookies", "https://api.example.com")
		if res.Exit.Code != 0 || strings.Contains(out, "true true") {
			t.Fatalf("exit %d: %s", res.Exit.Code, out)
		}
		for _, v := range append(strings.Fields(genuine)[:4], remoteToken, cookieValues[len(cookieValues)-1]) {
			searchFor(t, res.Recording.Dir, v)
		}
		v, again := b.replay(res.Recording, &deck.ReplayOptions{})
		b.green(v)
		if len(again) != len(out) || strings.Contains(again, "td_") {
			t.Errorf("%s: the program saw %q, recorded was %q", round, again, out)
		}
		put("keys.txt", "gone\n")
		put(".git/config", "gone\n")
		v, again = b.replay(res.Recording, &deck.ReplayOptions{})
		b.green(v)
		if len(again) != len(out) || strings.Contains(again, "td_") || strings.Contains(again, "gone") {
			t.Errorf("%s, without the files: the program saw %q, recorded was %q", round, again, out)
		}
		put("keys.txt", genuine)
		put(".git/config", gitConfig)
	}
}

// playKeys prints keys.txt.
func playKeys([]string) int {
	b, err := os.ReadFile("keys.txt")
	if err != nil {
		return fail(err)
	}
	fmt.Printf("%s", b)
	return 0
}

// TestSecretsOfTheTreeOfNow: a kept replay over the work tree as it is now lists what its secrets look like, so that its own
// replay, which lacks them, makes them up.
func TestSecretsOfTheTreeOfNow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.put("keys.txt", "nothing\n")
	res, _ := b.record("prints keys.txt")
	b.put("keys.txt", genuine)
	kept := filepath.Join(t.TempDir(), "kept.rec")
	if v, _ := b.replay(res.Recording, &deck.ReplayOptions{TreeNow: true, Out: kept}); v.Faithful() {
		t.Error("another file was printed, and the replay is faithful")
	}
	lookFor(t, kept, strings.Fields(genuine)[1])
	b.put("keys.txt", "gone\n")
	rec, err := recording.Open(kept)
	if err != nil {
		t.Fatal(err)
	}
	v, out := b.replay(rec, nil)
	b.green(v)
	if len(out) != len(genuine) || strings.Contains(out, "td_") || strings.Contains(out, strings.Fields(genuine)[1]) {
		t.Errorf("the program saw %q", out)
	}
}
