package wasi_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/testbench"
)

// clockSub is a subscription to a clock, 0 the wall's, 1 the monotonic one.
func clockSub(user uint64, clock uint32, d uint64, flags uint16) part {
	b := make(part, 48)
	binary.LittleEndian.PutUint64(b, user)
	binary.LittleEndian.PutUint32(b[16:], clock)
	binary.LittleEndian.PutUint64(b[24:], d)
	binary.LittleEndian.PutUint16(b[40:], flags)
	return b
}

func fileSub(user uint64, tag byte, fd uint32) part {
	b := make(part, 48)
	binary.LittleEndian.PutUint64(b, user)
	b[8] = tag
	binary.LittleEndian.PutUint32(b[16:], fd)
	return b
}

// pollProgram polls for subs, which lie at 1024, and prints the count of events and the events, which lie at 32 and 48, by fd_write.
func pollProgram(subs ...part) part {
	poll, write := function("wasi_snapshot_preview1", "poll_oneoff", 3), function("wasi_snapshot_preview1", "fd_write", 3)
	n := byte(len(subs))
	code := part{
		opI32Const, 0x80, 8, opI32Const, 48, opI32Const, n, opI32Const, 32, opCall, 0, opI32Const, 0, opI32Ne, 0x04, noResult, opUnreachable, opEnd,
		opI32Const, 1, opI32Const, 0, opI32Const, 1, opI32Const, 8, opCall, 1, opDrop, // the vector at 0, the count of bytes to 8
	}
	data := section(11, vec(
		join(part{0, opI32Const, 0, opEnd}, u32(8), part{32, 0, 0, 0}, binary.LittleEndian.AppendUint32(nil, 16+32*uint32(n))),
		join(part{0, opI32Const, 0x80, 8, opEnd}, u32(uint64(48*len(subs))), join(subs...)),
	))
	return join(importing([]part{poll, write}, code...), data)
}

func TestPoll(t *testing.T) {
	start := uint64(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	for _, tt := range []struct {
		name   string
		subs   []part
		users  string // of the events, in their order
		sleeps string // the record, "" for none
	}{
		{"a millisecond and a bit is two", []part{clockSub('a', 1, 1_000_001, 0)}, "a", `"duration_ms":2`},
		{"the earliest alone", []part{clockSub('a', 1, 9e6, 0), clockSub('b', 0, 5e6, 0), clockSub('c', 1, 5e6, 0)}, "bc", `"duration_ms":5`},
		{"a file is ready", []part{clockSub('a', 1, 9e6, 0), fileSub('b', 1, 0), fileSub('c', 2, 1)}, "bc", ""},
		{"no time is now", []part{clockSub('a', 1, 0, 0)}, "a", ""},
		{"until a time of the wall clock", []part{clockSub('a', 0, start+7e6, 1)}, "a", `"duration_ms":7`},
		{"until a time of the monotonic clock", []part{clockSub('a', 1, 8e6, 1)}, "a", `"duration_ms":7`}, // which is one ahead
		{"until a time that was", []part{clockSub('a', 0, 1, 1)}, "a", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := runBytes(t, nil, nil, pollProgram(tt.subs...)).ended(t)
			out := []byte(r.stdout)
			var users []byte
			for i := range binary.LittleEndian.Uint32(out) {
				users = append(users, out[16+32*i])
			}
			if string(users) != tt.users {
				t.Errorf("got the events %q, want %q", users, tt.users)
			}
			if got := strings.Contains(string(r.tape), "clock_sleep"); got != (tt.sleeps != "") || !strings.Contains(string(r.tape), tt.sleeps) {
				t.Errorf("want %s on the tape:\n%s", tt.sleeps, r.tape)
			}
		})
	}
	for name, sub := range map[string]part{"a clock of the processor": clockSub('a', 2, 1, 0), "flags": clockSub('a', 1, 1, 2), "a tag": fileSub('a', 3, 0)} {
		if r := runBytes(t, nil, nil, pollProgram(sub)); r.err == nil || !strings.Contains(r.err.Error(), "unreachable") {
			t.Errorf("%s: got %v, want an error of poll_oneoff", name, r.err)
		}
	}
	if r := runBytes(t, nil, nil, pollProgram(clockSub('a', 1, 1<<64-1, 0))); r.err != nil && !strings.Contains(r.err.Error(), "292 years") {
		t.Errorf("for ever: got %v", r.err)
	}
	runBytes(t, &testbench.Config{Clock: testbench.Clock{Real: true}}, nil, pollProgram(clockSub('a', 1, 2e6, 0))).ended(t)
}
