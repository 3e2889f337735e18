package scrub_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// A spelling writes one character of a value: as it is, or escaped in a way of its own.
func spelling(t *rapid.T, r rune, percent, twice, json bool) string {
	digits := func(b byte) string { // each digit in a case of its own
		out := []byte(fmt.Sprintf("%02x", b))
		for i := range out {
			if rapid.Bool().Draw(t, "upper") {
				out[i] = strings.ToUpper(string(out[i]))[0]
			}
		}
		return string(out)
	}
	escaped := func(s string) (out string) { // every byte
		for i := range len(s) {
			out += "%" + digits(s[i])
		}
		return out
	}
	plain := string(r)
	if json && (r == '"' || r == '\\' || r < ' ') || json && rapid.IntRange(0, 2).Draw(t, "json") == 0 {
		ways := []string{fmt.Sprintf(`\u%s%s`, digits(byte(r>>8)), digits(byte(r)))}
		if i := strings.IndexRune("\b\f\n\r\t\"\\/", r); i >= 0 {
			ways = append(ways, `\`+`bfnrt"\/`[i:i+1])
		}
		plain = rapid.SampledFrom(ways).Draw(t, "escape")
	}
	if !percent {
		return plain
	}
	out := ""
	for i := range len(plain) {
		switch n := rapid.IntRange(0, 3).Draw(t, "percent"); {
		case n == 0 || plain[i] == '%':
			out += escaped(plain[i : i+1])
		case n == 1 && twice && rapid.IntRange(0, 3).Draw(t, "twice") == 0:
			one := escaped(plain[i : i+1])
			out += "%25" + one[1:]
		default:
			out += plain[i : i+1]
		}
	}
	return out
}

// TestEscapesOfWhatEscapes: where a value holds what an escape begins with, that stands escaped itself, wherever in the value it is.
func TestEscapesOfWhatEscapes(t *testing.T) {
	const rest = `7Q2x"9Zp`
	quoted := func(v string) string {
		out, _ := json.Marshal(v)
		return string(out)
	}
	for _, sign := range []string{"%", `\`, `"`, "%41", "%25", "%zz", `\u0041`, `\"`, `\\`} {
		for at := range len(rest) {
			v := rest[:at] + sign + rest[at:]
			s := scrub.New(testKey, nil)
			s.AddSecret("x", v)
			for name, text := range map[string]string{
				"plain": v, "JSON": quoted(v), "JSON in JSON": quoted(quoted(v)),
				"query": url.QueryEscape(v), "path": url.PathEscape(v), "query, twice": url.QueryEscape(url.QueryEscape(v)),
				"JSON in a query": url.QueryEscape(quoted(v)), "a query in JSON": quoted(url.QueryEscape(v)), "JSON in JSON in a query": url.QueryEscape(quoted(quoted(v))),
				"by number": strings.ReplaceAll(quoted(v), `\\`, `\u005c`),
			} {
				if out, found := s.Bytes([]byte("q=" + text + "&b")); !found {
					t.Errorf("%s, %s: %s", v, name, out)
				}
			}
		}
	}
}

// TestMixedEscapes: each byte of a known value may stand escaped or not, in whatever way it can be: %2F for some slashes,
// \/ for others, \u002f for a third, and digits in either case; whole and in parts.
func TestMixedEscapes(t *testing.T) {
	values := append([]string{"postgres/secret/path==/x", "a b/c+d&e=f<g>h\"i\\j"}, canaries...)
	scrubbers := make(map[string]*scrub.Scrubber)
	for _, v := range values {
		scrubbers[v] = scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=" + v}})
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom(values).Draw(t, "value")
		percent, json := rapid.Bool().Draw(t, "percent"), rapid.Bool().Draw(t, "json")
		if strings.Contains(v, "%") && !percent && json {
			return // %41 stands for itself
		}
		twice := !strings.Contains(v, "%") // else %2541 is two texts
		text := ""
		for _, r := range v {
			if r > 0xffff {
				return // as two code units: TestKnown
			}
			text += spelling(t, r, percent, twice, json)
		}
		text = "<" + text + ">"
		s := scrubbers[v]
		got := s.String(text)
		if n := strings.Count(got, "td_"); n != 1 || len(got) > 60 {
			t.Fatalf("%q as %q became %q", v, text, got)
		}
		if parts := stream(t, s, text, rapid.IntRange(1, 9).Draw(t, "n")); parts != got {
			t.Fatalf("%q in parts became %q", text, parts)
		}
	})
}
