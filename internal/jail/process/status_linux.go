package process

import (
	"bytes"
	"strconv"

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
