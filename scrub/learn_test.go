package scrub_test

import (
	"net/http"
	"strings"
	"testing"

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
