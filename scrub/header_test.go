package scrub_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// renumbered is s with its placeholders as td_<rule>_#<n>: the rule, but not the key, is what tests want to see.
func renumbered(s string) string {
	seen := make(map[string]int)
	return placeholder.ReplaceAllStringFunc(s, func(p string) string {
		if seen[p] == 0 {
			seen[p] = len(seen) + 1
		}
		return fmt.Sprintf("%s#%d", p[:len(p)-12], seen[p])
	})
}

var placeholder = regexp.MustCompile(`td_[a-z0-9_]+?_[0-9a-f]{12}`)

func TestHeader(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"Authorization", "Bearer abcdefgh", "Bearer td_authorization_#1"},
		{"authorization", "bearer x", "bearer td_authorization_#1"},
		{"Authorization", "Basic YW5uOmh1bnRlcjI=", "Basic td_authorization_#1"},
		{"Authorization", "rawtoken1234", "td_authorization_#1"},
		{"Proxy-Authorization", "Digest a=b, c=d", "Digest td_proxy_authorization_#1"},
		{"Cookie", "a=12345678; sid=x", "a=td_cookie_#1; sid=td_cookie_#2"},
		{"Set-Cookie", "sid=abcdefgh1; Path=/; HttpOnly", "sid=td_cookie_#1; Path=/; HttpOnly"},
		{"X-Api-Key", "abcdefgh", "td_x_api_key_#1"},
		{"x-goog-api-key", "abcdefgh", "td_x_goog_api_key_#1"},
		{"api-key", "abcdefgh", "td_api_key_#1"},
		{"X-Amz-Security-Token", "abcdefgh", "td_x_amz_security_token_#1"},
		{"X-Api-Key", "", ""},
		{"Content-Type", "application/json", "application/json"},
		{"Idempotency-Key", "0b5e0c52-7d3c", "0b5e0c52-7d3c"},
		{"X-RateLimit-Tokens", "100", "100"},
		{"Referer", "https://u:hunter2@h/", "https://u:td_url_password_#1@h/"},
	} {
		s := scrub.New(testKey, nil)
		if got := renumbered(s.Header(tt.name, tt.value)); got != tt.want {
			t.Errorf("%s: %s: got %q, want %q", tt.name, tt.value, got, tt.want)
		}
	}
}

// TestHeadersTeach: a value that a header held is found in bodies from then on, under the same placeholder.
func TestHeadersTeach(t *testing.T) {
	for _, tt := range []struct{ name, value, secret string }{
		{"Authorization", "Bearer Zx9QvT2m", "Zx9QvT2m"},
		{"Authorization", "Basic YW5uOlp4OVF2VDJt", "Zx9QvT2m"},
		{"Cookie", "sid=Zx9QvT2m", "Zx9QvT2m"},
		{"Set-Cookie", "sid=Zx9QvT2m; Path=/", "Zx9QvT2m"},
		{"X-Api-Key", "Zx9QvT2m", "Zx9QvT2m"},
	} {
		s := scrub.New(testKey, nil)
		s.Header(tt.name, tt.value)
		if got := s.String("body " + tt.secret); strings.Contains(got, tt.secret) {
			t.Errorf("%s: %q is left", tt.name, got)
		}
	}
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2m"}})
	if got := renumbered(s.Header("Authorization", "Bearer Zx9QvT2m")); got != "Bearer td_api_key_#1" {
		t.Errorf("a known value in a header: %q", got)
	}
	s.Header("X-Api-Key", "short")
	if diff := cmp.Diff([]string{"x-api-key"}, s.NotCovered()); diff != "" {
		t.Error(diff)
	}
}

func TestLearningIsBounded(t *testing.T) {
	s := scrub.New(testKey, nil)
	for i := range 600 {
		value := strings.Repeat("k", 10) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if got := s.Header("X-Api-Key", value); strings.Contains(got, value) {
			t.Fatalf("%q is left", got)
		}
	}
	if diff := cmp.Diff([]string{"x-api-key"}, s.NotCovered()); diff != "" {
		t.Error(diff)
	}
}

func TestURL(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"GEMINI_API_KEY=Zx9Q+vT2mKw7"}})
	for _, tt := range []struct{ in, want string }{
		{"https://h/path?a=b&c#d", "https://h/path?a=b&c#d"},
		{"https://ann:pw@h:80/p", "https://ann:td_url_password_#1@h:80/p"},
		{"https://ann:pw@h", "https://ann:td_url_password_#1@h"},
		{"https://ann:p@w@h/x", "https://ann:td_url_password_#1@h/x"},
		{"https://ann@h/x", "https://ann@h/x"},
		{"https://0123456789abcdef0123@h/x", "https://td_url_password_#1@h/x"},
		{"https://h/?key=short&alt=sse", "https://h/?key=td_key_#1&alt=sse"},
		{"https://h/?key=Zx9Q%2BvT2mKw7&access_token=x", "https://h/?key=td_gemini_api_key_#1&access_token=td_access_token_#2"},
		{"https://h/Zx9Q+vT2mKw7/?x=Zx9Q%2bvT2mKw7", "https://h/td_gemini_api_key_#1/?x=td_gemini_api_key_zr_#2"},
		{"https://h/cb#access_token=abc&x=y", "https://h/cb#access_token=td_access_token_#1&x=y"},
		{"https://h/?sig=a%2Fb&pageToken=3", "https://h/?sig=td_sig_#1&pageToken=3"},
		{"not a url", "not a url"},
		{"", ""},
		{"://", "://"},
		{"https://h?key=", "https://h?key="},
		{"https://h/?key=td_key_0123456789ab", "https://h/?key=td_key_#1"},
	} {
		once := s.URL(tt.in)
		if got := renumbered(once); got != tt.want {
			t.Errorf("URL(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if again := s.URL(once); again != once {
			t.Errorf("URL(%q) = %q the second time", once, again)
		}
	}
}

