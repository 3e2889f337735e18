package scrub_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// example draws a text that expr matches.
func example(rng *rand.Rand, expr string) string {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	drawFrom(rng, re, &b)
	return b.String()
}

func drawFrom(rng *rand.Rand, re *syntax.Regexp, b *strings.Builder) {
	repeat := func(least, most int) {
		if most < 0 || most > least+20 {
			most = least + 20
		}
		for range least + rng.IntN(most-least+1) {
			drawFrom(rng, re.Sub[0], b)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(drawRune(rng, re.Rune))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			drawFrom(rng, sub, b)
		}
	case syntax.OpAlternate:
		drawFrom(rng, re.Sub[rng.IntN(len(re.Sub))], b)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpStar:
		repeat(0, -1)
	case syntax.OpPlus:
		repeat(1, -1)
	case syntax.OpRepeat:
		repeat(re.Min, re.Max)
	case syntax.OpAnyCharNotNL, syntax.OpAnyChar:
		b.WriteByte(46)
	case syntax.OpEmptyMatch:
	default:
		panic(re.Op.String())
	}
}

// drawRune draws a letter or a digit of a class, and another printable one where there is none.
func drawRune(rng *rand.Rand, class []rune) rune {
	var plain, other []rune
	for i := 0; i < len(class); i += 2 {
		for r := class[i]; r <= class[i+1] && r < 0x7f; r++ {
			if r < 0x80 && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
				plain = append(plain, r)
			} else if r > ' ' {
				other = append(other, r)
			}
		}
	}
	if len(plain) == 0 {
		plain = other
	}
	return plain[rng.IntN(len(plain))]
}

// contexts are what stands around a secret. Of an assigned one the name comes first.
var contexts = struct{ literal, assigned, bare []string }{
	literal: []string{"KEY", "use KEY, please", `{"k":"KEY"}`, `export A='KEY'`, `{\"k\":\"KEY\"}`, `a\nKEY\nb`, "?k=KEY&x=1", "<KEY>", "at the end KEY.\n"},
	// The name says that it is of a secret.
	assigned: []string{`NAME_token = "KEY"`, "NAME_API_KEY=KEY\n", `{"NAMEToken": "KEY"}`, `{\"NAME-key\":\"KEY\"}`,
		`{"a":"{\\\"NAMESecret\\\": \\\"KEY\\\"}"}`, `const NAMEPassword = 'KEY';`, `NAME_key => "KEY"`, "NAME_auth:\tKEY\r\n",
		`curl -d NAME_key=KEY&x=y`, `"text":"export NAME_KEY=KEY\nls"`, `f(NAME_KEY, "KEY")`},
	bare: []string{"NAME=KEY\n", `{"a":"{\\\"NAME\\\": \\\"KEY\\\"}"}`, `const NAME = 'KEY';`, "NAME:\tKEY\r\n", `f(NAME, "KEY")`},
}

// TestLeaksAreFound: an example of each shape is hidden in every context, and nothing of it is left; as a stream too.
func TestLeaksAreFound(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	s := scrub.New(testKey, nil)
	for _, l := range scrub.Leaks() {
		texts := contexts.literal
		if l.Assigned {
			texts = contexts.assigned
		}
		if l.Assigned && !l.Says {
			texts = append(slices.Clone(texts), contexts.bare...)
		}
		for _, context := range texts {
			secret := secretOf(rng, l)
			before := ""
			if l.Behind != "" {
				before = example(rng, strings.TrimSuffix(l.Behind, "$"))
			}
			text := strings.NewReplacer("NAME_KEY", l.Name+"_KEY", "NAME_API_KEY", l.Name+"_API_KEY", "NAME", l.Name, "KEY", before+secret).Replace(context)
			out, found := s.Bytes([]byte(text))
			if !found || strings.Contains(string(out), secret[len(secret)/2:]) {
				t.Errorf("%s: %q became %q", l.ID, text, out)
				continue
			}
			if got := stream(t, s, text, 1); got != string(out) {
				t.Errorf("%s: byte by byte %q, as a whole %q", l.ID, got, out)
			}
			if again, found := s.Bytes(out); found {
				t.Errorf("%s: %q was scrubbed again: %q", l.ID, out, again)
			}
		}
	}
}

// secretOf draws a secret with digits and letters, as those that are given out have.
func secretOf(rng *rand.Rand, l scrub.Leak) string {
	for {
		secret := example(rng, l.Re)
		if !l.Assigned || strings.ContainsAny(secret, "0123456789") && strings.ContainsAny(strings.ToLower(secret), "abcdefghijklmnopqrstuvwxyz") {
			return secret
		}
	}
}

// TestExpressionsOfStreams: what an expression finds in a whole text is what package regexp finds there, and what it finds before
// the text is whole it finds then.
func TestExpressionsOfStreams(t *testing.T) {
	var exprs []string
	for _, l := range scrub.Leaks() {
		exprs = append(exprs, l.Re)
	}
	rapid.Check(t, func(t *rapid.T) {
		expr := rapid.SampledFrom(exprs).Draw(t, "expr")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		text := example(rng, expr)
		text = text[:rapid.IntRange(0, len(text)).Draw(t, "cut")] + rapid.StringMatching(`[a-zA-Z0-9=._"-]{0,12}`).Draw(t, "tail")
		want := regexp.MustCompile(`\A(?:` + expr + `)`).FindStringIndex(text)
		end, found, undecided := scrub.MatchExpression(expr, []byte(text), true)
		if undecided || found != (want != nil) || found && end != want[1] {
			t.Fatalf("%s on %q: %v %d, regexp %v", expr, text, found, end, want)
		}
		n := rapid.IntRange(0, len(text)).Draw(t, "so far")
		early, foundEarly, undecided := scrub.MatchExpression(expr, []byte(text[:n]), false)
		if !undecided && (foundEarly != found || early != end) {
			t.Fatalf("%s on %q: after %d bytes %v %d, in the end %v %d", expr, text, n, foundEarly, early, found, end)
		}
	})
}

