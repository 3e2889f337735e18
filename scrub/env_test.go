package scrub_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

func TestEnv(t *testing.T) {
	env := []string{
		"HOME=/root", "ANTHROPIC_API_KEY=sk-ant-api03-AbCdEf0123456789", "EMPTY_KEY=", "SHORT_KEY=abc", "broken",
		"DATABASE_URL=postgres://ann:hunter2@db/x", "COPY=<sk-ant-api03-AbCdEf0123456789>", "A=b=c",
	}
	s := scrub.New(testKey, &scrub.Options{Env: env})
	vars := s.Env(env)
	for i := range vars {
		vars[i].Value = renumbered(vars[i].Value)
	}
	want := []scrub.Var{
		{Name: "HOME", Value: "/root"},
		{Name: "ANTHROPIC_API_KEY", Value: "td_anthropic_api_key_#1", Secret: true, Shape: "sk-ant-api03-:29:aA0"},
		{Name: "EMPTY_KEY"},
		{Name: "SHORT_KEY", Value: "td_short_key_#1", Secret: true, Shape: ":3:a"},
		{Name: "DATABASE_URL", Value: "postgres://ann:td_url_password_#1@db/x", Secret: true, Shape: ":7:a0"},
		{Name: "COPY", Value: "<td_anthropic_api_key_#1>", Secret: true, Shape: "sk-ant-api03-:29:aA0"},
		{Name: "A", Value: "b=c"},
	}
	if diff := cmp.Diff(want, vars); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"SHORT_KEY"}, s.NotCovered()); diff != "" {
		t.Error(diff)
	}
}

// TestDummies: what found the secret finds the dummy, whether by name or by shape, so that a replay without secrets
// compares equal.
func TestDummies(t *testing.T) {
	values := []string{
		"Zx9QvT2mKw7Lp4Rn", "0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11", "0123456789abcdef0123456789abcdef", pem, jwt, "ünïcode secret",
		"--------!!", "https://ann:hunter2@db/x", "sk-or-v1-0123456789abcdef0123456789abcdef", "abc",
	}
	for _, tt := range shapes {
		values = append(values, tt.secret)
	}
	for _, value := range values {
		for _, name := range []string{"API_KEY", "PLAIN"} {
			env := []string{name + "=" + value}
			s := scrub.New(testKey, &scrub.Options{Env: env})
			v := s.Env(env)[0]
			dummy := scrub.Dummy(v)
			if !v.Secret {
				if dummy != value {
					t.Errorf("%s=%s: no secret, and the dummy is %q", name, value, dummy)
				}
				continue
			}
			if dummy == value || dummy != scrub.Dummy(v) || strings.Contains(dummy, "td_") {
				t.Errorf("%s=%s: the dummy is %q", name, value, dummy)
			}
			dummyEnv := []string{name + "=" + dummy}
			replay := scrub.New(scrub.Key{8}, &scrub.Options{Env: dummyEnv})
			text := func(v string) string { return `a "` + v + `" b` }
			got, want := renumbered(replay.String(text(dummy))), renumbered(s.String(text(value)))
			if len(value) >= 8 && got != want {
				t.Errorf("%s=%s: %q is recorded, %q replayed with %q", name, value, want, got, dummy)
			}
			if again := replay.Env(dummyEnv)[0]; renumbered(again.Value) != renumbered(v.Value) {
				t.Errorf("%s=%s: variable %+v, replayed %+v", name, value, v, again)
			}
		}
	}
}

// TestDummyOfAnything: a damaged recording's shapes make some dummy, and no panic.
func TestDummyOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.OneOf(rapid.String(), rapid.StringMatching(`(uuid|jwt|pem|sk-)?:-?[0-9]{0,12}(\.[0-9]*)*:?[aA0x*]*`)).Draw(t, "shape")
		v := scrub.Var{Name: "A", Value: "td_a_0123456789ab", Secret: true, Shape: shape}
		if got := scrub.Dummy(v); strings.Contains(got, v.Value) {
			t.Fatalf("%q", got)
		}
	})
}
