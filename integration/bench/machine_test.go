package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// A machine is where and from what a report was made.
type machine struct {
	OS     string
	Arch   string
	CPU    string
	CPUs   int
	Load   float64 // processes that wanted a processor in the minute before; 0 where the system does not tell
	Go     string
	Commit string
	Date   string // of the commit, unless the flag says another
}

func machineOf(ctx context.Context, root string) *machine {
	m := &machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: processor(ctx), CPUs: runtime.NumCPU(), Go: runtime.Version()}
	m.Commit = git(ctx, root, "log", "-1", "--format=%h")
	m.Date = git(ctx, root, "log", "-1", "--format=%cs")
	if git(ctx, root, "status", "--porcelain", "--", "*.go", "go.mod") != "" {
		m.Commit += ", with changes that are not committed"
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(b), " ")
		m.Load, _ = strconv.ParseFloat(first, 64) // 0: the line tells nothing
	}
	return m
}

// at says of what a figure is.
func (m *machine) at() string {
	return strings.Join(strings.Fields(m.Commit+", "+m.Date+" "+m.CPU), " ")
}

func (m *machine) line() string {
	line := fmt.Sprintf("%s/%s, %d processors", m.OS, m.Arch, m.CPUs)
	if m.CPU != "" {
		line += " (" + m.CPU + ")"
	}
	if m.Load > 0 {
		line += fmt.Sprintf(", load %.1f when the run began", m.Load)
	}
	return line
}

// git returns what a Git command says; "" where there is no Git or no checkout.
func git(ctx context.Context, root string, args ...string) string {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// processor is the processor's name, "" where the system does not tell.
func processor(ctx context.Context) string {
	if runtime.GOOS == "darwin" {
		out, err := exec.CommandContext(ctx, "sysctl", "-n", "machdep.cpu.brand_string").Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
