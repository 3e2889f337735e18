package scrub

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
)

// A Secret is one that was found in what a program sent, got or left in its files: enough to make a dummy of it for a
// replay that cannot know the value.
type Secret struct {
	Placeholder string `json:"placeholder"`
	Shape       string `json:"shape"` // see Var
	// Late says that it stood in a recording before it was known: a replay may meet it as early, and seeks it (Seek).
	Late bool `json:"late,omitempty"`
}

// keyPrefixes are the beginnings that all keys of a kind have, the longer before the shorter.
var keyPrefixes = []string{
	"sk-ant-api03-", "sk-ant-oat01-", "sk-ant-admin01-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-",
	"AIza", "github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "AKIA", "ASIA", "xoxa-", "xoxb-", "xoxe-", "xoxp-",
	"xoxr-", "xoxs-", "xapp-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "npm_", "hf_",
}

const (
	longestShape = 1 << 10 // bytes
	maxDummy     = 1 << 20 // bytes; a bound on what a damaged shape can ask for
	pemLineLen   = 64
)

// shapeOf describes a secret so that a dummy can be made; see Var.
func shapeOf(value string) string {
	if isUUID(value) {
		return "uuid"
	}
	if label, ok := pemLabelOf(value); ok {
		return fmt.Sprintf("pem:%s:%s:%d", strings.ReplaceAll(label, " ", "_"), pemLineEnd(value), len(value))
	}
	if parts := strings.Split(value, "."); len(parts) == 3 && strings.HasPrefix(value, "eyJ") {
		shape := fmt.Sprintf("jwt:%d.%d.%d", len(parts[0]), len(parts[1]), len(parts[2]))
		if claims := claimsOf(parts[1]); claims != "" {
			shape += ":" + claims
		}
		return shape
	}
	for _, p := range append(keyPrefixes[:len(keyPrefixes):len(keyPrefixes)], leakPrefix(value)) {
		if p != "" && strings.HasPrefix(value, p) {
			return fmt.Sprintf("%s:%d:%s", p, len(value), classes(value[len(p):]))
		}
	}
	return fmt.Sprintf(":%d:%s", len(value), classes(value))
}

// leakPrefix returns the literal with which a key of a vendor, or one that gitleaks knows, begins; "" for none.
func leakPrefix(value string) (longest string) {
	for i := range vendorKeys {
		if p := vendorKeys[i].prefix; len(p) > len(longest) && strings.HasPrefix(value, p) {
			longest = p
		}
	}
	for i := range leaks {
		for _, name := range leaks[i].names {
			if !leaks[i].assigned && len(name) > len(longest) && strings.HasPrefix(value, name) && !strings.ContainsAny(name, ": ") {
				longest = name
			}
		}
	}
	return longest
}

func pemLabelOf(value string) (label string, ok bool) {
	rest, ok := strings.CutPrefix(value, pemBegin)
	label, _, whole := strings.Cut(rest, "-----")
	return label, ok && whole && strings.Contains(label, pemLabel) && len(label) <= 64
}

// A kind is a class of a shape and its characters: each secret has one of them at least.
type kind struct {
	class byte
	chars string
}

const (
	smallLetters = "abcdefghijklmnopqrstuvwxyz"
	capitals     = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	numerals     = "0123456789"
	hexLetters   = "abcdef"
	hexOnly      = 'x' // both of hexLetters and numerals, and nothing else
	nonASCII     = 'u'
	drawn        = "aA0x" // classes of which a dummy is drawn
	notEscaped   = "_-.=" // of the others, those that no encoding escapes but at an end
)

// kinds are in the order in which a shape has them. Of the characters that some encodings escape a dummy has those of its secret, so that
// it is escaped where that was, and the placeholder of a replay has the form of the recorded one.
var kinds = func() []kind {
	out := []kind{{'a', smallLetters}, {'A', capitals}, {'0', numerals}}
	for _, c := range []byte(notEscaped[:3] + "+/=") {
		out = append(out, kind{c, string(c)})
	}
	for c := byte('!'); c <= '~'; c++ {
		if !chars.IsAlnum(c) && !slices.ContainsFunc(out, func(k kind) bool { return k.class == c }) {
			out = append(out, kind{c, string(c)})
		}
	}
	return append(out, kind{'s', " "}, kind{'t', "\t"}, kind{'n', "\n"}, kind{'r', "\r"})
}()

// classes names the classes of characters in v.
func classes(v string) string {
	if strings.Trim(v, hexLetters+numerals) == "" && strings.ContainsAny(v, hexLetters) && strings.ContainsAny(v, numerals) {
		return string(hexOnly)
	}
	var out []byte
	for _, k := range kinds {
		if strings.ContainsAny(v, k.chars) {
			out = append(out, k.class)
		}
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r >= utf8.RuneSelf }) {
		out = append(out, nonASCII)
	}
	return string(out)
}

// charsOf lists the characters of a class, of which a secret has one of each text at least; none for a class that is not known.
func charsOf(class byte) []string {
	switch class {
	case hexOnly:
		return []string{hexLetters, numerals}
	case nonASCII:
		return []string{"é"}
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.class == class })
	if i < 0 {
		return nil
	}
	return []string{kinds[i].chars}
}

// escaped returns the characters of a shape's classes that a URL or JSON escapes, each once; = stands where base64 has it, at the end.
func escaped(classes string) (out []string) {
	for _, class := range []byte(classes) {
		if strings.IndexByte(drawn+notEscaped, class) < 0 {
			out = append(out, charsOf(class)...)
		}
	}
	return out
}

// Programs look into the tokens that they get: when one ends, whose it is. So the shape of a JSON Web Token tells its times,
// which open nothing, and the lengths of the texts of a few claims that most tokens have. Other claims are not told, not
// even by name.
var (
	timeClaims = []string{"exp", "iat", "nbf", "auth_time"}
	textClaims = []string{"sub", "iss", "aud", "jti"}
)

const (
	maxClaimText = 128 // bytes
	maxTime      = 1e11
)

// claimsOf describes the claims of a token by its second part: exp=1999999999,sub=3; "" where it tells nothing.
func claimsOf(part string) string {
	raw, err := base64.RawURLEncoding.DecodeString(part)
	var claims map[string]any
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return ""
	}
	var told []string
	for _, name := range timeClaims {
		if at, ok := claims[name].(float64); ok && at >= 0 && at < maxTime {
			told = append(told, name+"="+strconv.FormatInt(int64(at), 10))
		}
	}
	for _, name := range textClaims {
		if text, ok := claims[name].(string); ok && len(text) <= maxClaimText {
			told = append(told, name+"="+strconv.Itoa(len(text)))
		}
	}
	return strings.Join(told, ",")
}

// pemLineEnds are the ends of the lines of a block, as the shapes name them: those of bytes, and those of JSON, once and
// twice quoted.
var pemLineEnds = []struct{ name, text string }{{"rn", "\r\n"}, {"n", "\n"}, {"jjn", `\\n`}, {"jrn", `\r\n`}, {"jn", `\n`}}

// pemLineEnd names the end of the first line of a block; "" for none that is known.
func pemLineEnd(value string) string {
	_, rest, _ := strings.Cut(value[len(pemBegin):], "-----")
	for _, e := range pemLineEnds {
		if strings.HasPrefix(rest, e.text) {
			return e.name
		}
	}
	return ""
}

// A Given is what stands in a text where a scrubbed form of its like has a placeholder.
type Given struct{ Placeholder, Value string }
