package redact

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
)

func textsOf(b []byte) (texts []string) {
	u := &unfolding{do: func(t []byte) { texts = append(texts, string(t)) }}
	u.content(b, maxDepth)
	return texts
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func TestUnfolding(t *testing.T) {
	const name = "Anna Schmidt, of here"
	for form, text := range map[string]string{
		"plain": "x\n" + name, "JSON": `{"a":["` + strings.ReplaceAll(name, " ", `\u0020`) + `"]}`, "JSON in JSON": `"{\"a\":\"Anna\\u0020Schmidt, of here\"}"`,
		"an event":       "event: x\ndata: {\"t\":\"Anna\\tSchmidt\", \"u\":\"Anna Schmidt, of here\"}\n\n",
		"base64":         "x " + base64.StdEncoding.EncodeToString([]byte(name)),
		"hex":            hex.EncodeToString([]byte(name)),
		"percent":        "q=Anna+Schmidt%2C%20of+here",
		"gzip":           gzipped("x " + name),
		"gzip in base64": base64.StdEncoding.EncodeToString([]byte(gzipped(`{"a":"` + name + `"}`))),
		"a program":      "\x7fELF\x00\xff" + name + "\x00\xfe",
	} {
		if got := textsOf([]byte(text)); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, name) }) {
			t.Errorf("%s: %q", form, got)
		}
	}
	for _, got := range textsOf([]byte("user td_match_0123456789ab is here")) {
		if strings.Contains(got, "td_") || strings.Contains(got, "user") && strings.Contains(got, "here") {
			t.Errorf("a placeholder is a text: %q", got)
		}
	}
}

func TestRules(t *testing.T) {
	if _, err := Match("a*"); err == nil {
		t.Error("an expression that matches nothing is taken")
	}
	var got []string
	Email().find([]byte("Ann <ann@example.org>, git@github.com:x"), func(v []byte) { got = append(got, string(v)) })
	if !slices.Equal(got, []string{"ann@example.org"}) {
		t.Errorf("%q", got)
	}
}

func FuzzUnfolding(f *testing.F) {
	f.Add([]byte(`{"a":"eyJhIjoiYiJ9"}` + "\ndata: [1]\n%41"))
	f.Add([]byte(gzipped("x")))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range textsOf(b) {
			if strings.Contains(text, "\x00") {
				t.Errorf("%q", text)
			}
		}
	})
}
