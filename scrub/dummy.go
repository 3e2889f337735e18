package scrub

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/scrub/internal/chars"
	"github.com/tapedeck-dev/tapedeck/scrub/internal/placeholders"
)

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
		size := ShapeLen(s.Shape)
		if !placeholders.Is(s.Placeholder) || len(s.Shape) > longestShape || size > maxDummy {
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
