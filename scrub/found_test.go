package scrub_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// none is of a replay that has no other secrets.
func none(string) bool { return false }

// madeUp returns a scrubber of a replay that lacks what s found, and what it gives for each placeholder.
func madeUp(t *testing.T, s *scrub.Scrubber) (*scrub.Scrubber, map[string]string) {
	t.Helper()
	replay := scrub.New(scrub.Key{8}, nil)
	values := make(map[string]string)
	dummies := scrub.DummiesOf(s.Found(), none)
	if len(dummies) != len(s.Found()) {
		t.Fatalf("%d dummies for %+v", len(dummies), s.Found())
	}
	for _, d := range dummies {
		values[d.Placeholder] = d.Value
	}
	replay.AddDummies(dummies)
	return replay, values
}

// TestFoundHaveDummies: a secret that a text brought has a dummy as long as it is, which what found it finds.
func TestFoundHaveDummies(t *testing.T) {
	texts := []string{
		"https://h/?a=b https://7f3a9b2c4d5e6f708192a3b4@h/x", strings.ReplaceAll("k="+pem+"\n", "\n", "\r\n"),
		`{"k":"` + strings.ReplaceAll(pem, "\n", `\n`) + `"}`, `{"k":"` + strings.ReplaceAll(pem, "\n", `\r\n`) + `"}`,
		"-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIGVxWk1Q9Lm\n-----END EC PRIVATE KEY-----\n",
		"eyJhbGciOiJIUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJhbm4iLCJleHAiOjE3MDAwMDAwMDB9.dozjgNryP4J3jVmNHl0w5N",
	}
	for _, tt := range shapes {
		texts = append(texts, tt.text)
	}
	for _, text := range texts {
		s := scrub.New(testKey, nil)
		recorded := s.String(text)
		if recorded == text {
			t.Fatalf("%q holds no secret", text)
		}
		replay, _ := madeUp(t, s)
		given := string(replay.Reveal([]byte(recorded)))
		if len(given) != len(text) || given == text || strings.Contains(given, "td_") {
			t.Errorf("%q is given as %q", text, given)
		}
		if again := replay.String(given); again != recorded {
			t.Errorf("recorded %q, replayed %q", recorded, again)
		}
	}
}

// TestCookiesHaveDummies: the cookies of an answer, whatever their length, come back as other ones of the same length, as
// many as there were, and what is sent of them reads as recorded.
func TestCookiesHaveDummies(t *testing.T) {
	s := scrub.New(testKey, nil)
	var set, recorded []string
	for i := range 10 {
		set = append(set, fmt.Sprintf("n%d=%d; Path=/", i, i))
	}
	for n := 1; n <= 40; n++ {
		set = append(set, fmt.Sprintf("c%d=%s; HttpOnly", n, strings.Repeat("aB3-", n)[:n]))
	}
	for _, c := range set {
		recorded = append(recorded, s.Header("Set-Cookie", c))
	}
	replay, _ := madeUp(t, s)
	seen := make(map[string]bool)
	for i, c := range set {
		given := string(replay.Reveal([]byte(recorded[i])))
		name, value, _ := strings.Cut(strings.Split(given, ";")[0], "=")
		if len(given) != len(c) || strings.HasPrefix(value, "td_") || seen[value] {
			t.Errorf("%q is given as %q", c, given)
		}
		seen[value] = true
		if again := replay.Header("Set-Cookie", given); again != recorded[i] {
			t.Errorf("recorded %q, replayed %q", recorded[i], again)
		}
		sent := s.Header("Cookie", strings.Split(c, ";")[0])
		if again := replay.Header("Cookie", name+"="+value); again != sent {
			t.Errorf("sent %q, replayed %q", sent, again)
		}
		if len(value) < 8 {
			continue
		}
		in := func(v string) string { return base64.StdEncoding.EncodeToString([]byte("sid="+v)) + " " + v }
		original := strings.TrimPrefix(strings.Split(c, ";")[0], name+"=")
		if got, want := replay.String(in(value)), s.String(in(original)); got != want {
			t.Errorf("%q elsewhere: recorded %q, replayed %q", original, want, got)
		}
	}
}

