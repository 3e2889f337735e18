package scrub_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestNamesSecret: a path and the name of a column are no secrets in spite of the names of their variables.
func TestNamesSecret(t *testing.T) {
	exists := map[string]bool{"/work/certs/server.pem": true, "/work": true, "/work/tok": true}
	opts := &scrub.Options{Harmless: func(path string) bool { return exists[filepath.Join("/work", path)] || exists[path] }}
	s := scrub.New(testKey, opts)
	for entry, want := range map[string]bool{
		"GOOGLE_APPLICATION_CREDENTIALS=sa-account.json":        false,
		`GOOGLE_APPLICATION_CREDENTIALS={"private_key": "abc"}`: true,
		"AWS_SHARED_CREDENTIALS_FILE=aws/login":                 false,
		"API_TOKEN_FILE=run/tok":                                false,
		"token-file=conf/settings.json":                         false,
		"tokenFile-key-Path=a/b/c/settings":                     false,
		"CREDENTIALS_DIRECTORY=/work":                           false,
		"SSH_KEY_DIR=/home/ann":                                 false,
		"SSH_KEY=~/.ssh/id_rsa":                                 false,
		"SSH_KEY=~hunter2hunter2":                               true,
		"TLS_KEY=certs/server.pem":                              false,
		"TLS_KEY=/work/certs/server.pem":                        false,
		"TLS_KEY=/work/certs/other.pem":                         true,
		"AWS_SECRET_ACCESS_KEY=/Ab3/Cd5Ef7Gh9Jk1Mn3Pq5Rs7Tu9":   true,
		"PROFILE_KEY=hunter2hunter2":                            true,
		"KEY_PROFILE=hunter2hunter2":                            true,
		"SORT_KEY=created_at":                                   false,
		"SORT_KEY=created-at":                                   false,
		"PARTITION_KEY=customer_id":                             false,
		"PARTITION_KEY=a9f3k2l1m8":                              true,
		"METRICS_KEY=customer_id":                               false,
		"METRICS_KEY=letmeinplease":                             true,
		"API_KEY=open_sesame_now":                               true,
		"DB_PASSWORD=open_sesame_now":                           true,
		"HOME=/work":                                            false,
		"API_KEY=":                                              false,
	} {
		name, value, _ := strings.Cut(entry, "=")
		if got := s.NamesSecret(name, value); got != want {
			t.Errorf("%s: %v, wanted %v", entry, got, want)
		}
	}
}

// TestPathsStay: a path is written as it is, in its variable and elsewhere, and another secret beside it is not.
func TestPathsStay(t *testing.T) {
	env := []string{"API_TOKEN_FILE=run/token.txt", "API_TOKEN=hunter2hunter2", "TOKEN_PATH=https://ann:hunter3hunter3@h/x"}
	s := scrub.New(testKey, &scrub.Options{Env: env})
	var values []string
	for _, v := range s.Env(env) {
		values = append(values, renumbered(v.Value))
	}
	if got, want := strings.Join(values, " "), "run/token.txt td_api_token_#1 https://ann:td_url_password_#1@h/x"; got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
	if got := s.String("opening run/token.txt"); got != "opening run/token.txt" {
		t.Error(got)
	}
}
