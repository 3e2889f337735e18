package scrub

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

// keyPrefixes are the beginnings that all keys of a kind have, the longer before the shorter.
var keyPrefixes = []string{
	"sk-ant-api03-", "sk-ant-oat01-", "sk-ant-admin01-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-", "sk-",
	"AIza", "github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "AKIA", "ASIA", "xoxa-", "xoxb-", "xoxe-", "xoxp-",
	"xoxr-", "xoxs-", "xapp-", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "npm_", "hf_",
}

const (
	maxDummy    = 1 << 20 // bytes; a bound on what a damaged shape can ask for
	pemLineLen  = 64
	otherShapes = "_-.+/="
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

func isUUID(v string) bool {
	end, ok := chars.UUIDAt([]byte(v), 0)
	return ok && end == len(v)
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

// Dummy returns a value for v in which each placeholder is replaced by a dummy of the shape of its secret: what a replay
// gives the program where the secret is missing. It depends on nothing but v, two variables that held the same secret
// get the same dummy, and what found the secret finds the dummy. A variable without a secret keeps its value.
func Dummy(v Var) string {
	value, _ := Dummies(v)
	return value
}

// Dummies is Dummy, and tells which dummy stands for which placeholder, each of them without a form: what AddAlias wants to
// know.
func Dummies(v Var) (value string, made map[string]string) {
	made = make(map[string]string)
	shapes := strings.Fields(v.Shape)
	var b strings.Builder
	from, n := 0, 0
	placeholders.Each([]byte(v.Value), func(start, end int) {
		shape := ""
		if n < len(shapes) {
			shape = shapes[n]
		}
		b.WriteString(v.Value[from:start])
		plain, form := placeholders.Split(v.Value[start:end])
		d := dummy(Digits(plain), shape)
		made[plain] = d
		b.WriteString(placeholders.Disguise(d, form))
		from, n = end, n+1
	})
	b.WriteString(v.Value[from:])
	return b.String(), made
}

// dummy makes a value of a shape from a seed.
func dummy(seed, shape string) string {
	rng := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(seed))))
	kind, rest, _ := strings.Cut(shape, ":")
	switch kind {
	case "uuid":
		return dummyUUID(rng)
	case "pem":
		return dummyPEM(rng, rest)
	case "jwt":
		return dummyJWT(rng, rest)
	}
	length, classes, _ := strings.Cut(rest, ":")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > maxDummy {
		n = 32 // a shape of another version: any key will do
	}
	if kind != "" {
		return kind + randomOf(rng, n-len(kind), classes)
	}
	end := ""
	if strings.Contains(classes, "=") {
		end = "="
	}
	return mixIn(extrasOf(classes), max(0, n-len(end)), func(n int) string { return randomOf(rng, n, classes) }) + end
}

// mixIn returns a text of n bytes in which the extras stand apart from each other, as far as they fit.
func mixIn(extras []string, n int, random func(n int) string) string {
	size := len(strings.Join(extras, ""))
	if size == 0 || size+len(extras) >= n {
		return random(n)
	}
	text := random(n - size)
	var b strings.Builder
	for i, e := range extras {
		b.WriteString(text[i*len(text)/(len(extras)+1) : (i+1)*len(text)/(len(extras)+1)])
		b.WriteString(e)
	}
	b.WriteString(text[len(extras)*len(text)/(len(extras)+1):])
	return b.String()
}

func dummyUUID(rng *rand.Rand) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], rng.Uint64())
	binary.BigEndian.PutUint64(b[8:], rng.Uint64())
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
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

// dummyPEM makes a block of "label:end of lines:bytes", with four lines where the shape has a label alone, as those of older
// recordings have. A block that is too short for its lines has none of 64 digits.
func dummyPEM(rng *rand.Rand, shape string) string {
	label, rest, sized := strings.Cut(shape, ":")
	name, length, _ := strings.Cut(rest, ":")
	label = strings.ReplaceAll(label, "_", " ")
	end := "\n"
	for _, e := range pemLineEnds {
		if sized && e.name == name {
			end = e.text
		}
	}
	head, tail := pemBegin+label+"-----"+end, pemEnd+label+"-----"
	n, err := strconv.Atoi(length)
	if left := n - len(head) - len(tail); err != nil || left < 0 || n > maxDummy {
		n = len(head) + len(tail) + 4*(pemLineLen+len(end))
	}
	var b strings.Builder
	b.WriteString(head)
	for left := n - len(head) - len(tail); left > 0; {
		line := min(left, pemLineLen+len(end))
		if line <= len(end) { // too little for a line of its own
			b.WriteString(randomOf(rng, line, "aA0"))
		} else {
			b.WriteString(randomOf(rng, line-len(end), "aA0") + end)
		}
		left -= line
	}
	return b.String() + tail
}

func dummyJWT(rng *rand.Rand, shape string) string {
	lengths, told, _ := strings.Cut(shape, ":")
	claims := `{"sub":"nobody"`
	if told != "" {
		claims = dummyClaims(rng, told)
	}
	parts := strings.SplitN(lengths, ".", 3)
	for i := range parts {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 || n > maxDummy {
			n = 43
		}
		switch i {
		case 0:
			parts[i] = jwtPart(rng, n, `{"alg":"none","typ":"JWT"`)
		case 1:
			parts[i] = jwtPart(rng, n, claims)
		default:
			parts[i] = randomOf(rng, n, "aA0")
		}
	}
	return strings.Join(parts, ".")
}

// jwtPart returns n digits of base64url that decode to an object which begins with begin, or begin like one where there is
// no room for it.
func jwtPart(rng *rand.Rand, n int, begin string) string {
	size := base64.RawURLEncoding.DecodedLen(n)
	if size <= len(begin) || base64.RawURLEncoding.EncodedLen(size) != n {
		return "eyJ" + randomOf(rng, n-len("eyJ"), "aA0")
	}
	object := begin + strings.Repeat(" ", size-len(begin)-1) + "}"
	return base64.RawURLEncoding.EncodeToString([]byte(object))
}

// randomOf returns n characters of the classes, each class in turn at first, so that all of them occur. Where there are
// letters or digits nothing else is used: a dummy must not be split where its secret was not.
func randomOf(rng *rand.Rand, n int, classes string) string {
	var sets []string
	for _, c := range classes {
		switch c {
		case 'a':
			sets = append(sets, "abcdefghijklmnopqrstuvwxyz")
		case 'A':
			sets = append(sets, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
		case '0':
			sets = append(sets, "0123456789")
		case 'x':
			sets = append(sets, "abcdef", "0123456789")
		}
	}
	if len(sets) == 0 {
		sets = []string{"abcdefghijklmnopqrstuvwxyz", "0123456789"}
	}
	all := strings.Join(sets, "")
	var b strings.Builder
	for i := range max(n, 0) {
		set := all
		if i < 4*len(sets) {
			set = sets[i%len(sets)]
		}
		if i < len(sets) {
			set = telling(set)
		}
		b.WriteByte(set[rng.IntN(len(set))])
	}
	return b.String()
}

// telling are those letters of a set whose hex digits have a letter: by its case hex and percent-encoding are told from those in the other
// case. A set that has none stays as it is.
func telling(set string) string {
	out := strings.Map(func(r rune) rune {
		if chars.IsAlnum(byte(r)) && !chars.IsDigit(byte(r)) && r&0xf >= 0xa {
			return r
		}
		return -1
	}, set)
	return cmp.Or(out, set)
}
