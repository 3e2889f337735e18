package deck_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/deck"
)

func init() { programs["chance"] = playChance }

// playChance sends its PID, a random number, what stands in a file outside the work tree, where it is and what lies there, in two requests,
// prints them, and empties a long file that it found. Once it is told to, it says so and ends otherwise, in the first run alone.
func playChance(args []string) int {
	said, err := os.ReadFile(args[1])
	if err != nil {
		return fail(err)
	}
	drawn := rand.Uint64()
	if string(said) == "once" {
		os.WriteFile(args[1], []byte("keep 10 rows"), 0o600)
		return 9
	}
	names, err := filepath.Glob("*")
	if err != nil {
		return fail(err)
	}
	hidden, err := os.Stat(".tapedeck")
	if err != nil {
		return fail(err)
	}
	at, err := os.Getwd()
	if err != nil {
		return fail(err)
	}
	here, err := os.Stat(at)
	if err != nil {
		return fail(err)
	}
	for i := range 2 {
		if code := playPost([]string{args[0], fmt.Sprintf(`{"n":%d,"by":%d,"drawn":%d,"said":%q,"names":%q,"at":%q,"since":%q}`, i, os.Getpid(), drawn, said, append(names, hidden.Mode().String()), at, here.ModTime())}); code != 0 {
			return code
		}
	}
	if err := os.WriteFile("long", nil, 0o600); err != nil {
		return fail(err)
	}
	fmt.Println(os.Getpid(), drawn, string(said))
	return 0
}

// TestChanceOutsideTheJail: what is another value in each run does not gate outside the jail, and is told; what is changed does, beside it.
func TestChanceOutsideTheJail(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.upstream("api.example.com", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "{}") })
	settings := filepath.Join(t.TempDir(), "settings")
	say := func(text string) {
		t.Helper()
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("keep 10 rows")
	if err := os.WriteFile(filepath.Join(b.dir, "long"), bytes.Repeat([]byte("found\n"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	res, _ := b.recordOutside("chance", "https://api.example.com/rows", settings)
	v, out := b.replay(res.Recording, &deck.ReplayOptions{Proxy: true})
	b.green(v)
	if notes := strings.Join(v.Notes, "\n"); v.Varying() < 3 || !strings.Contains(notes, "to tell chance from change") || v.Exit.Code != 0 {
		t.Errorf("exit %d, %d places vary: %+v\n%s", v.Exit.Code, v.Varying(), v.MaskedPairs, notes)
	}
	if n := strings.Count(out, "rows"); n != 1 {
		t.Errorf("the runs that tell chance from change are seen: %q", out)
	}
	say("keep 11 rows")
	v, _ = b.replay(res.Recording, &deck.ReplayOptions{Proxy: true})
	if v.Faithful() || !strings.Contains(verdictText(t, v), "keep 11 rows") {
		t.Errorf("a change beside chance: %s", verdictText(t, v))
	}
	say("once")
	v, _ = b.replay(res.Recording, &deck.ReplayOptions{Proxy: true})
	if v.Faithful() || v.Exit.Code != 9 {
		t.Errorf("what the first run alone did is of the verdict: %s", verdictText(t, v))
	}
}
