package tape_test

import (
	"fmt"
	"os"
	"strings"
)

// peakResident returns the most bytes that this process has held. (What the kernel says of a child that has ended counts
// what its parent held when it forked.)
func peakResident() int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		panic(err)
	}
	return kib << 10
}
