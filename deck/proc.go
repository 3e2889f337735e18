package deck

import (
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
)

// procNames are the files of /proc that tell of the machine, and of what it is busy with: free, nproc, lscpu and uptime print them.
// That which tells how long the machine is up is none: ps tells by it when a process began.
var procNames = []string{"cpuinfo", "loadavg", "meminfo", "stat"}

// maxProcFile is the length in bytes of the longest one that a recording holds: that of a machine of many hundred processors is longer.
const maxProcFile = 1 << 20

// procNow reads them. One that is not to be had is shown as it is.
func procNow() map[string]string {
	out := make(map[string]string)
	for _, name := range procNames {
		f, err := os.Open("/proc/" + name)
		if err != nil {
			continue
		}
		if b, err := io.ReadAll(io.LimitReader(f, maxProcFile+1)); err == nil && len(b) <= maxProcFile {
			out[name] = string(b)
		}
		f.Close()
	}
	return out
}

// umask is the recorder's own; nil where it cannot be told without changing it.
func umask() *int {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if octal, ok := strings.CutPrefix(line, "Umask:"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(octal), 8, 32); err == nil {
				return new(int(n))
			}
		}
	}
	return nil
}

// procFiles are those files of a recording's machine as a jail shows them.
func procFiles(h *recording.Host) (out []jail.File) {
	for _, name := range slices.Sorted(maps.Keys(h.Proc)) {
		if slices.Contains(procNames, name) { // and no other that a recording names
			out = append(out, jail.File{Path: "/run/tapedeck/proc/" + name, Data: []byte(h.Proc[name]), Over: []string{"/proc/" + name}})
		}
	}
	return out
}
