package seglog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/internal/store/faultfs"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// threeSegments is a disk with a log of three segments and what it holds. Closed, or left as a killed process leaves it.
func threeSegments(t *testing.T, closed bool) (*faultfs.Memory, []string) {
	t.Helper()
	disk := faultfs.NewMemory()
	l := open(t, "/log", &seglog.Options{FS: disk, SegmentSize: 600})
	var records []string
	for i := 0; len(files(t, disk)) < 4; i++ { // the mark too
		record := fmt.Sprintf("%d %s", i, strings.Repeat("record ", i%5))
		appendAll(t, l, record)
		records = append(records, record)
	}
	for i := range 3 {
		record := fmt.Sprintf("the last segment has more than one: %d", i)
		appendAll(t, l, record)
		records = append(records, record)
	}
	if closed {
		shut(t, l)
	}
	return disk.Kill(), records
}

func files(t testing.TB, disk *faultfs.Memory) []string {
	t.Helper()
	entries, err := disk.ReadDir("/log")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func change(t testing.TB, disk *faultfs.Memory, name string, do func(b []byte) []byte) {
	t.Helper()
	path := filepath.Join("/log", name)
	f, err := disk.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	b = do(b)
	if _, err := f.WriteAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(int64(len(b))); err != nil {
		t.Fatal(err)
	}
}

func size(t testing.TB, disk *faultfs.Memory, name string) int64 {
	t.Helper()
	info, err := disk.Stat(filepath.Join("/log", name))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// holds opens and reads a log that was changed from outside: it must hold exactly the records, or say what is wrong.
func holds(t testing.TB, disk *faultfs.Memory, what string, records []string) *seglog.DamageError {
	t.Helper()
	l, err := seglog.Open("/log", &seglog.Options{FS: disk, SegmentSize: 600})
	n := 0
	if err == nil {
		defer l.Close(context.Background())
		for r, failed := range l.Records(0) {
			if err = failed; err != nil {
				break
			}
			if n >= len(records) || string(r.Data) != records[n] {
				t.Fatalf("%s: record %d is %.80q", what, n+1, r.Data)
			}
			n++
		}
	}
	if err == nil {
		if n != len(records) {
			t.Fatalf("%s: %d records, %d were acknowledged, and no error", what, n, len(records))
		}
		return nil
	}
	var damage *seglog.DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("%s: the error names no place: %v", what, err)
	}
	if damage.Offset < 0 || !strings.HasPrefix(damage.File, "/log") || damage.Reason == "" {
		t.Fatalf("%s: %+v", what, damage)
	}
	return damage
}

// TestEveryByteFlipped flips bits of every byte of every file.
func TestEveryByteFlipped(t *testing.T) {
	step := int64(pick(5, 1))
	for _, closed := range []bool{true, false} {
		disk, records := threeSegments(t, closed)
		for _, name := range files(t, disk) {
			found := 0
			n := int64(0)
			change(t, disk, name, func(b []byte) []byte { n = int64(len(strings.TrimRight(string(b), "\x00"))); return b })
			for at := int64(0); at < n; at += step {
				for _, flip := range []byte{0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xff}[:pick(1, 9)] {
					flip = flip<<(at%8) | flip>>(8-at%8) // another bit at each place
					after := disk.Kill()
					change(t, after, name, func(b []byte) []byte { b[at] ^= flip; return b })
					what := fmt.Sprintf("%s byte %d flipped by %02x (closed %v)", name, at, flip, closed)
					damage := holds(t, after, what, records)
					if damage == nil {
						continue
					}
					found++
					if filepath.Base(damage.File) != name || damage.Offset > at {
						t.Fatalf("%s: found in %s at %d", what, damage.File, damage.Offset)
					}
				}
			}
			if name == "mark" {
				if found != 0 {
					t.Errorf("a wrong mark was taken for damage of records, %d times", found)
				}
			} else if want := int((n+step-1)/step) * pick(1, 9); found != want {
				t.Errorf("%s: %d of %d flips found", name, found, want)
			}
		}
	}
}

// TestEveryByteFlippedWithoutMark is what an old mark leaves to go by: a flipped block is still no torn one.
func TestEveryByteFlippedWithoutMark(t *testing.T) {
	disk, records := threeSegments(t, false)
	if err := disk.Remove("/log/mark"); err != nil {
		t.Fatal(err)
	}
	last := files(t, disk)[2]
	n := 0
	change(t, disk, last, func(b []byte) []byte { n = len(strings.TrimRight(string(b), "\x00")); return b })
	for at := range n {
		after := disk.Kill()
		change(t, after, last, func(b []byte) []byte { b[at] ^= 0x10; return b })
		if holds(t, after, fmt.Sprintf("byte %d flipped, no mark", at), records) == nil {
			t.Errorf("byte %d flipped, and nobody saw", at)
		}
	}
}

// TestEveryByteCut cuts every file at every length.
func TestEveryByteCut(t *testing.T) {
	for _, closed := range []bool{true, false} {
		disk, records := threeSegments(t, closed)
		for _, name := range files(t, disk) {
			n := size(t, disk, name)
			for at := range n {
				after := disk.Kill()
				change(t, after, name, func(b []byte) []byte { return b[:at] })
				what := fmt.Sprintf("%s cut at byte %d (closed %v)", name, at, closed)
				if damage := holds(t, after, what, records); damage == nil || name != files(t, disk)[0] {
					continue
				}
				if l, err := seglog.Open("/log", &seglog.Options{FS: after}); err == nil { // no reading is needed to see that
					l.Close(t.Context())
					t.Errorf("%s: opened", what)
				}
			}
		}
	}
}

// TestASegmentIsMissing removes each segment, and every pair of them.
func TestASegmentIsMissing(t *testing.T) {
	disk, records := threeSegments(t, true)
	names := slices.DeleteFunc(files(t, disk), func(name string) bool { return name == "mark" })
	for mask := 1; mask < 1<<len(names); mask++ {
		after := disk.Kill()
		for i, name := range names {
			if mask>>i&1 == 1 {
				if err := after.Remove(filepath.Join("/log", name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if holds(t, after, fmt.Sprintf("segments %b missing", mask), records) == nil {
			t.Errorf("segments %b missing, and nobody saw", mask)
		}
	}
}

// TestASectorIsLostWithoutMark zeroes each sector ahead of the last block, whose blocks would then look torn if a whole one
// did not follow.
func TestASectorIsLostWithoutMark(t *testing.T) {
	disk := faultfs.NewMemory()
	l := open(t, "/log", &seglog.Options{FS: disk})
	var records []string
	for i := range 9 {
		records = append(records, strings.Repeat(fmt.Sprint("a block of several sectors ", i), 50))
	}
	appendAll(t, l, records...)
	if err := disk.Remove("/log/mark"); err != nil {
		t.Fatal(err)
	}
	name := files(t, disk)[0]
	last := 64 + 8*(32+2+len(records[0])+1)
	for sector := 0; sector+512 <= last; sector += 512 {
		after := disk.Kill()
		change(t, after, name, func(b []byte) []byte { clear(b[sector:][:512]); return b })
		damage := holds(t, after, fmt.Sprintf("sector at %d lost", sector), records)
		if damage == nil || sector > 0 && !strings.Contains(damage.Reason, "whole block") {
			t.Errorf("sector at %d lost: %v", sector, damage)
		}
	}
}

// TestBlocksThatChangedPlaces: whole blocks where they do not belong.
func TestBlocksThatChangedPlaces(t *testing.T) {
	disk := faultfs.NewMemory()
	l := open(t, "/log", &seglog.Options{FS: disk})
	records := []string{"one as long", "two as long", "six as long"}
	appendAll(t, l, records...)
	shut(t, l)
	name := files(t, disk)[0]
	const block = 32 + 12 + 1
	for _, swap := range [][2]int{{0, 1}, {1, 2}, {0, 2}} {
		after := disk.Kill()
		change(t, after, name, func(b []byte) []byte {
			x, y := b[64+swap[0]*block:][:block], b[64+swap[1]*block:][:block]
			z := slices.Clone(x)
			copy(x, y)
			copy(y, z)
			return b
		})
		if holds(t, after, fmt.Sprint("swapped ", swap), records) == nil {
			t.Errorf("blocks %v changed places, and nobody saw", swap)
		}
	}
	after := disk.Kill()
	change(t, after, name, func(b []byte) []byte { return append(b, b[len(b)-block:]...) })
	if holds(t, after, "the last block twice", records) == nil {
		t.Error("a block stands twice, and nobody saw")
	}
}

// TestCutWhileOpen: a file that somebody cuts under a log that is open.
func TestCutWhileOpen(t *testing.T) {
	disk := faultfs.NewMemory()
	l := open(t, "/log", &seglog.Options{FS: disk, SegmentSize: 600})
	for len(files(t, disk)) < 4 {
		appendAll(t, l, "a record of a few bytes")
	}
	for _, name := range files(t, disk)[:2] {
		change(t, disk, name, func(b []byte) []byte { return b[:200] })
		var err error
		for _, err = range l.Records(0) {
		}
		var damage *seglog.DamageError
		if !errors.As(err, &damage) || filepath.Base(damage.File) != files(t, disk)[0] || damage.Offset == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAReadFails: the error names the file and the place, and nothing is changed.
func TestAReadFails(t *testing.T) {
	disk, records := threeSegments(t, false)
	bad := errors.New("bad sector")
	broken := &faultfs.Hook{Inner: disk, Before: func(c *faultfs.Call) error {
		if c.Op == faultfs.OpRead && c.Size > 64 && filepath.Base(c.Name) != "mark" {
			return bad
		}
		return nil
	}}
	if _, err := seglog.Open("/log", &seglog.Options{FS: broken}); !errors.Is(err, bad) || !strings.Contains(err.Error(), "at byte 64") {
		t.Error(err)
	}
	if damage := holds(t, disk, "read again", records); damage != nil {
		t.Error(damage)
	}
}
