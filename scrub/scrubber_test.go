package scrub_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

var testKey = scrub.Key{1, 2, 3}

// long has tests try every case that they know, not a share of them.
var long = os.Getenv("TAPEDECK_LONG") != ""

// canaries are known values; each byte run of four or more of one of them is told from any other text.
var canaries = []string{
	"Zx9QvT2mKw7Lp4Rn",
	"8wQzKvXy",
	`p@ss "quoted" \back\ /slash/ <tag>&`,
	"línea☃😀ünïcode€",
	"two\nlines\tof\rkey",
	"%41%zz+plus plus",
}

// encodings are the forms in which a known value must be found.
var encodings = map[string]func(v string) string{
	"plain":        func(v string) string { return v },
	"query":        url.QueryEscape,
	"path":         url.PathEscape,
	"every byte":   func(v string) string { return percentAll(v, "%%%02X") },
	"lower hex %":  func(v string) string { return percentAll(v, "%%%02x") },
	"JSON":         func(v string) string { return quote(v, 1) },
	"JSON in JSON": func(v string) string { return quote(v, 2) },
	"JSON thrice":  func(v string) string { return quote(v, 3) },
	"JSON ASCII":   func(v string) string { return asciiJSON(v, `\`) },
	"ASCII twice":  func(v string) string { return quote(asciiJSON(v, `\`), 1) },
	"JSON slashes": func(v string) string { return strings.ReplaceAll(quote(v, 1), "/", `\/`) },
	"hex":          func(v string) string { return hex.EncodeToString([]byte(v)) },
	"HEX":          func(v string) string { return strings.ToUpper(hex.EncodeToString([]byte(v))) },
	"base64":       func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"base64 at 1":  func(v string) string { return base64.StdEncoding.EncodeToString([]byte("#" + v + "!")) },
	"base64 at 2":  func(v string) string { return base64.StdEncoding.EncodeToString([]byte("#_" + v + "!!")) },
	"base64url":    func(v string) string { return base64.RawURLEncoding.EncodeToString([]byte("ÿ" + v + "þ")) },
	"base64 far in": func(v string) string {
		return base64.URLEncoding.EncodeToString([]byte("user:pass\x00\xff" + v + "\x00and more"))
	},
	"base64 in lines": func(v string) string { return wrap(base64.StdEncoding.EncodeToString([]byte("-"+v)), 7, "\n") },
	"the same in JSON": func(v string) string {
		return quote(wrap(base64.StdEncoding.EncodeToString([]byte("~~"+v)), 7, "\r\n"), 1)
	},
	"query twice":     func(v string) string { return url.QueryEscape(url.QueryEscape(v)) },
	"JSON in a query": func(v string) string { return url.QueryEscape(asciiJSON(v, `\`)) },
	"lines in a form": func(v string) string {
		return url.QueryEscape(wrap(base64.StdEncoding.EncodeToString([]byte("+"+v)), 11, "\r\n"))
	},
	"base64 in a URL": func(v string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("ÿ" + v))) },
}

func percentAll(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, format, v[i])
	}
	return b.String()
}

// quote writes v as JSON strings within JSON strings, without the outer quotation marks.
func quote(v string, times int) string {
	for range times {
		b, _ := json.Marshal(v)
		v = string(b[1 : len(b)-1])
	}
	return v
}

func asciiJSON(v, slash string) string {
	var b strings.Builder
	for _, r := range v {
		switch {
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(&b, slash+`u%04X`+slash+`u%04X`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(&b, slash+`u%04x`, r)
		}
	}
	return b.String()
}

// wrap cuts v into lines of n bytes.
func wrap(v string, n int, end string) string {
	var lines []string
	for len(v) > n {
		lines, v = append(lines, v[:n]), v[n:]
	}
	return strings.Join(append(lines, v), end)
}

// TestWrappedBase64: a line may end at any place in the base64 of a known value.
func TestWrappedBase64(t *testing.T) {
	for _, value := range canaries {
		s := scrub.New(testKey, nil)
		s.AddSecret("CANARY", value)
		for shift := range 3 {
			encoded := base64.StdEncoding.EncodeToString([]byte("###"[:shift] + value + "###"))
			for n := 1; n < len(encoded); n++ {
				for _, text := range []string{wrap(encoded, n, "\n"), quote(wrap(encoded, n, "\r\n"), 1), quote(wrap(encoded, n, "\n"), 2)} {
					if _, found := s.Bytes([]byte(text)); !found {
						t.Errorf("%q at %d in lines of %d: not found in %q", value, shift, n, text)
					}
				}
			}
		}
	}
}

// TestCanary: whatever the encoding, a known value is found, and what is left says nothing about it: for another value
// of the same length the same is left. So it is in a stream of single bytes too.
func TestCanary(t *testing.T) {
	for _, value := range canaries {
		s, other := scrub.New(testKey, nil), scrub.New(testKey, nil)
		s.AddSecret("CANARY", value)
		other.AddSecret("CANARY", twin(value))
		for name, encode := range encodings {
			text := "before {" + encode(value) + "} after"
			in := []byte(text)
			out, found := s.Bytes(in)
			if string(in) != text {
				t.Fatalf("%s of %q: the input was changed", name, value)
			}
			if !found || !strings.Contains(string(out), "td_canary_") {
				t.Errorf("%s of %q: not found in %q", name, value, text)
				continue
			}
			one := string(scrub.Renumber(out))
			two := string(scrub.Renumber([]byte(other.String("before {" + encode(twin(value)) + "} after"))))
			if one != two {
				t.Errorf("%s of %q: left is %q, of another value %q", name, value, one, two)
			}
			if streamed := stream(t, s, text, 1); streamed != string(out) {
				t.Errorf("%s of %q: byte by byte %q, as a whole %q", name, value, streamed, out)
			}
		}
	}
}

// twin returns another value of the same shape.
func twin(value string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r < 'z', r >= 'A' && r < 'Z', r >= '0' && r < '9':
			return r + 1
		case r == 'z', r == 'Z', r == '9':
			return 'Q'
		}
		return r
	}, value)
}

// stream writes text in pieces of n bytes and returns what came out.
func stream(t interface{ Fatalf(string, ...any) }, s *scrub.Scrubber, text string, n int) string {
	var out strings.Builder
	w := s.Writer(&out)
	for piece := range slices.Chunk([]byte(text), n) {
		if _, err := w.Write(piece); err != nil {
			t.Fatalf("write: %v", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return out.String()
}

const (
	pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx7Gh29KdmqPvZ1c0\nq83Jd91kMIIEpAIBAAKCAQEAx7Gh29Kd\nabcd==\n" +
		"-----END RSA PRIVATE KEY-----"
	jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)

// shapes are secrets that are found without being known, with the text around them and the rule that finds them.
var shapes = []struct{ rule, text, secret string }{
	{"anthropic", "key=sk-ant-api03-AbCdEf0123456789_-xyz.", "sk-ant-api03-AbCdEf0123456789_-xyz"},
	{"anthropic", `{"k":"\nsk-ant-api03-AbCdEf0123456789"}`, "sk-ant-api03-AbCdEf0123456789"},
	{"openai", "export A=sk-proj-abcdefgh_ijklmnop-1234", "sk-proj-abcdefgh_ijklmnop-1234"},
	{"openai", `"\nsk-abcdefghijklmnop1234"`, "sk-abcdefghijklmnop1234"},
	{"openai", "\x1b[31msk-abcdefghijklmnop1234\x1b[0m", "sk-abcdefghijklmnop1234"},
	{"google", "?key=AIzaSyA-1234567890abcdefghijklmnopqrstu&x", "AIzaSyA-1234567890abcdefghijklmnopqrstu"},
	{"github", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
	{"github", "x github_pat_11ABCDEFG0123456789_abcdef x", "github_pat_11ABCDEFG0123456789_abcdef"},
	{"aws", "AKIAIOSFODNN7QZX23YV,", "AKIAIOSFODNN7QZX23YV"},
	{"slack", "xoxb-123456789012-abcdef", "xoxb-123456789012-abcdef"},
	{"stripe", "sk_live_abcdef0123456789", "sk_live_abcdef0123456789"},
	{"npm", "//r/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789", "npm_abcdefghijklmnopqrstuvwxyz0123456789"},
	{"huggingface", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH"},
	{"jwt", "t=" + jwt + ";", jwt},
	{"pem", "x " + pem + " y", pem},
	{"pem", strings.ReplaceAll("x "+pem+" y", "\n", `\n`), strings.ReplaceAll(pem, "\n", `\n`)},
	{"pem", "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEAx7Gh29KdmqPvZ1c0\nthe rest is cut", "MIIEpAIBAAKCAQEAx7Gh29KdmqPvZ1c0"},
	{"pem", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\nMIIEpAIBAAKCAQEAx7Gh29Kd\n" +
		"-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEAx7Gh29Kd"},
	{"url_password", "postgres://ann:hunter2@db/x", "hunter2"},
	{"url_password", `"https:\/\/ann:hunter2@db\/x"`, "hunter2"},
	{"bearer", "authorization: bearer abcdefghijklmnop.1234", "abcdefghijklmnop.1234"},
	{"basic", "Authorization: Basic YW5uOmh1bnRlcjI=", "YW5uOmh1bnRlcjI="},
}

func TestShapes(t *testing.T) {
	for _, tt := range shapes {
		s := scrub.New(testKey, nil)
		out, found := s.Bytes([]byte(tt.text))
		if !found || strings.Contains(string(out), tt.secret) || !strings.Contains(string(out), "td_"+tt.rule+"_") {
			t.Errorf("%s: %q became %q", tt.rule, tt.text, out)
		}
		if diff := cmp.Diff(map[string]int{tt.rule: 1}, s.Counts()); diff != "" {
			t.Errorf("%q: counts: %s", tt.text, diff)
		}
		if again, found := s.Bytes(out); found {
			t.Errorf("%q was scrubbed again: %q", out, again)
		}
	}
}

// TestHarmless: what only looks like a secret is left alone, and is not even copied.
func TestHarmless(t *testing.T) {
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn", "PATH=/usr/bin", "DB_PASSWORD=password"}})
	for _, text := range []string{
		"", "a", "plain text",
		"0b5e0c52-7d3c-4f7e-9d55-0c2a5f2f3c11",
		"commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"const apiKey = process.env.API_KEY", "headers: { Authorization: `Bearer ${token}` }", "Bearer <token>",
		"the password is password", "Bearer authentication-and-authorization", "Basic authentication is old", "basic dXNlcg==",
		"class=\"sk-fading-circle sk-circle12 sk-loading-spinner-container-element\"", "risk-assessment-for-1234567890123456",
		"https://localhost:3000/@scope/pkg", "git@github.com:owner/repo.git", "ssh://git@github.com:22/x", "https://a:$PASS@h/x",
		"-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEAx7Gh29KdmqPvZ1c0\n-----END CERTIFICATE-----",
		"-----BEGIN PRIVATE KEY----- is how a key begins", "eyJ0ZXN0Ijp0cnVlfQ==", "npm_config_registry", "hf_hub_download",
		"td_api_key_0123456789ab", "Bearer td_api_key_0123456789ab", "https://u:td_api_key_0123456789ab@h/", "AKIA and ASIA",
		"AIza", "gh_token", "----------", `\\\\\\\\\\\\`, "%%%%%", `\u00e9\u4f60\ud83d`,
	} {
		in := []byte(text)
		out, found := s.Bytes(in)
		if found || string(out) != text || len(in) > 0 && &out[0] != &in[0] {
			t.Errorf("%q became %q", text, out)
		}
		if got := stream(t, s, text+"\n", 1); got != text+"\n" {
			t.Errorf("%q, as a stream, became %q", text, got)
		}
	}
	if diff := cmp.Diff([]string{"DB_PASSWORD"}, s.NotCovered()); diff != "" {
		t.Errorf("not covered: %s", diff)
	}
}

func TestKnownWins(t *testing.T) {
	key := "sk-ant-api03-AbCdEf0123456789"
	s := scrub.New(testKey, &scrub.Options{Env: []string{"ANTHROPIC_API_KEY=" + key}})
	want := "Bearer " + s.Env([]string{"ANTHROPIC_API_KEY=" + key})[0].Value
	if got := s.String("Bearer " + key); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// A shape that reaches further takes the known value with it, and nothing of it is left.
	got := s.String(key + "9999 end")
	if strings.Contains(got, "9999") || !strings.HasPrefix(got, "td_anthropic_api_key_") || got == want+"9999 end" {
		t.Errorf("overlap: %q", got)
	}
	// Two known values that overlap.
	s.AddSecret("LONGER", "Zx9QvT2mKw7L")
	s.AddSecret("OTHER", "mKw7Lp4Rn")
	if got := s.String("<Zx9QvT2mKw7Lp4Rn>"); strings.ContainsAny(strings.Trim(got, "<>"), "QZR") || strings.Count(got, "td_") != 1 {
		t.Errorf("overlapping known values: %q", got)
	}
}

func TestPlaceholdersAreStable(t *testing.T) {
	env := []string{"B_TOKEN=Zx9QvT2mKw7Lp4Rn", "A_KEY=Zx9QvT2mKw7Lp4Rn"}
	one, two := scrub.New(testKey, &scrub.Options{Env: env}), scrub.New(testKey, &scrub.Options{Env: []string{env[1], env[0]}})
	text := "x Zx9QvT2mKw7Lp4Rn y"
	if a, b := one.String(text), two.String(text); a != b || !strings.Contains(a, "td_a_key_") {
		t.Errorf("%q, %q", a, b)
	}
	other := scrub.New(scrub.Key{9}, &scrub.Options{Env: env})
	if a, b := one.String(text), other.String(text); a == b || string(scrub.Renumber([]byte(a))) != string(scrub.Renumber([]byte(b))) {
		t.Errorf("another key: %q, %q", a, b)
	}
	if a := one.KeyedDigest([]byte(text)); len(a) != 64 || a == other.KeyedDigest([]byte(text)) {
		t.Errorf("keyed digest %q", a)
	}
}

func TestAddAlias(t *testing.T) {
	recorded := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	v := recorded.Env([]string{"API_KEY=Zx9QvT2mKw7Lp4Rn"})[0]
	replay := scrub.New(scrub.Key{7}, nil)
	if !replay.AddAlias(v.Value, scrub.Dummy(v)) {
		t.Fatal("the alias was refused")
	}
	if got := replay.String("<" + scrub.Dummy(v) + ">"); got != "<"+v.Value+">" {
		t.Errorf("got %q, want %q", got, v.Value)
	}
	if replay.AddAlias("no placeholder", "Zx9QvT2mKw7Lp4Rn") || replay.AddAlias(v.Value, "short") {
		t.Error("a bad alias was taken")
	}
}

func TestRenumber(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"nothing td_ here", "nothing td_ here"},
		{"td_a_0123456789ab", "td_#1"},
		{"td_a_0123456789ab td_b_c_aaaaaaaaaaaa td_a_0123456789ab", "td_#1 td_#2 td_#1"},
		{"xtd_a_0123456789abcdef", "xtd_#1cdef"},
		{"td_a_0123456789ab td_other_0123456789ab", "td_#1 td_#1"}, // one secret that two rules found
		{"td_a_0123456789a", "td_a_0123456789a"},
		{"td_A_0123456789ab", "td_A_0123456789ab"},
		{"td__0123456789ab", "td__0123456789ab"},
		{"td_td_a_0123456789ab", "td_#1"},
	} {
		in := []byte(tt.in)
		got := scrub.Renumber(in)
		if string(got) != tt.want || string(in) != tt.in {
			t.Errorf("Renumber(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// TestRuleNamesAreClear: whatever a variable is called, its placeholder reads as one placeholder.
func TestRuleNamesAreClear(t *testing.T) {
	name := rapid.StringMatching(`[A-Z_a-f0-9é-]{0,60}`)
	rapid.Check(t, func(t *rapid.T) {
		s := scrub.New(testKey, nil)
		s.AddSecret(name.Draw(t, "name"), "Zx9QvT2mKw7Lp4Rn")
		out := s.String("Zx9QvT2mKw7Lp4Rn")
		if got := string(scrub.Renumber([]byte(out))); got != "td_#1" {
			t.Fatalf("%q renumbers to %q", out, got)
		}
		if again := s.String(out); again != out {
			t.Fatalf("%q was scrubbed again: %q", out, again)
		}
	})
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	s := scrub.New(testKey, nil)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			value := fmt.Sprintf("Zx9QvT2mKw7L%d", i)
			for range 50 {
				s.AddSecret("K", value)
				if out := s.String("a " + value); strings.Contains(out, value) {
					t.Errorf("left: %q", out)
				}
				s.Header("X-Api-Key", value)
				s.Counts()
				s.NotCovered()
			}
		})
	}
	wg.Wait()
}
