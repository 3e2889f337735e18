package deck_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/sealing"
	"github.com/tapedeck-dev/tapedeck/deck/verify"
)

func init() { programs["sealer"] = playSealer }

// playSealer seals the recording args[0] with the key in args[1], and says when it begins and how long it took.
func playSealer(args []string) int {
	rec, err := recording.Open(args[0])
	if err != nil {
		return fail(err)
	}
	fmt.Println("begins")
	begun := time.Now()
	if _, err := sealing.Seal(context.Background(), rec, &sealing.Options{ConfigDir: args[1]}); err != nil {
		return fail(err)
	}
	fmt.Println("took", time.Since(begun))
	return 0
}

// TestKilledWhileSealing kills sealers at random moments: what they leave is unsealed and says so, or sealed, and holds; and the next
// one seals it.
func TestKilledWhileSealing(t *testing.T) {
	t.Parallel()
	b := newBenchAnywhere(t)
	b.manyFiles(400)
	if res, _ := b.recordOutside("errand"); res.NotSealed != nil { // makes the key
		t.Fatal(res.NotSealed)
	}
	b.unsealed = true
	res, _ := b.recordOutside("errand")
	dir := res.Recording.Dir
	check := func() *verify.Verification {
		t.Helper()
		v, err := verify.Verify(context.Background(), dir, &verify.Options{ConfigDir: b.config})
		if err != nil || len(v.Problems) > 0 {
			t.Fatalf("%+v, %v", v, err)
		}
		return v
	}
	whole := b.seals(dir, -1)
	if state := check().State; state != verify.StateSealed {
		t.Fatal(state)
	}
	rounds := 2
	if long {
		rounds = 24
	}
	states := make(map[string]int)
	for range rounds {
		interruptedSeal(t, dir, 0)
		b.seals(dir, rand.N(whole*5/4))
		states[check().State]++
		b.seals(dir, -1)
		if state := check().State; state != verify.StateSealed {
			t.Fatalf("sealed after a kill, it is %s", state)
		}
	}
	t.Logf("sealing takes %v; killed in it: %v", whole, states)
	if long && states[verify.StateUnsealed] == 0 {
		t.Error("no sealer was killed before its end: the test has tried nothing")
	}
}

// seals has another process seal a recording and kills it so much later; negative is never. It returns how long the sealing took.
func (b *bench) seals(dir string, after time.Duration) (took time.Duration) {
	b.t.Helper()
	argv, env := b.self("sealer", dir, b.config)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Stderr = env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "begins" && after >= 0 {
			time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
		if d, ok := strings.CutPrefix(lines.Text(), "took "); ok {
			took, err = time.ParseDuration(d)
		}
	}
	cmd.Wait() // it was killed, mostly
	if err != nil {
		b.t.Fatal(err)
	}
	return took
}
