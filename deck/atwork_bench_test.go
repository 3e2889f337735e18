package deck

import (
	"bufio"
	"fmt"
	"os/exec"
	"runtime"
	"testing"
)

// BenchmarkRest finds a process of so many threads at rest, as before each answer that it gets: beside one look at the states of its threads.
func BenchmarkRest(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("needs /proc")
	}
	for _, threads := range []int{1, 12, 100} {
		cmd := exec.Command("python3", "-c", fmt.Sprintf("import threading\nl = threading.Lock(); l.acquire()\nfor _ in range(%d): threading.Thread(target=l.acquire).start()\nprint(flush=True)\nl.acquire()", threads-1))
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Skip(err)
		}
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint("threads=", threads, "/rest"), func(b *testing.B) {
			for vain := 0; b.Loop(); {
				rest(cmd.Process.Pid, restMost, restWork, &vain, busy, forever)
			}
		})
		b.Run(fmt.Sprint("threads=", threads, "/states"), func(b *testing.B) {
			for b.Loop() {
				for of := range threadsOf(cmd.Process.Pid) {
					stateOf(of)
				}
			}
		})
		_, _ = cmd.Process.Kill(), cmd.Wait()
	}
}
