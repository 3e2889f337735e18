package deck_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
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