// TestParametersOfCredentials: only what signs one request is not learnt.
func TestParametersOfCredentials(t *testing.T) {
	for value, want := range map[string]string{
		`Token token="` + keyOne + `", email="a@b.c"`:                                     `Token token="td_authorization_#1", email="a@b.c"`,
		`Token token="` + keyOne + `"`:                                                    `Token token="td_authorization_#1"`,
		`OAuth realm="x", oauth_token="` + keyOne + `", oauth_signature="` + keyTwo + `"`: `OAuth realm="x", oauth_token="td_authorization_#1", oauth_signature="td_authorization_#2"`,
		`Custom ` + keyOne + `,id`:                                                        `Custom td_authorization_#1`,
		`Custom ` + keyOne + `==`:                                                         `Custom td_authorization_#1`,
		`Bearer ` + keyOne + `=`:                                                          `Bearer td_authorization_#1`,
	} {
		s := scrub.New(testKey, nil)
		s.LearnHeader(map[string][]string{"Authorization": {value}})
		if got := renumbered(s.Header("Authorization", value)); got != want {
			t.Errorf("%q gave %q, want %q", value, got, want)
		}
		if got := s.String("it is " + keyOne); strings.Contains(value, "=\"") && strings.Contains(got, keyOne) {
			t.Errorf("%q: %q is left", value, got)
		}
		if got := s.String("it is " + keyTwo); got != "it is "+keyTwo {
			t.Errorf("%q: a signature is learnt: %q", value, got)
		}
	}
	for _, value := range []string{`Digest username="ann", response="` + keyOne + `"`, "AWS4-HMAC-SHA256 Credential=" + keyOne + "/x, Signature=" + keyOne} {
		s := scrub.New(testKey, nil)
		s.LearnHeader(map[string][]string{"Authorization": {value}})
		if got := s.Header("Authorization", value); strings.Contains(got, keyOne) || s.String("it is "+keyOne) != "it is "+keyOne {
			t.Errorf("%q gave %q", value, got)
		}
	}
}

// TestOrdinaryCookies: a setting stays; what may say who somebody is is hidden in its header and no secret elsewhere; that of a
// session is.
func TestOrdinaryCookies(t *testing.T) {
	s := scrub.New(testKey, nil)
	h := map[string][]string{"Set-Cookie": {"consent=accepted; Path=/", "sid=Zx9QvT2mKw7Lp4; HttpOnly"}, "Cookie": {"user=anna-maria"}}
	s.LearnHeader(h)
	for _, c := range []struct{ name, value, want string }{
		{"Set-Cookie", h["Set-Cookie"][0], "consent=accepted; Path=/"},
		{"Cookie", "consent=accepted; x=accepted", "consent=accepted; x=accepted"},
		{"Cookie", "theme=dark; lang=en-US; visits=7", "theme=dark; lang=en-US; visits=7"},
		{"Cookie", "user=anna-maria; token=open; uid=ab12", "user=td_cookie_#1; token=td_cookie_#2; uid=td_cookie_#3"},
		{"Cookie", "pin_hint=4711; n=12345", "pin_hint=td_cookie_#1; n=td_cookie_#2"},
		{"X-Note", "accepted anna-maria Zx9QvT2mKw7Lp4", "accepted anna-maria td_cookie_#1"},
	} {
		if got := renumbered(s.Header(c.name, c.value)); got != c.want {
			t.Errorf("%s, wanted %s", got, c.want)
		}
	}
	if got := s.NotCovered(); len(got) != 1 || got[0] != "cookie" {
		t.Errorf("not covered: %v", got)
	}
}

// TestHeaderAgain: a field that was scrubbed reads otherwise once more is known, and a placeholder that it gets again counts again.
func TestHeaderAgain(t *testing.T) {
	s := scrub.New(scrub.Key{1}, nil)
	const value, key = "made-up-value-83jd92", "k3y-8fj20dk2lw93js"
	for range 2 {
		if got := s.Header("X-Note", value); got != value {
			t.Error(got)
		}
	}
	s.AddSecret("note", value)
	if got := s.Header("X-Note", value); !strings.HasPrefix(got, "td_note_") {
		t.Error(got)
	}
	first := s.Header("X-Api-Key", key)
	if again := s.Header("X-Api-Key", key); again != first || !strings.HasPrefix(first, "td_x_api_key_") || s.Counts()["x_api_key"] != 2 {
		t.Error(first, again, s.Counts())
	}
	const other = "td_x_api_key_0123456789ab"
	if s.Adopt(other, key); s.Header("X-Api-Key", key) != other {
		t.Error(s.Header("X-Api-Key", key))
	}
}
