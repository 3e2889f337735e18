package scrub_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

// TestSeenTellsWhatStandsBehind: the same bytes are one thing where a text begins with them and another in its middle.
func TestSeenTellsWhatStandsBehind(t *testing.T) {
	key := "ghp_" + "Zx9QvT2mKw7Lp4RnZx9QvT2mKw7Lp4RnZx9Q"
	p := strings.Repeat(". ", 2027) + ". " + key
	p = p[len(p)-4096:]
	s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=qqqq9999qqqq"}}) // an index of its own
	s.Bytes([]byte(p + strings.Repeat("x", 400) + strings.Repeat(". ", 4096)))
	for _, before := range []int{8176, 8192, 4096, 4080} {
		text := strings.Repeat("!", before) + p
		if out, _ := s.Bytes([]byte(text)); strings.Contains(string(out), key) {
			t.Errorf("behind %d bytes the key is not found", before)
		}
	}
}

// TestWarmEqualsCold: whatever was seen before, the same is found.
func TestWarmEqualsCold(t *testing.T) {
	leaks := scrub.Leaks()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		s := scrub.New(testKey, &scrub.Options{Env: []string{"API_KEY=Zx9QvT2mKw7Lp4Rn" + rapid.StringMatching(`[a-z]{4}`).Draw(t, "own")}})
		var parts []string
		for range rapid.IntRange(2, 6).Draw(t, "parts") {
			parts = append(parts, partOf(t, rng, leaks))
		}
		for range rapid.IntRange(2, 5).Draw(t, "texts") {
			var b strings.Builder
			b.WriteString(rapid.SampledFrom([]string{"", "", "data: ", "x",
				strings.Repeat("!", 8176), strings.Repeat("! ", 2040)}).Draw(t, "head"))
			for range rapid.IntRange(2, 5).Draw(t, "length") {
				part := rapid.SampledFrom(parts).Draw(t, "part")
				b.WriteString(part[rapid.SampledFrom([]int{0, 0, 0, 1, 2, 16, 17}).Draw(t, "from"):])
			}
			text := []byte(b.String())
			warm, _ := s.Bytes(text)
			scrub.Forget(s)
			want, _ := s.Bytes(text)
			if string(warm) != string(want) {
				t.Fatalf("a text of %d bytes reads differently when parts of it were seen before", len(text))
			}
			s.Bytes(text) // the next text meets a cache again
		}
	})
}

// partOf draws a part of about the length of what is remembered, with a secret or the beginning of one at either end.
func partOf(t *rapid.T, rng *rand.Rand, leaks []scrub.Leak) string {
	secret := func() string {
		l := rapid.SampledFrom(leaks).Draw(t, "leak")
		v := secretOf(rng, l)
		if l.Assigned {
			v = l.Name + `_key": "` + v
		}
		return v[rapid.SampledFrom([]int{0, 0, 1, len(v) / 2}).Draw(t, "cut"):]
	}
	filler := rapid.SampledFrom([]string{". ", "!", "x", `\n`, "a = "}).Draw(t, "filler")
	tail := secret()
	size := rapid.SampledFrom([]int{4096, 4096, 4080, 4112, 8176, 8192}).Draw(t, "size")
	body := strings.Repeat(filler, size/len(filler)+1)
	part := secret()[:rapid.SampledFrom([]int{0, 0, 8}).Draw(t, "head")] + body
	return part[:max(17, size-len(tail))] + tail
}
