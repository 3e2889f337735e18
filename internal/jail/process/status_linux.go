package process

import (
	"bytes"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Status is what /proc says of a thread.
type Status struct {
	Process, Parent int // of it, as the recorder's PID namespace knows them
	Inside, Number  int // of its process and of itself, inside
	Descriptors     int // that its process has room for
}

// StatusOf reads that of a thread, by its number in proc. The error is ESRCH or ENOENT where there is none.
func StatusOf(proc, task int) (s Status, err error) {
	var text [2048]byte
	n, err := readFile(proc, strconv.Itoa(task)+"/status", text[:])
	if err != nil {
		return s, err
	}
	fields := map[string]*int{"Tgid": &s.Process, "PPid": &s.Parent, "FDSize": &s.Descriptors, "NStgid": &s.Inside, "NSpid": &s.Number}
	for line := range bytes.Lines(text[:n]) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		words := bytes.Fields(value)
		if to := fields[string(name)]; to != nil && len(words) > 0 {
			*to, _ = strconv.Atoi(string(words[len(words)-1])) // of a list the last: the innermost namespace's
			if delete(fields, string(name)); len(fields) == 0 {
				return s, nil
			}
		}
	}
	return s, unix.ESRCH
}

// readFile reads the beginning of a file of proc.
func readFile(proc int, name string, b []byte) (int, error) {
	fd, err := unix.Openat(proc, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b)
	return max(n, 0), err
}

// StackOf is the stack pointer of a thread that stands in a system call. It is for one goroutine at a time, with or without the lock.
func (t *Table) StackOf(task int) (sp uint64, ok bool) {
	words := t.calls.of(t.View.Proc, task)
	if words == nil {
		return 0, false
	}
	sp, err := strconv.ParseUint(string(bytes.TrimPrefix(words[len(words)-2], []byte("0x"))), 16, 64)
	return sp, err == nil
}

// callWords is how many words the kernel has for a call: its number, six arguments, the stack pointer and the program counter.
const callWords = 9

// of is what the kernel says of the call that a thread stands in; nil where it says nothing. A thread that was just notified of may not
// have left its processor yet, and is "running" for a moment.
func (c callFiles) of(proc, task int) [][]byte {
	const tries = 1000
	for i := range tries {
		text := make([]byte, 256)
		k, err := c.read(proc, task, text)
		words := bytes.Fields(text[:max(k, 0)])
		switch {
		case err != nil || k <= 0:
			return nil
		case len(words) == callWords:
			return words
		case i > 10:
			time.Sleep(10 * time.Microsecond)
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// callFiles are the files that are kept open of threads, by their numbers.
type callFiles map[int]int

// maxCalls bounds them.
const maxCalls = 256

// read reads /proc/TASK/syscall, which stays open: most threads ask again. Of one that is gone it says nothing any more.
func (c callFiles) read(proc, task int, b []byte) (int, error) {
	if fd, ok := c[task]; ok {
		if n, err := unix.Pread(fd, b, 0); err == nil {
			return n, nil
		}
		unix.Close(fd)
		delete(c, task)
	}
	fd, err := unix.Openat(proc, strconv.Itoa(task)+"/syscall", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if len(c) >= maxCalls {
		c.close()
	}
	c[task] = fd
	n, err := unix.Pread(fd, b, 0)
	return max(n, 0), err
}

func (c callFiles) close() {
	for _, fd := range c {
		unix.Close(fd)
	}
	clear(c)
}
