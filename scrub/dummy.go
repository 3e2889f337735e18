package scrub

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
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
	for _, k := range vendorKeys() {
		if p := k.prefix; len(p) > len(longest) && strings.HasPrefix(value, p) {
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

const (
	// maxMadeUp bounds in bytes all dummies of one replay, those that are taken too: a recorder finds fewer and shorter secrets.
	maxMadeUp = 16 << 20
	// leastMade is for how many bytes a dummy counts at least: as long takes the seed of the shortest.
	leastMade  = 64
	dummyTries = 256
)

// Dummies returns a value for v in which each placeholder is replaced by a dummy of the shape of its secret: what a replay
// gives the program where the secret is missing. It depends on nothing but v, two variables that held the same secret
// get the same dummy, and what found the secret finds the dummy. A variable without a secret keeps its value. made tells which dummy
// stands for which placeholder, each of them without a form: what AddAlias wants to know.
func Dummies(v Var) (value string, made map[string]string) {
	made = make(map[string]string)
	shapes := strings.Fields(v.Shape)
	out := placeholders.Replace([]byte(v.Value), func(placeholder string) (string, bool) {
		shape := ""
		if len(shapes) > 0 {
			shape, shapes = shapes[0], shapes[1:]
		}
		plain, form := placeholders.Split(placeholder)
		made[plain] = dummy(Digits(plain), shape)
		return placeholders.Disguise(made[plain], form), true
	})
	return string(out), made
}

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
	return mixIn(escaped(classes), max(0, n-len(end)), func(n int) string { return randomOf(rng, n, classes) }) + end
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

// dummyPEM makes a block of "label:end of lines:bytes". One that is too short for its lines has none of 64 digits.
func dummyPEM(rng *rand.Rand, shape string) string {
	label, rest, _ := strings.Cut(shape, ":")
	name, length, _ := strings.Cut(rest, ":")
	label = strings.ReplaceAll(label, "_", " ")
	end := "\n"
	for _, e := range pemLineEnds {
		if e.name == name {
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
	for _, class := range []byte(classes) {
		if strings.IndexByte(drawn, class) >= 0 {
			sets = append(sets, charsOf(class)...)
		}
	}
	if len(sets) == 0 {
		sets = []string{smallLetters, numerals}
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

// dummyClaims returns the beginning of an object with the claims that claimsOf told: times as they were, texts of their
// lengths. What is none of these is left out.
func dummyClaims(rng *rand.Rand, told string) string {
	var members []string
	for claim := range strings.SplitSeq(told, ",") {
		name, number, _ := strings.Cut(claim, "=")
		n, err := strconv.ParseInt(number, 10, 64)
		switch {
		case err != nil || n < 0:
		case slices.Contains(timeClaims, name) && n < maxTime:
			members = append(members, `"`+name+`":`+strconv.FormatInt(n, 10))
		case slices.Contains(textClaims, name) && n <= maxClaimText:
			members = append(members, `"`+name+`":"`+randomOf(rng, int(n), "a")+`"`)
		}
	}
	return "{" + strings.Join(members, ",")
}

// DummiesOf returns for each of secrets a value of its shape and length: what a replay gives the program in its place. They
// depend on secrets and on taken, which tells the values that stand for others: two secrets of one letter must stay two.
// One for which no such value is found is left out, as is what would be more than 16 MiB in all.
func DummiesOf(secrets []Secret, taken func(value string) bool) (out []Given) {
	made, left := make(map[string]bool), maxMadeUp
	for _, s := range secrets {
		if !placeholders.Is(s.Placeholder) || len(s.Shape) > longestShape {
			continue
		}
		size := ShapeLen(s.Shape)
		if size > maxDummy {
			continue
		}
		seed := Digits(s.Placeholder)
		for n := 0; n < dummyTries && size <= left; n++ {
			value := dummy(seed, s.Shape)
			left -= max(len(value), leastMade)
			if value != "" && !made[value] && !taken(value) {
				made[value] = true
				out = append(out, Given{s.Placeholder, value})
				break
			}
			seed = Digits(s.Placeholder) + "#" + strconv.Itoa(n)
		}
	}
	return out
}

// ShapeLen returns how many bytes the secrets of a shape have, of several shapes (see Var) and of a token's parts the sum; 0
// where it says nothing. A length that no secret has counts for as much as is not made any more.
func ShapeLen(shape string) (sum int) {
	for one := range strings.FieldsSeq(shape) {
		_, rest, _ := strings.Cut(one, ":")
		for part := range strings.FieldsFuncSeq(rest, func(r rune) bool { return r == ':' || r == '.' }) {
			if n, err := strconv.Atoi(part); err == nil && n > 0 {
				sum += min(n, maxDummy+1)
			}
		}
	}
	return sum
}
