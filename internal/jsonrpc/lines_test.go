package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// readOnly is a connection that only reads.
type readOnly struct{ io.Reader }

func (readOnly) Write(p []byte) (int, error) { return len(p), nil }
func (readOnly) Close() error                { return nil }

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	longest := strings.Repeat("y", 300_000)
	tests := []struct {
		name, in string
		want     []string
		err      error
	}{
		{"two", "{}\n[]\n", []string{"{}", "[]"}, io.EOF},
		{"empty ones between", "\n\r\n{}\n \t\n[]\n\n", []string{"{}", "[]"}, io.EOF},
		{"carriage return", "{}\r\n", []string{"{}\r"}, io.EOF},
		{"nothing", "", nil, io.EOF},
		{"torn", "{}\n{", []string{"{}"}, io.ErrUnexpectedEOF},
		{"long between short ones", "1\n" + long + "\n2\n" + long + "\n3\n", []string{"1", long, "2", long, "3"}, io.EOF},
		{"as long as may be", longest + "\n1\n", []string{longest, "1"}, io.EOF},
		{"too long", "1\n" + longest + "z\n", []string{"1"}, ErrTooLong},
		{"too long and no end", longest + longest, nil, ErrTooLong},
	}
	for _, tt := range tests {
		readers := map[string]io.Reader{
			"at once":      strings.NewReader(tt.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			"halves":       iotest.HalfReader(strings.NewReader(tt.in)),
		}
		for how, r := range readers {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				b := NewBudget(1 << 20)
				s := NewLines(readOnly{r}, len(longest), b)
				var kept [][]byte
				var total int64
				for {
					line, held, err := s.Read()
					if err != nil {
						if !errors.Is(err, tt.err) {
							t.Errorf("got %v, want %v", err, tt.err)
						}
						break
					}
					if held != 0 && held != int64(len(line)) || len(line) >= DefaultAllowance != (held > 0) {
						t.Errorf("a line of %d bytes holds %d", len(line), held)
					}
					total += held
					kept = append(kept, line)
				}
				for i, line := range kept { // each has memory of its own
					if i >= len(tt.want) || string(line) != tt.want[i] {
						t.Errorf("line %d is %.50q…", i, line)
					}
				}
				if len(kept) != len(tt.want) {
					t.Errorf("%d lines, want %d", len(kept), len(tt.want))
				}
				if used, _ := b.Used(); used != total {
					t.Errorf("%d in the budget, the lines hold %d", used, total)
				}
			})
		}
	}
}

// TestALongLineThatStalls is given up, and gives its memory back.
func TestALongLineThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, other := net.Pipe()
		b := NewBudget(1 << 20)
		s := NewLines(near, 1<<20, b)
		began := time.Now()
		go func() { _, _ = other.Write(bytes.Repeat([]byte("x"), 200_000)) }()
		if _, _, err := s.Read(); err == nil {
			t.Error("no error")
		}
		if took := time.Since(began); took != LongFrame {
			t.Errorf("it took %v", took)
		}
		if used, _ := b.Used(); used != 0 {
			t.Errorf("%d bytes were not given back", used)
		}
	})
}

// TestALongLineWaitsForMemory and is refused when there is none for too long.
func TestALongLineWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1 << 20)
		b.TryTake(1)
		s := NewLines(readOnly{strings.NewReader(strings.Repeat("x", 200_000) + "\n")}, 1<<20, b)
		go func() {
			time.Sleep(LongFrame / 2)
			b.Give(1)
		}()
		if line, held, err := s.Read(); len(line) != 200_000 || held != 200_000 || err != nil {
			t.Errorf("%d bytes, %d held, %v", len(line), held, err)
		}
		s = NewLines(readOnly{strings.NewReader(strings.Repeat("x", 200_000) + "\n")}, 1<<20, b)
		var closed *CloseError
		if _, _, err := s.Read(); !errors.As(err, &closed) || closed.Code != CloseTryAgain {
			t.Errorf("got %v", err)
		}
	})
}

func TestFramesThatFollowAreWrittenAtOnce(t *testing.T) {
	var writes [][]byte
	s := NewLines(struct {
		io.Reader
		io.Writer
		io.Closer
	}{nil, writer(func(p []byte) (int, error) { writes = append(writes, bytes.Clone(p)); return len(p), nil }), nil}, 0, nil)
	for i, f := range []string{"1", "2", "3"} {
		if err := s.Write([]byte(f), i < 2); err != nil {
			t.Fatal(err)
		}
	}
	if len(writes) != 1 || string(writes[0]) != "1\n2\n3\n" {
		t.Errorf("%q", writes)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\n\n[1]\n"), uint8(3))
	f.Add([]byte("{}"), uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, limit uint8) {
		s := NewLines(readOnly{iotest.HalfReader(bytes.NewReader(in))}, int(limit)+1, NewBudget(1000))
		want := bytes.Split(in, []byte("\n"))
		want = want[:len(want)-1]
		for {
			line, _, err := s.Read()
			if err != nil {
				return
			}
			for len(bytes.TrimSpace(want[0])) == 0 {
				want = want[1:]
			}
			if !bytes.Equal(line, want[0]) || len(line) > int(limit)+1 {
				t.Fatalf("got %q, want %q", line, want[0])
			}
			want = want[1:]
		}
	})
}
