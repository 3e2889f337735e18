package deck

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestArgumentsTeachURLs: the token or password of a URL among the arguments is known wherever it stands.
func TestArgumentsTeachURLs(t *testing.T) {
	s := scrub.New(scrub.Key{1}, nil)
	learnArgs(s, []string{"clone", "https://7f3a9b2c4d5e6f708192a3b4@h/x.git", "--proxy", "http://ann:pr0xyp4ssword@p:3128"})
	for _, secret := range []string{"7f3a9b2c4d5e6f708192a3b4", "pr0xyp4ssword"} {
		if got := s.String("it is " + secret); strings.Contains(got, secret) {
			t.Errorf("%q is left", got)
		}
	}
}
