package script_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/tapedeck-dev/tapedeck/testbench"
	"github.com/tapedeck-dev/tapedeck/testbench/script"
)

const peakVar = "TAPEDECK_TEST_PEAK"

// TestMain has the test binary run a script in a process of its own, and print how much memory that had at most, in KiB.
func TestMain(m *testing.M) {
	path := os.Getenv(peakVar)
	if path == "" {
		os.Exit(m.Run())
	}
	b, err := testbench.Open(&testbench.Config{})
	if err == nil {
		_, err = script.Run(context.Background(), b, path, &script.Options{Memory: peakLimit})
	}
	status, _ := os.ReadFile("/proc/self/status")
	peak := regexp.MustCompile(`VmHWM:\s+(\d+)`).FindSubmatch(status)
	fmt.Printf("%s %v\n", peak[1], err)
	os.Exit(0)
}

const peakLimit = 160 << 20

// TestPeakOfTheProcess runs hostile scripts: the memory of the whole process stays below their limit and what it takes by itself.
func TestPeakOfTheProcess(t *testing.T) {
	if raced {
		t.Skip("the race detector's memory is not the script's: runs without it")
	}
	const own = 48 << 20 // of the process without a script
	for name, lines := range map[string]string{
		"a list doubled":       "s = [1]\nfor i in range(40): s += s",
		"a list by one":        "l = [0] * 6000000\nfor i in range(10): l.append(i)\nreturn len(l)",
		"a comprehension":      "return len([[i] for i in range(100000000)])",
		"a dict":               "return len({i: i for i in range(100000000)})",
		"JSON of many dicts":   "s = '[' + ','.join(['{}'] * 2000000) + ']'\nreturn len(json.decode(s))",
		"escapes as JSON":      "return len(json.encode(['\\x00' * 30000000]))",
		"escapes as text":      "return len(repr('\\x00' * 30000000))",
		"an assertion of text": "assert_eq(['\\n' * 40000000], ['\\n' * 40000000 + 'x'])",
		"joined":               "l = []\nfor i in range(1000): l.append(','.join(['x' * 1000000] * 30))",
	} {
		if os.Getenv("TAPEDECK_LONG") == "" && !slices.Contains([]string{"a dict", "escapes as JSON", "joined"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), peakVar+"="+write(t, body(lines)))
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			kib, why, _ := bytes.Cut(out, []byte(" "))
			peak, err := strconv.ParseInt(string(kib), 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			t.Logf("%d MiB: %.120s", peak>>10, why)
			if peak<<10 > peakLimit+own {
				t.Errorf("the process had %d MiB, its script may have %d", peak>>10, peakLimit>>20)
			}
		})
	}
}
