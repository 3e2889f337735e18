package scrub_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestFirstName: what a shape finds first keeps that name where a header or a name tells it later, in the run and in its replay,
// which knows it from the beginning.
func TestFirstName(t *testing.T) {
	const token = "ghp_Kq7Xw2Lk9Vb4Nm6Tr8Yp3Zc5Hd1Jf0Gs2A4e"
	later := map[string]func(s *scrub.Scrubber, value string) string{
		"a header": func(s *scrub.Scrubber, v string) string { return s.Header("Authorization", "Bearer "+v) },
		"a URL":    func(s *scrub.Scrubber, v string) string { return s.URL("https://h/?api_key=" + v) },
		"a name": func(s *scrub.Scrubber, v string) string {
			s.LearnAll([]scrub.Named{{Name: "access_token", Value: v}})
			return s.String(v)
		},
		"a text": func(s *scrub.Scrubber, v string) string { b, _ := s.LearnBytes([]byte(v)); return string(b) },
	}
	for what, tell := range later {
		s := scrub.New(testKey, nil)
		s.String("your token is " + token)
		was := tell(s, token) + s.String(" "+token+" ")
		if !strings.Contains(was, "td_github_") || strings.Count(was, "td_") != strings.Count(was, "td_github_") {
			t.Errorf("%s: %s", what, was)
		}
		replay := scrub.New(testKey, nil)
		dummies := scrub.DummiesOf(s.Found(), func(string) bool { return false })
		if len(dummies) != 1 {
			t.Fatalf("%s: %d dummies", what, len(dummies))
		}
		replay.AddDummies(dummies)
		value := dummies[0].Value
		if now := tell(replay, value) + replay.String(" "+value+" "); now != was {
			t.Errorf("%s: recorded %s, replayed %s", what, was, now)
		}
	}
}
