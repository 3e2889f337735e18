package scrub_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// soughtValues are secrets that no rule finds by its shape.
var soughtValues = []string{
	"c9+late7Q2x9ZpLm4Vt8Kr/W3", "late7Q2x9ZpLm4Vt8KrW3nHd", "0c2f9e4a7bd158361c2f9e4a7bd15836", "3f1c9a52-7c1e-4b7e-9d55-0a6f2b1c7e88",
	"correct horse battery staple", "pass\\n\"w<ö>rd&x", "npm_short1",
}

// lateSecrets are what a recording lists of values that it met before it knew them.
func lateSecrets(t *testing.T, values ...string) []scrub.Secret {
	t.Helper()
	s := scrub.New(testKey, nil)
	mark := s.Mark()
	for i, v := range values {
		s.AddSecret(fmt.Sprintf("rule%d", i), v)
	}
	late := s.Since(mark)
	for _, v := range values {
		late.Bytes([]byte(v))
	}
	found := late.Found()
	for _, f := range found {
		if !f.Late {
			t.Errorf("%+v is not said to be late", f)
		}
	}
	if len(found) != len(values) {
		t.Fatalf("%d of %d are listed", len(found), len(values))
	}
	return found
}

// seeking returns a Scrubber that knows nothing and seeks secrets.
func seeking(secrets []scrub.Secret) *scrub.Scrubber {
	s := scrub.New(testKey, nil)
	s.Seek(secrets)
	return s
}

// TestSeek: in whichever disguise a value stands first, it is known from there on.
func TestSeek(t *testing.T) {
	for _, v := range soughtValues {
		secrets := lateSecrets(t, v)
		for name, text := range map[string]string{
			"plain":             "make it for " + v + ", soon",
			"alone":             v,
			"behind a letter":   "for=x" + v + " and",
			"before a letter":   "for " + v + "x and",
			"JSON":              `{"for":` + quotedJSON(v) + `}`,
			"JSON in JSON":      `{"body":` + quotedJSON(`{"for":`+quotedJSON(v)+`}`) + `}`,
			"a query":           "/make?for=" + url.QueryEscape(v) + "&at=1",
			"a path":            "/make/" + url.PathEscape(v) + "/now",
			"JSON in a query":   "/make?q=" + url.QueryEscape(`{"for":`+quotedJSON(v)+`}`),
			"hex":               "digest " + hex.EncodeToString([]byte(v)) + ".",
			"HEX":               strings.ToUpper(hex.EncodeToString([]byte("a" + v))),
			"base64":            "basic " + base64.StdEncoding.EncodeToString([]byte("ann:"+v+" and more")),
			"base64url":         "t=" + base64.RawURLEncoding.EncodeToString([]byte(v)),
			"base64 in a path":  "/make/" + base64.StdEncoding.EncodeToString([]byte(v)),
			"base64 in lines":   inLines("a letter to "+v+" and more", 16, "\r\n"),
			"base64 in JSON":    quotedJSON(inLines("a letter to "+v+" and more", 16, "\n")),
			"quoted everywhere": `"` + eachUnit(v) + `"`,
		} {
			s := seeking(secrets)
			out, found := s.Bytes([]byte(text))
			if !found || strings.Contains(string(out), v) {
				t.Errorf("%s, %q: %q", v, name, out)
				continue
			}
			if out := s.String("again " + v); strings.Contains(out, v) || !strings.Contains(out, secrets[0].Placeholder) {
				t.Errorf("%s, after %s: %q", v, name, out)
			}
			if out := s.Reveal([]byte(secrets[0].Placeholder)); string(out) != v {
				t.Errorf("%s is revealed as %q", v, out)
			}
		}
	}
}

func quotedJSON(v string) string {
	out, _ := json.Marshal(v)
	return string(out)
}

