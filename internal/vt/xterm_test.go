//go:build screen

package vt_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/cputime"
	"github.com/tapedeck-dev/tapedeck/internal/vt"
)

// xterm runs integration/screen/xterm.cjs and decodes what it prints. integration/screen/run.sh names the folder with its npm packages.
func xterm(t *testing.T, v any, args ...string) {
	t.Helper()
	node := os.Getenv("TAPEDECK_SCREEN_NODE")
	if node == "" {
		t.Fatal("TAPEDECK_SCREEN_NODE is not set: bash integration/screen/run.sh sets it")
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"../../integration/screen/xterm.cjs", node}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("@xterm/headless: %v", err)
	}
	if err := json.Unmarshal(out, v); err != nil {
		t.Fatal(err)
	}
}

// TestXtermCases: this model passes at least as many of the shared cases as @xterm/headless.
func TestXtermCases(t *testing.T) {
	cases, err := conformCases()
	here(t, err)
	var theirs []string // what went wrong, "" where nothing did
	xterm(t, &theirs, "cases", unpacked(t, filepath.Join(samples, "cases.json.gz")))
	if len(theirs) != len(cases) {
		t.Fatalf("@xterm/headless ran %d of %d cases", len(theirs), len(cases))
	}
	passed := map[bool]int{}
	for i := range cases {
		c := &cases[i]
		err := c.run()
		if err == nil {
			passed[true]++
		}
		if theirs[i] == "" {
			passed[false]++
		}
		if err != nil || theirs[i] != "" {
			t.Logf("%s %q\n    ours: %v\n    theirs: %s", c.Suite, c.Name, err, theirs[i])
		}
	}
	t.Logf("ours passes %d of %d cases, @xterm/headless %d", passed[true], len(cases), passed[false])
	if passed[true] < passed[false] {
		t.Error("ours passes fewer")
	}
}

// unpacked is a gzipped file without that.
func unpacked(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "plain")
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	zr, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestXtermSpeed measures both on every kind of output, in processor time with that of their collectors: what else runs on the
// machine must not decide. A pace below the promised one is told and is no failure: a machine may be slower than the one that it
// was promised for.
func TestXtermSpeed(t *testing.T) {
	const (
		size  = 16 << 20 // bytes of each kind
		least = 30       // MB/s
	)
	runs := 1
	if os.Getenv("TAPEDECK_LONG") != "" {
		runs = 5
	}
	dir := t.TempDir()
	var files []string
	for _, k := range workloads {
		files = append(files, filepath.Join(dir, k.name))
		if err := os.WriteFile(files[len(files)-1], k.output(size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	theirs := map[string][]float64{}
	xterm(t, &theirs, append([]string{"speed", strconv.Itoa(runs)}, files...)...)
	for i, k := range workloads {
		var ours []float64
		for range runs {
			ours = append(ours, pace(k.output(size)))
		}
		we, they := median(ours), median(theirs[files[i]])
		t.Logf("%s: %.0f MB/s, @xterm/headless %.0f, %.1fx", k.name, we, they, we/they)
		if we < least {
			t.Logf("%s: below %d MB/s", k.name, least)
		}
		if we < they {
			t.Errorf("%s: slower than @xterm/headless", k.name)
		}
	}
}

// pace is how many MB of data a second of processor time shows, with 1000 lines of scrollback.
func pace(data []byte) float64 {
	s := vt.New(nil)
	from := cputime.Spent()
	for p := range slices.Chunk(data, 64<<10) {
		s.Write(p)
	}
	return float64(len(data)) / (cputime.Spent() - from).Seconds() / 1e6
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
