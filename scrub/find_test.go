package scrub_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

const findable = "GET https://ann:Xy7fQ0zpL2@db.internal/ key sk-ant-api03-Qm4xT9vLr2Wp8Zk1Nd5Hs7 and " +
	"Authorization: Bearer abcdef0123456789abcdef, ghp_0123456789abcdefghijABCDEFGHIJ456789 known-Value-17x.\n"

// TestFindTellsWhatBytesReplaces cuts the ranges out and expects the text that Bytes leaves between its placeholders.
func TestFindTellsWhatBytesReplaces(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"SOME_TOKEN=known-Value-17x"}})
	text := []byte(strings.Repeat(findable, 3))
	var left []byte
	at := int64(0)
	var rules []string
	for _, r := range s.Find(text) {
		left = append(append(left, text[at:r.Start]...), '#')
		rules = append(rules, r.Rule)
		at = r.End
	}
	left = append(left, text[at:]...)
	want := strings.Repeat("GET https://ann:#@db.internal/ key # and Authorization: Bearer #, # #.\n", 3)
	if string(left) != want {
		t.Errorf("left\n%s\nwant\n%s", left, want)
	}
	if got := rules[:5]; !reflect.DeepEqual(got, []string{"url_password", "anthropic", "bearer", "github", "some_token"}) {
		t.Errorf("rules %q", got)
	}
	if len(s.Counts()) > 0 {
		t.Errorf("counts placeholders that were not written: %v", s.Counts())
	}
}

// TestFinderTellsTheSameForAnySplit writes a stream in pieces.
func TestFinderTellsTheSameForAnySplit(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"SOME_TOKEN=known-Value-17x"}})
	text := []byte(strings.Repeat(findable, 20))
	want := s.Find(text)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var got []scrub.Range
		f := s.Finder(func(r scrub.Range) { got = append(got, r) })
		for rest := bytes.Clone(text); len(rest) > 0; {
			n := min(len(rest), 1+rng.IntN(90))
			f.Write(rest[:n])
			clear(rest[:n])
			rest = rest[n:]
		}
		f.Close()
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	}
}
