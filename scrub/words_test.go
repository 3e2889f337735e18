package scrub_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestNamesOfSecrets: what a name says does not depend on how its words are put together, nor on whether a variable or a
// header has it; and words that only look like those say nothing.
func TestNamesOfSecrets(t *testing.T) {
	const made, word = "Zx9QvT2mKw7Lp4RnBc3D", "some-four-plain-words"
	for _, tt := range []struct {
		name, value string
		want        bool
	}{
		{"PGPASSWORD", word, true}, {"DB_PASS", word, true}, {"DB_PASS2", word, true}, {"MYSQL_PWD", word, true}, {"SSHPASS", word, true},
		{"APIKEY", word, true}, {"MAILGUN_APIKEY", word, true}, {"GPG_PASSPHRASE", word, true}, {"githubToken", word, true},
		{"githubAPIKey", word, true}, {"npm_config_//registry.npmjs.org/:_authToken", word, true}, {"spring.datasource.password", word, true},
		{"AuthToken", word, true}, {"X-Authtoken", word, true}, {"X-Accesstoken", word, true}, {"X-Auth-Pass", word, true},
		{"X-User-Pwd", word, true}, {"X-Passphrase", word, true}, {"API_KEY_2", word, true}, {"TOKEN1", word, true},
		{"GITLAB_PAT", made, true}, {"REDISCLI_AUTH", made, true}, {"npm_config__auth", made, true}, {"SVC_API_KEYS", made + "," + made, true},
		{"DOCKER_AUTH_CONFIG", `{"auths":{"r":{"auth":"` + made + `"}}}`, true},

		{"GITLAB_PAT", "pat", false}, {"PAT", made, false}, {"SMTP_AUTH", "SCRAM-SHA-256", false}, {"HTTP_AUTH", "basic", false},
		{"KAFKA_AUTH", "login.example2.internal", false}, {"MAX_TOKENS", "4096", false}, {"MAX_TOKENS", "200000000000000000", false},
		{"SORT_KEYS", "true", false}, {"AUTH_URL", made, false}, {"REDIS_AUTH", "https://" + made, false},
		{"PWD", "/home/ann/project-zx9", false}, {"OLDPWD", "/home/ann/project-zx9", false}, {"HOST_PWD", "/home/ann/project-zx9", false},
		{"PASSTHROUGH", made, false}, {"COMPASS", made, false}, {"BYPASS", made, false}, {"AUTHOR", made, false}, {"PASS_COUNT", made, false},
		{"SSH_AUTH_SOCK", made, false}, {"XAUTHORITY", made, false}, {"PATTERN", made, false}, {"PATH", made, false},
		{"KEYBOARD", made, false}, {"MONKEY", made, false}, {"TOKENIZERS_PARALLELISM", made, false}, {"BYPASSED", made, false},
	} {
		env := []string{tt.name + "=" + tt.value}
		if v := scrub.New(testKey, &scrub.Options{Env: env}).Env(env)[0]; v.Secret != tt.want {
			t.Errorf("variable %s=%s: secret is %v", tt.name, tt.value, v.Secret)
		}
		s := scrub.New(testKey, nil)
		s.LearnHeader(map[string][]string{tt.name: {tt.value}})
		if got := s.String("it is " + tt.value); (got != "it is "+tt.value) != tt.want {
			t.Errorf("header %s: %s gave %q", tt.name, tt.value, got)
		}
	}
}

// TestHeadersOfCredentials: headers beside Authorization that hold what it holds.
func TestHeadersOfCredentials(t *testing.T) {
	const secret = "Zx9QvT2mKw7Lp4RnBc3D"
	for _, name := range []string{
		"Auth", "X-Auth", "X-Api-Auth", "Authentication", "X-Authorization", "X-Forwarded-Authorization", "X-Original-Authorization",
		"X-Session-Id", "X-Goog-Iap-Jwt-Assertion",
	} {
		s := scrub.New(testKey, nil)
		s.LearnHeader(map[string][]string{name: {secret}})
		if got := s.String("it is " + secret); strings.Contains(got, secret) {
			t.Errorf("%s: %q", name, got)
		}
	}
	s := scrub.New(testKey, nil)
	if got := renumbered(s.Header("X-Authorization", "Bearer "+secret)); got != "Bearer td_x_authorization_#1" {
		t.Errorf("%q", got)
	}
}

// TestSettings: the password in a list of settings is hidden there and known elsewhere.
func TestSettings(t *testing.T) {
	const secret = "hunter2:Zx9Q"
	for value, want := range map[string]string{
		"Server=db;User Id=sa;Password=" + secret + ";":       "Server=db;User Id=sa;Password=td_password_#1;",
		"Server=db;Pwd='" + secret + "';Encrypt=yes":          "Server=db;Pwd='td_pwd_#1';Encrypt=yes",
		"AccountName=a;AccountKey=" + secret:                  "AccountName=a;AccountKey=td_accountkey_#1",
		"host=db user=ann password=" + secret:                 "host=db user=ann password=td_password_#1",
		`host=db password="a b ` + secret + `" port=543`:      `host=db password="td_password_#1" port=543`,
		"Server=db;Password=" + secret + "; ":                 "Server=db;Password=td_password_#1; ",
		"Server=db;\nUser Id=sa;\nPassword=" + secret + ";\n": "Server=db;\nUser Id=sa;\nPassword=td_password_#1;\n",
		"Server=db;Password=" + secret + ";\n":                "Server=db;Password=td_password_#1;\n",
		"Password=" + secret:                                  "Password=" + secret,
		"say a=b and password=" + secret:                      "say a=b and password=" + secret,
	} {
		env := []string{"DATABASE_DSN=" + value}
		s := scrub.New(testKey, &scrub.Options{Env: env})
		if got := renumbered(s.Env(env)[0].Value); got != want {
			t.Errorf("%q gave %q, want %q", value, got, want)
		}
		if got := s.String("it is " + secret); want != value && !strings.Contains(value, "a b ") && strings.Contains(got, secret) {
			t.Errorf("%q: %q is left", value, got)
		}
	}
}
