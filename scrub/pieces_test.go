package scrub_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

const keyOne, keyTwo = "Zx9QvT2mKw7Lp4RnBc3D", "Bq7Wm2Xc9Vn4Kd8Lt5Hs"

// TestPieces: of a secret variable each secret that its value is put together from is hidden by itself and known by itself, and
// a dummy is put together in the same way.
func TestPieces(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"API_TOKEN", keyOne + "\n", "td_api_token_#1\n"},
		{"API_TOKEN", " \"" + keyOne + "\" ", " \"td_api_token_#1\" "},
		{"API_TOKEN", "Bearer " + keyOne, "Bearer td_api_token_#1"},
		{"API_TOKEN", "token  " + keyOne + "\n", "token  td_api_token_#1\n"},
		{"API_KEY", keyOne + "," + keyTwo, "td_api_key_#1,td_api_key_#2"},
		{"API_KEYS", keyOne + "; " + keyTwo + ";dev", "td_api_keys_#1; td_api_keys_#2;td_api_keys_#3"},
		{"DB_CREDENTIALS", `{"username": "u", "password": "` + keyOne + `", "host": "db.example.com", "port": 5432}`,
			`{"username": "u", "password": "td_db_credentials_#1", "host": "db.example.com", "port": 5432}`},
		{"DB_CREDENTIALS", `{"a":{"pw":"it is\n` + keyOne + `"},"pin":"1234"}`, `{"a":{"pw":"td_db_credentials_zj1_#1"},"pin":"td_db_credentials_#2"}`},
		{"API_KEYS", `["` + keyOne + `","` + keyTwo + `"]`, `["td_api_keys_#1","td_api_keys_#2"]`},
		{"DB_CREDENTIALS", `{"password": 12345678}`, "td_db_credentials_#1"},
		{"DB_PASSWORD", "correct,horse battery", "td_db_password_#1"},
		{"DB_PASSWORD", "Aa1Bb2Cc3Dd4Ee5Ff6 Aa1Bb2Cc3Dd4Ee5Ff7", "td_db_password_#1"},
		{"DB_PASSWORD", "Zx9QvT2m,Kw7Lp4Rn", "td_db_password_#1"},
	} {
		env := []string{tt.name + "=" + tt.value}
		s := scrub.New(testKey, &scrub.Options{Env: env})
		v := s.Env(env)[0]
		if got := renumbered(v.Value); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.value, got, tt.want)
		}
		for _, key := range []string{keyOne, keyTwo} {
			if got := s.String("it is " + key); strings.Contains(tt.value, key) && strings.Contains(got, key) && !strings.Contains(tt.value, "it is") {
				t.Errorf("%q: %q is left", tt.value, got)
			}
		}
		dummy := scrub.Dummy(v)
		again := []string{tt.name + "=" + dummy}
		if got := renumbered(scrub.New(testKey, &scrub.Options{Env: again}).Env(again)[0].Value); got != tt.want {
			t.Errorf("%q: the dummy %q reads %q", tt.value, dummy, got)
		}
		if whole := scrub.New(testKey, nil); whole.AddAlias("td_x_0123456789ab", tt.value) {
			if got := strings.TrimSpace(strings.Trim(whole.Env(env)[0].Value, " \"")); got != "td_x_0123456789ab" && !strings.Contains(tt.value, `"`) {
				t.Errorf("%q that stands for one secret: %q", tt.value, got)
			}
		}
		if tt.value[0] == '{' && tt.want[0] == '{' && !json.Valid([]byte(dummy)) {
			t.Errorf("%q is no JSON", dummy)
		}
	}
}

// TestPaired: another value of a variable is taken apart as the recorded one was.
func TestPaired(t *testing.T) {
	const one, two = "td_a_0123456789ab", "td_a_ba9876543210"
	given, ok := scrub.Paired("A_CREDENTIALS", `{"user":"u","password":"`+one+`","key":"`+two+`"}`, `{"key":"K","password":"P","pin":"N1","user":"w"}`)
	if want := []scrub.Given{{two, "K"}, {one, "P"}, {"", "N1"}}; !ok || len(given) != 3 || given[0] != want[0] || given[1] != want[1] || given[2] != want[2] {
		t.Errorf("%v, %v", given, ok)
	}
	if given, ok := scrub.Paired("A_KEYS", one+","+two, "x1"); ok {
		t.Errorf("%v", given)
	}
}

// TestLinesOfAKey: a line of a private key is hidden where it stands by itself.
func TestLinesOfAKey(t *testing.T) {
	lines := strings.Split(pem, "\n")
	s := scrub.New(testKey, &scrub.Options{Env: []string{"APP_PRIVATE_KEY=" + pem + "\n"}})
	for _, line := range lines[1 : len(lines)-1] {
		if got := s.String("LINE " + line); len(line) >= 32 && strings.Contains(got, line) {
			t.Errorf("%q", got)
		}
	}
	if got := renumbered(s.String(pem)); got != "td_app_private_key_#1" {
		t.Errorf("the whole reads %q", got)
	}
}
