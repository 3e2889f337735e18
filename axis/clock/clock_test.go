package clock_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/clock"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// taped returns a clock that records, and what stands on its tape, a line a record without the header.
func taped(t testing.TB, o *clock.Options) (*clock.Clock, *tape.Recorder, func() string) {
	t.Helper()
	var buf bytes.Buffer
	c := clock.New(o)
	w, err := tape.NewWriter(&buf, &tape.Header{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	rec := tape.NewRecorder(w, &tape.RecorderOptions{Now: c.Stamp})
	c.Record(rec)
	return c, rec, func() string {
		t.Helper()
		if err := rec.Flush(); err != nil {
			t.Fatal(err)
		}
		_, lines, _ := bytes.Cut(buf.Bytes(), []byte("\n"))
		return string(lines)
	}
}

func TestADayIsOnTheTape(t *testing.T) {
	c, _, lines := taped(t, nil)
	if now := c.Now(); !now.Equal(clock.Epoch) {
		t.Errorf("begins at %v", now)
	}
	begun := time.Now()
	if err := c.Sleep(t.Context(), 25*time.Hour); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("25 h took %v", took)
	}
	if d := c.Monotonic(); d != 25*time.Hour {
		t.Errorf("monotonic says %v", d)
	}
	want := `{"type":"record","seq":0,"phase":"user_script","virtual_time_ms":1767225600000,"monotonic_ms":0,"kind":{"kind":"clock_read","source":"wall","value_ms":1767225600000},"g":1}
{"type":"record","seq":1,"phase":"user_script","virtual_time_ms":1767315600000,"monotonic_ms":90000000,"kind":{"kind":"clock_sleep","duration_ms":90000000},"g":2}
{"type":"record","seq":2,"phase":"user_script","virtual_time_ms":1767315600000,"monotonic_ms":90000000,"kind":{"kind":"clock_read","source":"monotonic","value_ms":90000000},"g":3}
`
	if got := lines(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestReadingsComeFromATape(t *testing.T) {
	lost := errors.New("the tape has no more")
	answers := []int64{1700000000123, 77}
	c, _, lines := taped(t, &clock.Options{Start: time.UnixMilli(1700000000000), Reads: func(source string) (int64, error) {
		if len(answers) == 0 {
			return 0, lost
		}
		ms := answers[0]
		answers = answers[1:]
		if want := [...]string{clock.SourceMonotonic, clock.SourceWall}[len(answers)]; source != want {
			t.Errorf("asked for %s, not %s", source, want)
		}
		return ms, nil
	}})
	if now := c.Now(); now.UnixMilli() != 1700000000123 {
		t.Errorf("wall %v", now)
	}
	if d := c.Monotonic(); d != 77*ms {
		t.Errorf("monotonic %v", d)
	}
	if now, err := c.ReadWall(); !errors.Is(err, lost) || now.UnixMilli() != 1700000000000 {
		t.Errorf("%v, %v", now, err)
	}
	got := lines()
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, `"value_ms":1700000000123}`) || !strings.Contains(got, `"value_ms":77}`) {
		t.Errorf("on the tape\n%s", got)
	}
}

func TestTheTapesErrorIsTheSleepers(t *testing.T) {
	c, rec, _ := taped(t, nil)
	lost := errors.New("no space left")
	rec.Fail(lost)
	if err := c.Sleep(t.Context(), ms); !errors.Is(err, lost) {
		t.Errorf("Sleep: %v", err)
	}
	if _, err := c.ReadMonotonic(); !errors.Is(err, lost) {
		t.Errorf("ReadMonotonic: %v", err)
	}
}

func TestTimeIsInWholeMilliseconds(t *testing.T) {
	c := clock.New(&clock.Options{Start: time.Unix(1700000000, 1_999_999).In(time.FixedZone("east", 3600))})
	if got := c.Start(); got.Nanosecond() != 1_000_000 || got.Location() != time.UTC {
		t.Errorf("start %v", got)
	}
	for range 3 {
		wait(t, c, 600*time.Microsecond)
	}
	if got := c.Now(); got.Nanosecond() != 2_000_000 {
		t.Errorf("after 1.8 ms %v", got)
	}
}

func TestAHookWithoutARecorderAllocatesNothing(t *testing.T) {
	c := clock.New(nil)
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		c.Now()
		c.Monotonic()
		_ = c.Sleep(ctx, ms)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