// TestTrueValueGoesBefore: once the replay meets the secret itself, answers give that, and both read the same.
func TestTrueValueGoesBefore(t *testing.T) {
	const value = "Zx9QvT2mKw7Lp4Rn"
	s := scrub.New(testKey, nil)
	recorded := s.Header("Authorization", "Bearer "+value)
	replay := scrub.New(testKey, nil)
	dummies := scrub.DummiesOf(s.Found(), none)
	replay.AddDummies(dummies)
	if got := string(replay.Reveal([]byte(recorded))); len(dummies) != 1 || got != "Bearer "+dummies[0].Value {
		t.Errorf("without the secret %q is given", got)
	}
	if again := replay.Header("Authorization", "Bearer "+value); again != recorded {
		t.Errorf("recorded %q, replayed %q", recorded, again)
	}
	if got := string(replay.Reveal([]byte(recorded))); got != "Bearer "+value {
		t.Errorf("with the secret %q is given", got)
	}
}

// TestDummyOfDamage: what no scrubber wrote makes no dummy, and no panic.
func TestDummyOfDamage(t *testing.T) {
	const placeholder = "td_a_0123456789ab"
	for _, f := range []scrub.Secret{
		{}, {Placeholder: "x", Shape: ":8:a"}, {Placeholder: "td_a_0123456789ab", Shape: ":99999999:a"},
		{Placeholder: "td_a_0123456789ab", Shape: "pem:A:n:99999999"}, {Placeholder: "td_a_0123456789ab", Shape: "jwt:600000.600000.1"},
		{Placeholder: "td_a_0123456789ab", Shape: ":0:"},
	} {
		if made := scrub.DummiesOf([]scrub.Secret{f}, none); len(made) > 0 {
			t.Errorf("%+v: %d bytes", f, len(made[0].Value))
		}
	}
	left := scrub.DummiesOf([]scrub.Secret{{Placeholder: placeholder, Shape: ":1:0"}}, func(v string) bool { return v != "7" })
	if len(left) != 1 || left[0].Value != "7" {
		t.Errorf("the last digit that is free: %q", left)
	}
	s := scrub.New(testKey, nil)
	s.AddDummies([]scrub.Given{{Placeholder: "no placeholder", Value: "Zx9QvT2mKw7Lp4Rn"}, {Placeholder: placeholder}})
	if got := s.String("Zx9QvT2mKw7Lp4Rn"); got != "Zx9QvT2mKw7Lp4Rn" {
		t.Errorf("%q", got)
	}
}

// TestAdopt: a value that a replay names in the place of the recording's reads as that one, and is what Reveal gives; a dummy
// gives way, a value that is known does not.
func TestAdopt(t *testing.T) {
	const own, dummy, other = "the-replay's-own-token", "a-dummy-of-that-token-", "another-secret-of-all"
	recorded := named("as-it-was-recorded+once").String("as-it-was-recorded+once")
	escaped := named("as-it-was-recorded+once").String("as-it-was-recorded%2Bonce")
	s := named(own)
	s.AddDummies([]scrub.Given{{Placeholder: recorded, Value: dummy}})
	for value, want := range map[string]bool{own: false, recorded: false, other: true} {
		if fresh, full := learnNamed(s, "token", value); fresh != want || full {
			t.Errorf("%s: fresh is %t, full %t", value, fresh, full)
		}
	}
	before := s.String(own)
	s.Adopt(recorded, "nobody knows this one")
	s.Adopt(escaped, own)
	if got := s.String(own + " " + dummy); before == recorded || got != recorded+" "+recorded {
		t.Errorf("%s reads as %s, want %s twice", before, got, recorded)
	}
	if got := string(s.Reveal([]byte(recorded + " " + before))); got != own+" "+own {
		t.Errorf("revealed: %s", got)
	}
	s.Adopt(recorded, other)
	s.Adopt(named("one more of them").String("one more of them"), own)
	if got := s.String(own + other); !strings.HasPrefix(got, recorded+"td_token_") || strings.Count(got, recorded) != 1 {
		t.Errorf("taken over: %s", got)
	}
}

// named returns a scrubber that a name told a value.
func named(value string) *scrub.Scrubber {
	s := scrub.New(scrub.Key{1}, nil)
	learnNamed(s, "token", value)
	return s
}
