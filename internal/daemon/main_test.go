package daemon_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails when a goroutine of ours is left after all tests: every daemon and every client of theirs was stopped.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); left != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines were left behind:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

func leaked() string {
	var left []string
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		buf := make([]byte, 4<<20)
		left = left[:0]
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "tapedeck/") && !strings.Contains(g, "TestMain") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return ""
		}
	}
	return strings.Join(left, "\n\n")
}
