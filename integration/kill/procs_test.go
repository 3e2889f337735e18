//go:build kill

package kill

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A process is known by its PID and when it started, for PIDs come again.
type process struct {
	pid   int
	start string
}

// statOf returns the fields of /proc/PID/stat behind the name; nil for a process that is gone.
func statOf(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 {
		return nil
	}
	return strings.Fields(string(b[i+1:]))
}

// runs reports whether p is there and not at its end.
func (p process) runs() bool {
	f := statOf(p.pid)
	return alive(f) && f[19] == p.start
}

// alive reports whether a process may still do something: a zombie waits for whoever reaps orphans here, and one that exits may
// wait for the kernel, which writes the layers of its mounts back.
func alive(stat []string) bool {
	if len(stat) < 20 || stat[0] == "Z" || stat[0] == "X" {
		return false
	}
	const exiting = 0x4 // PF_EXITING of linux/sched.h
	flags, _ := strconv.ParseUint(stat[6], 10, 64)
	return flags&exiting == 0
}

// below lists the descendants of pid, itself first.
func below(pid int) []process {
	f := statOf(pid)
	if len(f) < 20 {
		return nil
	}
	out := []process{{pid, f[19]}}
	for _, c := range childrenOf(pid) {
		out = append(out, below(c)...)
	}
	return out
}

func childrenOf(pid int) []int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var out []int
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, w := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(w); err == nil {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// insidePID is the PID that a process has in its innermost namespace; 0 where it is not in a nested one.
func insidePID(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if all := strings.Fields(rest); len(all) > 1 {
				n, _ := strconv.Atoi(all[len(all)-1])
				return n
			}
		}
	}
	return 0
}

// initOf is the PID 1 of the jail of a recorder; 0 for none.
func initOf(recorder int) int {
	for _, c := range childrenOf(recorder) {
		if insidePID(c) == 1 {
			return c
		}
	}
	return 0
}

// programOf is the recorded program: the first child of the init.
func programOf(recorder int) int {
	first, lowest := 0, 0
	for _, c := range childrenOf(initOf(recorder)) {
		if in := insidePID(c); first == 0 || in < lowest {
			first, lowest = c, in
		}
	}
	return first
}

// marked lists the processes with a variable in their environment.
func marked(variable string) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var out []int
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(variable)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			if alive(statOf(pid)) {
				out = append(out, pid)
			}
		}
	}
	return out
}

// nothingRuns describes what of seen, or with mark in its environment, still runs a second from now.
func nothingRuns(seen []process, mark string) (left []string) {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		pids := marked(mark)
		for _, p := range seen {
			if p.runs() {
				pids = append(pids, p.pid)
			}
		}
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			for _, pid := range pids {
				left = append(left, describe(pid))
			}
			return left
		}
	}
}

// describe says what a process is and what it waits for.
func describe(pid int) string {
	text := fmt.Sprint(pid)
	for _, name := range []string{"comm", "cmdline", "wchan", "syscall", "stack"} {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		text += fmt.Sprintf(" %s=%q", name, bytes.TrimSpace(b))
	}
	return text + " " + strings.Join(statOf(pid), " ")
}