// eachUnit is v with each character as \u00xx.
func eachUnit(v string) string {
	var b strings.Builder
	for _, r := range v {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

func inLines(v string, width int, end string) string {
	digits := base64.StdEncoding.EncodeToString([]byte(v))
	var b strings.Builder
	for len(digits) > width {
		b.WriteString(digits[:width] + end)
		digits = digits[width:]
	}
	return b.String() + digits
}

// TestSeekElsewhere: whatever takes a text looks for what is sought.
func TestSeekElsewhere(t *testing.T) {
	const v = "late7Q2x9ZpLm4Vt8KrW3nHd"
	secrets := lateSecrets(t, v)
	for name, look := range map[string]func(s *scrub.Scrubber){
		"LearnBytes":  func(s *scrub.Scrubber) { s.LearnBytes([]byte("for " + v)) },
		"LearnHeader": func(s *scrub.Scrubber) { s.LearnHeader(map[string][]string{"X-Note": {"for " + v}}) },
		"LearnURL":    func(s *scrub.Scrubber) { s.LearnURL("https://h/make/" + v) },
		"Header":      func(s *scrub.Scrubber) { s.Header("X-Note", "for "+v) },
		"Writer": func(s *scrub.Scrubber) {
			w := s.Writer(new(bytes.Buffer))
			fmt.Fprintf(w, "for %s\n", v)
			w.Close()
		},
		"FileWriter": func(s *scrub.Scrubber) {
			w := s.FileWriter(new(bytes.Buffer))
			fmt.Fprintf(w, "for %s\n", v)
			w.Close()
		},
	} {
		s := seeking(secrets)
		if look(s); s.String(v) != secrets[0].Placeholder {
			t.Errorf("%s does not find it", name)
		}
	}
}

// TestSeekInPieces: a stream may be cut anywhere; what was passed on of a value before it was known the caller takes out by Since.
func TestSeekInPieces(t *testing.T) {
	for _, v := range soughtValues {
		secrets := lateSecrets(t, v)
		text := strings.Repeat("and so on ", 40) + quotedJSON(v) + strings.Repeat(" and so on", 40)
		for _, size := range []int{1, 2, 3, 7, 31, 4096} {
			s := seeking(secrets)
			mark := s.Mark()
			var out bytes.Buffer
			w := s.Writer(&out)
			for at := 0; at < len(text); at += size {
				fmt.Fprint(w, text[at:min(at+size, len(text))])
			}
			w.Close()
			late := s.Since(mark)
			if late == nil {
				t.Errorf("%s in pieces of %d is not found", v, size)
				continue
			}
			if again, _ := late.Bytes(out.Bytes()); !bytes.Contains(again, []byte(secrets[0].Placeholder[len(secrets[0].Placeholder)-12:])) {
				t.Errorf("%s in pieces of %d: %s", v, size, again)
			}
		}
	}
}

// TestSeekOnlyThat: what has not the keyed digest is nothing, whatever it looks like.
func TestSeekOnlyThat(t *testing.T) {
	const v, other = "late7Q2x9ZpLm4Vt8KrW3nHd", "late7Q2x9ZpLm4Vt8KrW3nHe"
	secrets := lateSecrets(t, v)
	s := seeking(secrets)
	for _, text := range []string{other, v[1:], v[:len(v)-1], "for " + strings.ToUpper(v), "x" + v + "y"} {
		if out := s.String(text); out != text {
			t.Errorf("%q is taken for it: %q", text, out)
		}
	}
	if s.String(v) != secrets[0].Placeholder {
		t.Error("it is not found after what is not it")
	}

	var otherKey scrub.Key
	otherKey[0] = 1
	s = scrub.New(otherKey, nil)
	s.Seek(secrets)
	if out := s.String(v); out != v {
		t.Errorf("another key tells it: %q", out)
	}
}

// TestSeekManyAndNone: what is known is not sought, and nothing that a recording lists makes Seek fail.
func TestSeekManyAndNone(t *testing.T) {
	const v = "late7Q2x9ZpLm4Vt8KrW3nHd"
	s := scrub.New(testKey, nil)
	s.AddSecret("mine", v)
	s.Seek(lateSecrets(t, v))
	if got := s.String(v); !strings.HasPrefix(got, "td_mine_") {
		t.Errorf("%q: what was known is another's", got)
	}
	for _, shape := range []string{
		"", ":", "::", ":24", ":24:", ":-1:aA0", ":99999999999999999999:aA0", ":8:\x00\xff", "uuid", "uuid:9:a", "pem:x:y:30", "jwt:1.2.3", "sk-:5:aA0",
		strings.Repeat("sk-", 9) + ":24:aA0", ":24:aA0 :24:aA0",
	} {
		s := seeking([]scrub.Secret{{Placeholder: "td_x_0123456789ab", Shape: shape}, {Placeholder: "none", Shape: shape}})
		for _, text := range append(soughtValues, "", "\\", "%", "\\u", "%4", strings.Repeat("a", 100)) {
			if out := s.String(text); out != text {
				t.Errorf("%q makes %q of %q", shape, out, text)
			}
		}
	}
	var many []scrub.Secret
	for i := range 1000 {
		many = append(many, scrub.Secret{Placeholder: fmt.Sprintf("td_x_%012x", i), Shape: fmt.Sprintf(":%d:a", 8+i)})
	}
	s = seeking(append(lateSecrets(t, v), many...))
	if s.String(v) == v {
		t.Error("the first of many is not sought")
	}
}
