package foreign

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A timingLine is one line of script's timing file.
//
//	0.294450 8                          old: delay, bytes of output
//	O 0.294450 8                        advanced: so many bytes of the output log
//	I 0.294450 8                        of the input log
//	S 0.294450 SIGWINCH ROWS=20 COLS=50 a signal
//	H 0.000000 EXIT_CODE 0              a fact
type timingLine struct {
	stream byte // O, I, S or H; O for the old form
	delay  time.Duration
	n      int64  // bytes, for O and I
	name   string // of a signal or a fact
	rest   string
}

// parseTiming reads a line. The error has no line number.
func parseTiming(b []byte) (timingLine, error) {
	var l timingLine
	l.stream = 'O'
	rest := string(b)
	if len(b) > 2 && b[1] == ' ' && bytes.IndexByte([]byte("OISH"), b[0]) >= 0 {
		l.stream, rest = b[0], rest[2:]
	}
	delay, rest, ok := strings.Cut(rest, " ")
	secs, err := strconv.ParseFloat(delay, 64)
	if err != nil || !ok {
		return l, fmt.Errorf("want a delay and a number of bytes, or O, I, S or H before them, not %s", excerpt(b))
	}
	if l.delay, err = duration(secs); err != nil {
		return l, err
	}
	if l.stream == 'S' || l.stream == 'H' {
		l.name, l.rest, _ = strings.Cut(rest, " ")
		return l, nil
	}
	if l.n, err = strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err != nil || l.n < 0 {
		return l, fmt.Errorf("the number of bytes %s: want a whole number", excerpt([]byte(rest)))
	}
	return l, nil
}

// isTiming reports whether a file that begins with b is a timing file.
func isTiming(b []byte) bool {
	line, _, whole := bytes.Cut(b, []byte("\n"))
	l, err := parseTiming(line)
	if err != nil || !whole {
		return false
	}
	return l.stream != 'S' && l.delay >= 0
}

// winch is the size that a SIGWINCH line tells: "ROWS=20 COLS=50".
func winch(s string) (rows, cols int, err error) {
	for _, f := range strings.Fields(s) {
		key, v, _ := strings.Cut(f, "=")
		n, errN := strconv.Atoi(v)
		if errN != nil {
			return 0, 0, fmt.Errorf("the size %s: want ROWS=n COLS=n", excerpt([]byte(s)))
		}
		switch key {
		case "ROWS":
			rows = n
		case "COLS":
			cols = n
		}
	}
	return rows, cols, checkSize(rows, cols)
}

// scriptTime reads the times of script: 2026-11-22 09:24:23+00:00.
func scriptTime(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05-07:00", s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
