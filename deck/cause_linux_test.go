package deck_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() {
	programs["ask"] = playAsk
	programs["nonce"] = playNonce
}

// playAsk sends what stands in ask.txt, upper case, to the URL and keeps the answer.
func playAsk(args []string) int {
	b, err := os.ReadFile("ask.txt")
	if err != nil {
		return fail(err)
	}
	if len(args) > 1 { // nothing of the file stands in the request
		b = fmt.Appendf(nil, "%d bytes", len(b))
	}
	return send(args[0], string(b))
}

// playNonce sends what is another thing in every run.
func playNonce(args []string) int { return send(args[0], "nonce "+strings.ToLower(rand.Text())) }

func send(url, text string) int {
	res, err := http.Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"prompt":%q}`, text)))
	if err != nil {
		return fail(err)
	}
	b, err := io.ReadAll(res.Body)
	if res.Body.Close(); err != nil {
		return fail(err)
	}
	if err := os.WriteFile("answer.txt", b, 0o644); err != nil {
		return fail(err)
	}
	return 0
}

// verdictText is a verdict as people read it.
func verdictText(t *testing.T, v *deck.Verdict) string {
	t.Helper()
	var b bytes.Buffer
	if err := v.WriteText(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCauseInTheTreeOfNow: the verdict of a replay over the work tree as it is now names the file that was edited, whether
// its text stands in what differs or not.
func TestCauseInTheTreeOfNow(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"https://api.example.com/ask"}, {"https://api.example.com/ask", "length"}} {
		b := newBench(t)
		b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "answer") })
		b.put("ask.txt", "tell me of rivers")
		res, _ := b.record("ask", args...)
		b.put("ask.txt", "tell me of mountains")
		b.put("answer.txt", "edited too")
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{TreeNow: true})
		text := verdictText(t, v)
		want := `follows from the file ask.txt, in which the work trees differ, where "mountains" first appears`
		if len(args) > 1 {
			want = "nothing before it differs but what the runs were given: the file ask.txt, the file answer.txt"
		}
		if v.Faithful() || !strings.Contains(text, want) || strings.Contains(text, "nothing before it differs, so") {
			t.Errorf("the verdict does not name the file:\n%s", text)
		}
	}
}

// TestUnseenScript: of a file that the command line names and nothing compares the verdict does not say that it is as recorded.
func TestUnseenScript(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "answer") })
	b.realTime = true
	b.put("in.py", "1")
	script := filepath.Join(t.TempDir(), "agent.py")
	if err := os.WriteFile(script, []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	res, _ := b.record("nonce", "https://api.example.com/ask", "in.py", script)
	v, _ := b.replay(res.Recording, nil)
	if text, want := verdictText(t, v), "are as recorded, but what stands in "+script+" is not compared"; !strings.Contains(text, want) {
		t.Errorf("want %q in\n%s", want, text)
	}
}

// TestWhatTheProgramMakesUp: where all that the program was given is as recorded, the verdict says that what differs is its
// own doing, and what makes it compare; where something else may be the reason, it does not.
func TestWhatTheProgramMakesUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "answer") })
	b.realTime = true
	res, _ := b.record("nonce", "https://api.example.com/ask")
	argv, _ := b.self("nonce", "https://api.example.com/ask")
	for name, o := range map[string]*deck.ReplayOptions{
		"as recorded": {}, "tree now": {TreeNow: true}, "another command": {Argv: argv},
	} {
		v, _ := b.replay(res.Recording, o)
		text := verdictText(t, v)
		if said := strings.Contains(text, "a mask in tapedeck.yaml"); v.Faithful() || said != (name == "as recorded") {
			t.Errorf("%s: a mask is advised: %v\n%s", name, said, text)
		}
	}
	o := deck.ReplayOptions{Proxy: true}
	if v, _ := b.replay(res.Recording, &o); strings.Contains(verdictText(t, v), "a mask in tapedeck.yaml") {
		t.Error("outside the jail the environment is another")
	}
}
