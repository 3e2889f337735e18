package scrub_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

const lateValue = "late7Q2x9ZpLm4Vt8KrW3nHd"

// TestSince: what became known after a mark is found, by the same placeholder, and nothing else is looked for.
func TestSince(t *testing.T) {
	const early = "sk-ant-REDACTED"
	s := scrub.New(testKey, &scrub.Options{Env: []string{"FIRST_API_KEY=frst7Q2x9ZpLm4Vt8KrW3nHd"}})
	mark := s.Mark()
	if s.Since(mark) != nil {
		t.Error("nothing became known, and something is looked for")
	}
	s.LearnHeader(map[string][]string{"X-Api-Key": {lateValue}})
	late := s.Since(mark)
	text := "a " + lateValue + ", frst7Q2x9ZpLm4Vt8KrW3nHd and " + early
	out, found := late.Bytes([]byte(text))
	want := strings.Replace(text, lateValue, s.String(lateValue), 1)
	if !found || string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
	if again, found := late.Bytes(out); found || !bytes.Equal(again, out) {
		t.Errorf("twice: %q", again)
	}
	if late := s.Since(s.Mark()); late != nil {
		t.Error("nothing became known since, and something is looked for")
	}
}

// TestSinceLearnsNothing: what is scrubbed once more does not make known what the first time did not.
func TestSinceLearnsNothing(t *testing.T) {
	s := scrub.New(testKey, nil)
	mark := s.Mark()
	s.AddSecret("token", lateValue)
	late := s.Since(mark)
	for i, teach := range []func(value string){
		func(v string) { late.LearnHeader(map[string][]string{"X-Api-Key": {v}}) },
		func(v string) { learnNamed(late, "token", v) },
		func(v string) { late.LearnBytes([]byte("twitter_api_key = \"" + v + "\"\n")) },
		func(v string) { late.LearnVar("MY_API_KEY", v) },
		func(v string) { late.Env([]string{"MY_API_KEY=" + v}) },
		func(v string) { late.AddSecret("token", v) },
		func(v string) { late.Header("Cookie", "sid="+v) },
		func(v string) { late.URL("https://h/?token=" + v) },
	} {
		value := fmt.Sprintf("nk4Xw2Lk9Vb4Nm6Tr8Y%d", i)
		teach(value)
		if out, found := late.Bytes([]byte("a " + value)); found {
			t.Errorf("%d: %q", i, out)
		}
	}
	if got := late.Header("X-Api-Key", "hd4Xw2Lk9Vb4Nm6Tr8Yp"); !strings.HasPrefix(got, "td_x_api_key_") {
		t.Errorf("in its own place: %q", got)
	}
	if got := late.String(lateValue); got != s.String(lateValue) {
		t.Errorf("what it looks for: %q", got)
	}
}

// TestPlaceholdersTeachNothing: a replay's headers hold placeholders; they are no values, and use up no room for some.
func TestPlaceholdersTeachNothing(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	mark := s.Mark()
	for i := range 600 {
		s.Header("x-api-key", scrub.New(testKey, nil).Header("x-api-key", lateValue+strings.Repeat("x", i)))
	}
	if s.Since(mark) != nil || len(s.NotCovered()) > 0 {
		t.Errorf("placeholders were learnt; not covered: %v", s.NotCovered())
	}
}

// TestLearnFromDisguises: a file in which a secret stood in a disguise alone teaches it, as long as it is the recorded one.
func TestLearnFromDisguises(t *testing.T) {
	const value = `cn"ry7Q 2x9+p/4V8<W3n#d`
	forms := map[string]string{
		"plain": value, "hex": hex.EncodeToString([]byte(value)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(value))),
		"percent": url.PathEscape(value), "query": url.QueryEscape(value), "twice": url.QueryEscape(url.PathEscape(value)),
	}
	for shift, before := range []string{"", "u", "me"} {
		forms[fmt.Sprint("base64 at ", shift)] = base64.StdEncoding.EncodeToString([]byte(before + value + ":rest"))
		forms[fmt.Sprint("base64url at ", shift)] = base64.RawURLEncoding.EncodeToString([]byte(before + value + "?"))
		forms[fmt.Sprint("base64 at the end, at ", shift)] = base64.StdEncoding.EncodeToString([]byte(before + value))
	}
	quoted, _ := json.Marshal(value)
	forms["JSON"] = string(quoted)
	forms["base64 in lines"] = forms["base64 at 1"][:12] + "\n" + forms["base64 at 1"][12:24] + "\n" + forms["base64 at 1"][24:]
	for name, text := range forms {
		real := []byte("first: <" + text + ">, and more\n")
		s := scrub.New(testKey, nil)
		s.AddSecret("x_api_key", value)
		stored, found := s.Bytes(real)
		if !found {
			t.Errorf("%s: not found in %q", name, real)
			continue
		}
		replay := scrub.New(testKey, nil)
		replay.LearnFrom(stored, real)
		if got := replay.String(value); got != s.String(value) {
			t.Errorf("%s: %q stored as %q teaches nothing: %q", name, real, stored, got)
		}
	}
}