// TestLeaksAnySplit: however a stream with keys and beginnings of keys is cut, the same comes out.
func TestLeaksAnySplit(t *testing.T) {
	leaks := scrub.Leaks()
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn"}})
	glue := []string{"", "", " ", "=", `"`, `\"`, ": ", `\n`, "\n", ",", "_token", " => ", "Zx9QvT2mKw7Lp4Rn", ".", "h1:", "a"}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var b strings.Builder
		for range rapid.IntRange(1, 5).Draw(t, "parts") {
			l := rapid.SampledFrom(leaks).Draw(t, "leak")
			secret := secretOf(rng, l)
			if l.Assigned {
				b.WriteString(l.Name + rapid.SampledFrom([]string{"", "_key", "Token"}).Draw(t, "word") + rapid.SampledFrom(glue).Draw(t, "glue") + rapid.SampledFrom([]string{"=", ":", "=>", ","}).Draw(t, "sign"))
			}
			b.WriteString(secret[:len(secret)-rapid.IntRange(0, 1).Draw(t, "short")])
			b.WriteString(rapid.SampledFrom(glue).Draw(t, "glue"))
		}
		text := b.String()
		whole, _ := s.Bytes([]byte(text))
		var out strings.Builder
		w := s.Writer(&out)
		for rest := []byte(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			w.Write(rest[:n])
			rest = rest[n:]
		}
		w.Close()
		if out.String() != string(whole) {
			t.Fatalf("%q\n  whole %q\nin parts %q", text, whole, out.String())
		}
	})
}

// TestRulesForeign: of what another producer wrote a replay hides no more than it must, or its requests would not match.
func TestRulesForeign(t *testing.T) {
	text := "glpat-0123456789abcdefABCD and AKIAIOSFODNN7QZX23YV"
	foreign := scrub.New(testKey, &scrub.Options{Rules: scrub.RulesForeign}).String(text)
	if !strings.Contains(foreign, "glpat-") || strings.Contains(foreign, "AKIA") {
		t.Errorf("foreign: %q", foreign)
	}
	if got := scrub.New(testKey, nil).String(text); strings.Contains(got, "glpat-") || strings.Contains(got, "AKIA") {
		t.Errorf("the newest: %q", got)
	}
}

// TestLeaksHeldIsBounded: the name of a service alone holds little back, and gives up soon.
func TestLeaksHeldIsBounded(t *testing.T) {
	t.Parallel()
	s := scrub.New(testKey, nil)
	for _, l := range scrub.Leaks() {
		for _, text := range []string{l.Name + " is a word of prose, and", l.Name + "_key = " + strings.Repeat("a1", 4000)} {
			var out strings.Builder
			w := s.Writer(&out)
			for i := range len(text) {
				w.Write([]byte{text[i]})
				if w.Held() > 5<<10 {
					t.Fatalf("%s: %d bytes are held", l.Name, w.Held())
				}
			}
			w.Close()
		}
	}
}

func FuzzLeaks(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, l := range scrub.Leaks() {
		f.Add([]byte(l.Name+"_key = \""+example(rng, l.Re)+"\"\n"), 7)
		quoted, _ := json.Marshal(l.Name + ": " + example(rng, l.Re))
		f.Add(quoted, 3)
	}
	s := scrub.New(testKey, nil)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		whole, _ := s.Bytes(b)
		if got := stream(t, s, string(b), max(1, n%64)); got != string(whole) {
			t.Fatalf("%q\n  whole %q\nin parts %q", b, whole, got)
		}
	})
}

func TestSaysSecret(t *testing.T) {
	for part, want := range map[string]bool{
		"": false, "_api_key": true, "ApiKey": true, "_ACCESS_TOKEN": true, " auth": true, "OAuth": true, "_authorization": true, "_pat": true,
		"_author": false, "_account_id": false, "AccountId": false, "_key_id": false, "KeyID": false, "_token_type": false, "_path": false,
		"Secret ": true, ".password": true, "-credentials": true, "_user": false, "_secret_name": false,
	} {
		if got := scrub.SaysSecret(part); got != want {
			t.Errorf("%q: %v", part, got)
		}
	}
}

// TestLeaksThatWereAllowed: what gitleaks takes for no secret because of a part of it.
func TestLeaksThatWereAllowed(t *testing.T) {
	s := scrub.New(testKey, nil)
	for _, key := range []string{
		"hvs.CAESIJlmQwErTyUiOpAsDfGhJkLz" + strings.Repeat("x9QvT2mKw7", 7), // 24 letters behind "s."
		"glpat-Zx9false7Lp4Rn2mKw7a",
		"glpat-Zx9QvT2mLp4Rn2mKnull",
	} {
		if got := s.String("k=" + key); strings.Contains(got, key[len(key)-8:]) {
			t.Errorf("%s became %s", key, got)
		}
	}
}
