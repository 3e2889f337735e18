package scrub

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
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
	otherShapes  = "_-.+/="
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

// classes names the classes of characters in v.
func classes(v string) string {
	hexOnly := true
	var lower, upper, digit bool
	for i := range len(v) {
		c := v[i]
		hexOnly = hexOnly && chars.IsLowerHex(c)
		lower = lower || c >= 'a' && c <= 'z'
		upper = upper || c >= 'A' && c <= 'Z'
		digit = digit || chars.IsDigit(c)
	}
	if hexOnly && lower && digit {
		return "x"
	}
	var out strings.Builder
	for _, class := range []struct {
		in   bool
		name byte
	}{{lower, 'a'}, {upper, 'A'}, {digit, '0'}} {
		if class.in {
			out.WriteByte(class.name)
		}
	}
	for i := range len(otherShapes) {
		if strings.IndexByte(v, otherShapes[i]) >= 0 {
			out.WriteByte(otherShapes[i])
		}
	}
	for _, e := range extras {
		if strings.Contains(v, e.text) {
			out.WriteByte(e.class)
		}
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r >= utf8.RuneSelf }) {
		out.WriteByte(nonASCII)
	}
	return out.String()
}

// An extra is a character that some encodings escape. A dummy has those of its secret, so that it is escaped where that was,
// and the placeholder of a replay has the form of the recorded one.
type extra struct {
	class byte
	text  string
}

const nonASCII = 'u'

var extras = func() (out []extra) {
	for c := byte('!'); c <= '~'; c++ {
		if !chars.IsAlnum(c) && strings.IndexByte(otherShapes, c) < 0 {
			out = append(out, extra{c, string(c)})
		}
	}
	return append(out, extra{'s', " "}, extra{'t', "\t"}, extra{'n', "\n"}, extra{'r', "\r"})
}()

// extrasOf returns the extras of a shape's classes, each once, and of the other characters those that a URL escapes; of
// these = stands where base64 has it, at the end.
func extrasOf(classes string) (out []string) {
	for _, c := range []string{"+", "/"} {
		if strings.Contains(classes, c) {
			out = append(out, c)
		}
	}
	for _, e := range extras {
		if strings.IndexByte(classes, e.class) >= 0 {
			out = append(out, e.text)
		}
	}
	if strings.IndexByte(classes, nonASCII) >= 0 {
		out = append(out, "é")
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

// A class of a shape as bits, one for each kind of character that it stands for.
const (
	aToF = 1 << iota // letters
	gToZ
	capitals
	numerals
	beyondASCII // what is not ASCII
	firstOther

	small = aToF | gToZ
)

// classOf has of each byte the bit of its class; 0 for none that a shape names.
var classOf = func() (of [256]uint64) {
	for c := range of {
		switch c := byte(c); {
		case chars.IsLowerHex(c) && !chars.IsDigit(c):
			of[c] = aToF
		case c >= 'a' && c <= 'z':
			of[c] = gToZ
		case c >= 'A' && c <= 'Z':
			of[c] = capitals
		case chars.IsDigit(c):
			of[c] = numerals
		case c >= utf8.RuneSelf:
			of[c] = beyondASCII
		}
	}
	bit := uint64(firstOther)
	for i := range len(otherShapes) {
		of[otherShapes[i]] = bit
		bit <<= 1
	}
	for _, e := range extras {
		of[e.text[0]] = bit
		bit <<= 1
	}
	return of
}()

// neededOf returns for each class of a shape the bits of which a secret has one at least. It has no other bits.
func neededOf(classes string) (needed []uint64) {
	for i := range len(classes) {
		switch c := classes[i]; c {
		case 'a':
			needed = append(needed, small)
		case 'A':
			needed = append(needed, capitals)
		case '0':
			needed = append(needed, numerals)
		case 'x':
			needed = append(needed, aToF, numerals)
		case nonASCII:
			needed = append(needed, beyondASCII)
		default:
			needed = append(needed, otherClass(c))
		}
	}
	return needed
}

// otherClass is the bit of a class that is one character.
func otherClass(class byte) uint64 {
	for _, e := range extras {
		if e.class == class {
			return classOf[e.text[0]]
		}
	}
	return classOf[class]
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
