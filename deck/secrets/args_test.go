package secrets

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestArgumentsTeachURLs: the token or password of a URL among the arguments is known wherever it stands.
func TestArgumentsTeachURLs(t *testing.T) {
	s := scrub.New(scrub.Key{1}, nil)
	LearnArgs(s, []string{"clone", "https://7f3a9b2c4d5e6f708192a3b4@h/x.git", "--proxy", "http://ann:pr0xyp4ssword@p:3128"})
	for _, secret := range []string{"7f3a9b2c4d5e6f708192a3b4", "pr0xyp4ssword"} {
		if got := s.String("it is " + secret); strings.Contains(got, secret) {
			t.Errorf("%q is left", got)
		}
	}
}

// TestArgumentsTeachNames: what names itself a secret among the arguments is known whole, in every way to write it.
func TestArgumentsTeachNames(t *testing.T) {
	const secret, odd, dash = "Zx9QvT2mKw7Lp4Rn", "ab,c;d&e f\"g'hZq9 x7", "-Zx81kd92ls02kd"
	for _, tt := range []struct {
		secret string
		args   []string
	}{
		{odd, []string{"--password=" + odd}}, {"qwertyZ,uiop", []string{"--db-password=qwertyZ,uiop"}}, {"q'r;tyZ,uiop", []string{"DB_PASS=q'r;tyZ,uiop"}},
		{dash, []string{"--token", dash}}, {secret, []string{"--apikey", secret}}, {secret, []string{"--apiKey=" + secret}},
		{secret, []string{"--api-key", secret}}, {secret, []string{"-H", "X-Api-Key: " + secret}}, {secret, []string{"--header=X-Api-Key: " + secret}},
		{secret, []string{"-HAuthorization: Token " + secret}}, {secret, []string{"-c", "curl -H 'X-Api-Key: " + secret + "' https://x"}},
		{secret, []string{"-c", `curl --header "Authorization: token ` + secret + `" https://x`}},
		{secret, []string{"-c", `ssh h "curl -H \"Authorization: token ` + secret + `\" https://x"`}},
		{secret, []string{"-c", "tool --api-key " + secret + " run"}}, {odd[:11], []string{"-c", `TOKEN="` + odd[:11] + `" tool`}},
		{"a b c d e f", []string{"-c", "export DB_PASSWORD='a b c d e f'; tool"}}, {secret, []string{"-c", "curl -u ann:" + secret + " https://x"}},
		{secret, []string{"--token", "Bearer " + secret}}, {secret, []string{"--credentials", `{"user":"u","password":"` + secret + `"}`}},
		{secret, []string{"-d", `{"api_key": "` + secret + `"}`}}, {secret, []string{"-d", "a=1&token=" + secret + "&b=2"}},
	} {
		s := scrub.New(scrub.Key{1}, nil)
		LearnArgs(s, tt.args)
		if got := s.String("it is " + tt.secret + " here"); strings.Contains(got, tt.secret) || !strings.HasSuffix(got, " here") {
			t.Errorf("%q: %q is left", tt.args, got)
		}
		for _, a := range tt.args {
			if hidden := s.Arg(a); strings.Contains(hidden.Value, tt.secret) {
				t.Errorf("%q stays", hidden.Value)
			}
		}
	}
}

// TestArgumentsThatTeachNothing: prose about secrets, references to them and flags behind flags are none.
func TestArgumentsThatTeachNothing(t *testing.T) {
	for _, args := range [][]string{
		{"-p", `explain "token: none of these words" and use --api-key appropriately`}, {"--token", "--interactive"}, {"--token", "-i"},
		{"-c", `curl -H "Authorization: Bearer $API_TOKEN" https://x`}, {"-c", `TOKEN="$(pass show x/y1)" tool --api-key ${API_KEY2}`},
		{"--max-tokens", "20000000"}, {"--author", "somebody1"}, {"--password-file", "./somewhere/file"},
	} {
		s := scrub.New(scrub.Key{1}, nil)
		LearnArgs(s, args)
		for _, a := range args {
			if got := s.Arg(a); got.Secret {
				t.Errorf("%q became %q", a, got.Value)
			}
		}
	}
}
