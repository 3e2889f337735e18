package scrub_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// documented are examples as documents show them: no secrets.
var documented = []string{
	"aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
	"AKIAXXXXXXXXXXXXXXXX", "AKIA0000000000000000", "ASIAIOSFODNN7EXAMPLE",
	"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
	"Authorization: Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiYWRtaW4iOnRydWUsImlhdCI6MTUxNjIzOTAyMn0.KMUFsIDTnFmyG3nMiGM6H9FNFUROf3wh7SmqJp-QV30",
	"curl https://api.stripe.com/v1/charges -u sk_test_4eC39HqLyjWDarjtT1zdp7dc:",
	"stripe.api_key = 'sk_test_xxxxxxxxxxxxxxxxxxxxxxxx'",
	"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
	"https://ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx@github.com/a/b.git",
	"export ANTHROPIC_API_KEY=sk-ant-api03-xxxx",
	"key: sk-ant-api03-" + strings.Repeat("x", 93) + "AA",
	"key: sk-ant-api03-your_key_goes_here_1",
	"sk-proj-000000000000000000000000000000000000000000000000",
	"xoxb-000000000000-000000000000-xxxxxxxxxxxxxxxxxxxxxxxx",
	"AIzaSyD3asb-2pEZVqMkmL6M9N6nHZRR_znhrh0", // which gitleaks allows
	"-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
	"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx7Gh29KdmqPvZ1c0...\n-----END RSA PRIVATE KEY-----",
	`"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n…\n-----END PRIVATE KEY-----"`,
	"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("x", 64) + "\n-----END PRIVATE KEY-----",
	"Authorization: Basic dXNlcjpwYXNzd29yZA==",
	"postgres://postgres:postgres@localhost/db", "mysql://root:root@db:3306/app", `"amqp:\/\/guest:guest@localhost"`,
	"mongodb://ann:example@localhost", "postgres://app_user:app_user@db/app", "https://user:changeme@example.com/x",
	"Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Authorization: Basic YWRtaW46YWRtaW4=",
}

// TestExamples: what documents show is no secret, whole or in parts.
func TestExamples(t *testing.T) {
	s := scrub.New(testKey, nil)
	for _, text := range documented {
		for _, n := range []int{1, 7, 1000} {
			if got := stream(t, s, text+"\n", n); got != text+"\n" {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}

// TestNoExamples: what looks a little like an example and is none.
func TestNoExamples(t *testing.T) {
	s := scrub.New(testKey, nil)
	key := strings.Repeat("MIIEpAIBAAKCAQEAx7Gh29KdmqPvZ1c0x7Gh29KdmqPvZ1c0x7Gh29KdmqPvZ1c0\n", 12)
	for _, text := range []string{
		"AKIAIOSFODNN7QZX23YV",
		"ghp_xxxxxZk2Lm9Qw4Rt7Yp3Bn6Vc1Xd8Sf5Gh0J",
		"sk-ant-api03-AAAAAAAAf8Jk2Lm9Qw4Rt7Yp3Bn6Vc1Xd8Sf5Gh0J",
		"Bearer example-7f3a9b2c4d5e6f70",
		"https://ann:MyExample99@db/x",
		"https://ann:ann-bob@db/x", "https://k7f2m9:k7f2m9@db/x", "Authorization: Basic QWxhZGRpbjpodW50ZXIy",
		"https://ann:55555abc@h/", "postgres://ann:aaaaaaaa1@db/x", `https:\/\/ann:55555abc@h\/`,
		"-----BEGIN PRIVATE KEY-----\n" + key + "...\n-----END PRIVATE KEY-----",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
	} {
		if got := s.String(text); got == text {
			t.Errorf("%q is left", text)
		}
	}
}

// TestTokensOfURLs: the token in the place of the user, and the password of a proxy without a scheme.
func TestTokensOfURLs(t *testing.T) {
	const token = "7f3a9b2c4d5e6f708192a3b4"
	for _, tt := range []struct{ in, want string }{
		{"https://" + token + "@h/x.git", "https://td_url_password_#1@h/x.git"},
		{"https://" + token + ":x-oauth-basic@h/x.git", "https://td_url_password_#1:x-oauth-basic@h/x.git"},
		{"https://" + token + ":@h", "https://td_url_password_#1:@h"},
		{"https://x-access-token:" + token + "@h", "https://x-access-token:td_url_password_#1@h"},
		{"[remote \"origin\"]\n\turl = https://" + token + "@h/x.git\n", "[remote \"origin\"]\n\turl = https://td_url_password_#1@h/x.git\n"},
		{`{"u":"https:\/\/` + token + `@h\/x"}`, `{"u":"https:\/\/td_url_password_#1@h\/x"}`},
		{"https://ghp_Zk2Lm9Qw4Rt7Yp3Bn6Vc1Xd8Sf5Gh0JTq3W4@github.com/x", "https://td_github_#1@github.com/x"},
		{"ssh://git@github.com/x", "ssh://git@github.com/x"},
		{"postgres://analytics_readonly_2024@db/x", "postgres://analytics_readonly_2024@db/x"},
		{"https://host:8080/a@1234567890abcdef1234", "https://host:8080/a@1234567890abcdef1234"},
		{"mailto://somebody.with.a.long.name@example.com", "mailto://somebody.with.a.long.name@example.com"},
	} {
		s := scrub.New(testKey, nil)
		if got := renumbered(s.String(tt.in)); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.in, got, tt.want)
		}
		for _, n := range []int{1, 5} {
			if got := renumbered(stream(t, s, tt.in, n)); got != tt.want {
				t.Errorf("%q in pieces of %d became %q", tt.in, n, got)
			}
		}
		if v := s.Env([]string{"REMOTE=" + tt.in})[0]; renumbered(v.Value) != tt.want {
			t.Errorf("a variable: %q", v.Value)
		}
	}
	s := scrub.New(testKey, nil)
	if got := renumbered(s.URL("https://" + token + ":x-oauth-basic@h/x")); got != "https://td_url_password_#1:x-oauth-basic@h/x" {
		t.Errorf("the URL of a request: %q", got)
	}
}

// TestProxies: a proxy's password is hidden in its variable and then wherever it stands.
func TestProxies(t *testing.T) {
	env := []string{
		"HTTP_PROXY=ann:hunter2hunter@proxy:3128", "https_proxy=ann:hunter2hunter@proxy:3128", "npm_config_proxy=ann:pw@proxy",
		"ALL_PROXY=socks5://ann:s0ck5p4ss@proxy:1080", "no_proxy=a:b@c", "NO_PROXY=localhost", "MAIL=ann:lunch@12",
		"GIT_URL=https://ann:p%40ssw0rdlong@h/x",
	}
	s := scrub.New(testKey, &scrub.Options{Env: env})
	var got []string
	for _, v := range s.Env(env) {
		got = append(got, renumbered(v.Value))
	}
	want := []string{
		"ann:td_url_password_#1@proxy:3128", "ann:td_url_password_#1@proxy:3128", "ann:td_url_password_#1@proxy",
		"socks5://ann:td_url_password_#1@proxy:1080", "a:b@c", "localhost", "ann:lunch@12",
		"https://ann:td_url_password_zp_#1@h/x",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, secret := range []string{"hunter2hunter", "s0ck5p4ss", "p@ssw0rdlong"} {
		if text := s.String("it is " + secret); strings.Contains(text, secret) {
			t.Errorf("%q is left", text)
		}
	}
	s.LearnURLs("git clone https://ann:inAnArgument@h/x")
	if text := s.String("inAnArgument"); text == "inAnArgument" {
		t.Error("what an argument's URL holds is left")
	}
}
