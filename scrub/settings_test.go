package scrub_test

import (
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestLearnFile: names in a file of credentials teach their values, and nothing else does.
func TestLearnFile(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{".env", "A=b\nMY_DB_PASSWORD=" + keyOne + "\n", true}, {"app/.env.local", "export API_TOKEN=\"" + keyOne + "\" # of ann\n", true},
		{".envrc", "export API_TOKEN=" + keyOne + " # of ann", true}, {"prod.env", "API_TOKEN = '" + keyOne + "'\r\n", true},
		{"token.json", `{"access_token":"` + keyOne + `","x":1}`, true}, {"token.json", "{\n  \"password\": \"" + keyOne + "\",\n}", true},
		{"credentials.yml", "db:\n  password: " + keyOne + "\n", true}, {"secrets.toml", `api_key = "` + keyOne + `"`, true},
		{".npmrc", "//registry.npmjs.org/:_authToken=" + keyOne, true}, {"credentials", "[default]\naws_secret_access_key = " + keyOne, true},
		{".env", "DATABASE_URL=postgres://ann:" + keyOne + "@db/x", true},

		{".env", "NAME=" + keyOne + "\n", false}, {".env", "API_TOKEN=${OTHER_" + keyOne + "}\n", false}, {"config.json", `{"password":"` + keyOne + `"}`, false},
		{".env.example", "API_TOKEN=" + keyOne, false}, {"settings.py", "SECRET_KEY = '" + keyOne + "'", false},
	} {
		s := scrub.New(testKey, nil)
		s.LearnFile(tt.name, []byte(tt.text))
		if got := s.String("it is " + keyOne + " here"); strings.Contains(got, keyOne) == tt.want || !strings.HasSuffix(got, " here") {
			t.Errorf("%s %q: %q", tt.name, tt.text, got)
		}
	}
	s := scrub.New(testKey, nil)
	block := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("Zx9QvT2mKw7Lp4RnBc3D", 3) + "\n-----END PRIVATE KEY-----"
	if n := s.LearnFile(".env", []byte("APP_KEY=\""+strings.ReplaceAll(block, "\n", `\n`)+"\"\nDB_PASS='two\nlines of it'\n")); n != 2 {
		t.Errorf("%d are learnt", n)
	}
	if got := renumbered(s.String("<" + block + "> two\nlines of it")); got != "<td_app_key_#1> td_db_pass_#2" {
		t.Errorf("%q", got)
	}
}
