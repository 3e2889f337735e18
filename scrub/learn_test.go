package scrub_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestLearnHeader: what one header names as a secret is hidden in the others, in the URL and in the body of its message.
func TestLearnHeader(t *testing.T) {
	const canary = "cnry7Zx9QvT2mKw7"
	for _, h := range []http.Header{
		{"X-Api-Key": {canary}},
		{"Authorization": {"Bearer " + canary}},
		{"Authorization": {"Custom " + canary}},
		{"Cookie": {"sid=" + canary}},
		{"Location": {"https://h/cb?access_token=" + canary}},
		{"Referer": {"https://user:" + canary + "@h/"}},
	} {
		s := scrub.New(testKey, nil)
		s.LearnHeader(h)
		if n := len(s.Counts()); n > 0 {
			t.Errorf("%v: learning counts %d placeholders as written", h, n)
		}
		for _, got := range []string{s.Header("Accept", "a "+canary), s.URL("https://h/" + canary + "?q=1"), s.String(`{"a":"` + canary + `"}`)} {
			if strings.Contains(got, canary) || !strings.Contains(got, "td_") {
				t.Errorf("%v: %s", h, got)
			}
		}
	}
}

// TestURLTeaches: a secret of a query or of userinfo is found elsewhere from then on; in the rest of the same URL already.
func TestURLTeaches(t *testing.T) {
	const canary = "cnry7Zx9QvT2mKw7"
	for _, u := range []string{
		"https://h/" + canary + "/x?q=" + canary + "&api_key=" + canary,
		"https://u:" + canary + "@h/" + canary,
		"https://" + canary + "@h/" + canary,
		"https://h/" + canary + "#access_token=" + canary,
	} {
		s := scrub.New(testKey, nil)
		for _, got := range []string{s.URL(u), s.String("so it is " + canary), s.Header("X-Plain", canary)} {
			if strings.Contains(got, canary) {
				t.Errorf("%s: %s", u, got)
			}
		}
	}
	s := scrub.New(testKey, nil)
	for range 2 {
		s.URL("https://h/?token=short&X-Amz-Signature=" + canary)
	}
	if got := s.String("short " + canary); got != "short "+canary {
		t.Errorf("a short value or a signature of one request was learnt: %s", got)
	}
}

// contextual are the shapes whose secrets are told by the name before them.
func contextual() (out []scrub.Leak) {
	for _, l := range scrub.Leaks() {
		if l.Assigned {
			out = append(out, l)
		}
	}
	return out
}

// written is what a Writer of s makes of text.
func written(s *scrub.Scrubber, text string, piece func(left int) int) string {
	var out strings.Builder
	w := s.Writer(&out)
	for rest := []byte(text); len(rest) > 0; {
		n := piece(len(rest))
		w.Write(rest[:n])
		rest = rest[n:]
	}
	w.Close()
	return out.String()
}

// TestContextTeaches: what an answer names as a secret, the program sends on without its name. It is hidden there too, and a
// replay, which sends what the recorded answer has, sends the same.
func TestContextTeaches(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, l := range contextual() {
		secret := secretOf(rng, l)
		record, replay := scrub.New(testKey, nil), scrub.New(testKey, nil)
		stored := written(record, `{"`+l.Name+`_key":"`+secret+`","n":1}`, func(n int) int { return (n + 1) / 2 })
		_, after, _ := strings.Cut(stored, `_key":"`)
		given, _, _ := strings.Cut(string(replay.Reveal([]byte(after))), `"`)
		asked, again := record.URL("https://h/user/"+secret+"/x"), replay.URL("https://h/user/"+given+"/x")
		if strings.Contains(asked, secret[len(secret)/2:]) || string(scrub.Renumber([]byte(asked))) != string(scrub.Renumber([]byte(again))) {
			t.Errorf("%s: %s: recorded %s, replayed %s", l.ID, stored, asked, again)
		}
	}
}

// TestFilesTeachNothing: they are scrubbed in no order, and what is found in one must not depend on another.
func TestFilesTeachNothing(t *testing.T) {
	const secret = "a1b2c3d4e5f6a7b8c9d0e1f2"
	s := scrub.New(testKey, nil)
	s.Bytes([]byte("jira_api_token=" + secret))
	if got := s.String("is " + secret); got != "is "+secret {
		t.Error(got)
	}
	s.LearnBytes([]byte("jira_api_token=" + secret))
	if got := s.String("is " + secret); strings.Contains(got, secret) {
		t.Error(got)
	}
}

// TestLearningAnySplit: a stream with secrets that come again is scrubbed alike however it is cut, and as a whole.
func TestLearningAnySplit(t *testing.T) {
	leaks := contextual()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		var values []string
		var b strings.Builder
		for range rapid.IntRange(1, 6).Draw(t, "parts") {
			if len(values) > 0 && rapid.Bool().Draw(t, "again") {
				b.WriteString(rapid.SampledFrom(values).Draw(t, "value"))
			} else {
				l := rapid.SampledFrom(leaks).Draw(t, "leak")
				values = append(values, secretOf(rng, l))
				b.WriteString(rapid.SampledFrom([]string{"", values[0] + " "}).Draw(t, "before"))
				b.WriteString(l.Name + `_key": "` + values[len(values)-1])
			}
			b.WriteString(rapid.SampledFrom([]string{`"`, `" `, "\n", "/", "&a="}).Draw(t, "glue"))
		}
		whole, _ := scrub.New(testKey, nil).LearnBytes([]byte(b.String()))
		parts := written(scrub.New(testKey, nil), b.String(), func(n int) int { return rapid.IntRange(1, n).Draw(t, "piece") })
		if parts != string(whole) {
			t.Fatalf("%q\n  whole %q\nin parts %q", b.String(), whole, parts)
		}
	})
}
