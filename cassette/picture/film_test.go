package picture

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// shots are the pictures of a film, with what stands in their first row.
func shots(t *testing.T, s *session, o *Options) (all []*Picture, texts []string, end time.Duration) {
	t.Helper()
	f := newFilm(s, o.settings())
	for p, err := range f.pictures() {
		if err != nil {
			t.Fatal(err)
		}
		all, texts = append(all, p), append(texts, p.Lines[0].Text())
	}
	return all, texts, f.end()
}

func TestFilmHasSoManyPicturesASecond(t *testing.T) {
	var writes []string
	for i := range 1000 {
		writes = append(writes, fmt.Sprintf("\r%d", i))
	}
	all, texts, end := shots(t, script(2, 20, time.Millisecond, writes...), &Options{FPS: 10})
	if len(all) != 10 || texts[0] != "99" || texts[9] != "999" || end != time.Second {
		t.Errorf("a second is %d pictures, from %s to %s, %v long", len(all), texts[0], texts[len(texts)-1], end)
	}
	for i, p := range all {
		if p.Time != time.Duration(i)*100*time.Millisecond {
			t.Errorf("picture %d is shown at %v", i, p.Time)
		}
	}
}

func TestNothingIsShownTwice(t *testing.T) {
	_, texts, _ := shots(t, script(2, 20, time.Second, "a", "\ra", "\x1b[1m", "\x1b[H\x1b[1;2H", "b", "\x1b]2;\a"), nil)
	if got := strings.Join(texts, " "); got != "a ab" {
		t.Errorf("shown are %q, expected a and ab", got)
	}
}

// A screen that a program holds back is never shown half drawn, in whatever pieces it comes; but not held for ever.
func TestHeldBackScreensAreShownWhole(t *testing.T) {
	for name, writes := range map[string][]string{
		"in pieces":       {"one", "\x1b[?2026h\x1b[2J\x1b[Hhalf", " drawn", "\x1b[2J\x1b[Htwo", "\x1b[?2026l", "", ""},
		"with the next":   {"one", "\x1b[?2026h\x1b[2J\x1b[Htwo\x1b[?2026l\x1b[?2026h\x1b[2J\x1b[Hhalf", " drawn", "\x1b[2J\x1b[Htwo\x1b[?2026l"},
		"end in a string": {"one", "\x1b[?2026h\x1b[2J\x1b[Hhalf", "\x1b[2J\x1b[Htwo\x1b[?20", "26l"},
	} {
		_, texts, _ := shots(t, script(2, 20, 200*time.Millisecond, writes...), nil)
		if got := strings.Join(texts, ", "); got != "one, two" {
			t.Errorf("%s: shown are %q, expected one and two", name, got)
		}
	}
	_, texts, _ := shots(t, script(2, 20, 500*time.Millisecond, "one", "\x1b[?2026htwo", "three", "four", "five", "six"), nil)
	if len(texts) < 3 {
		t.Errorf("a program that never lets go is shown as %q, expected its screen after a second", texts)
	}
}

func TestPausesSpeedAndParts(t *testing.T) {
	s := script(2, 20, 10*time.Second, "a", "b", "c", "d")
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{}, "a@0s ab@5s abc@10s abcd@15s end@20s"},
		{Options{MaxIdle: -1}, "a@0s ab@10s abc@20s abcd@30s end@40s"},
		{Options{MaxIdle: 2 * time.Second, Speed: 4}, "a@0s ab@500ms abc@1s abcd@1.5s end@2s"},
		{Options{From: 15 * time.Second}, "ab@0s abc@5s abcd@10s end@15s"},
		{Options{To: 12 * time.Second, MaxIdle: -1}, "a@0s ab@10s end@12s"},
		{Options{From: 12 * time.Second, To: 13 * time.Second}, "ab@0s end@1s"},
		{Options{From: 99 * time.Second}, "abcd@0s end@0s"},
	} {
		all, texts, end := shots(t, s, &c.o)
		var got strings.Builder
		for i, p := range all {
			fmt.Fprintf(&got, "%s@%v ", texts[i], p.Time)
		}
		fmt.Fprintf(&got, "end@%v", end)
		if got.String() != c.want {
			t.Errorf("%+v: %s, expected %s", c.o, &got, c.want)
		}
	}
}

func TestColoursOfAProgramAndSizes(t *testing.T) {
	s := script(2, 20, time.Second, "a", "\x1b]4;1;rgb:12/34/56\a\x1b]11;#010203\a", "\x1b]104\a\x1b]111\ab")
	events := s.events
	s.events = func(yield func(event, error) bool) {
		for e, err := range events {
			if !yield(e, err) {
				return
			}
		}
		yield(event{at: 2500 * time.Millisecond, size: &size{5, 9}}, nil)
	}
	all, _, _ := shots(t, s, nil)
	if len(all) != 4 || all[0].Colors != nil || all[1].Colors == nil || all[2].Colors != nil {
		t.Fatalf("%d pictures, expected 4, the second with colours of its own", len(all))
	}
	p := Dark.paint(all[1].Colors)
	if p.palette[1] != 0x123456 || p.bg != 0x010203 || p.palette[2] != Dark.Palette[2] {
		t.Errorf("the program's red is %v on %v, its green %v", p.palette[1], p.bg, p.palette[2])
	}
	if all[3].Rows != 5 || all[3].Cols != 9 || len(all[3].Lines) != 5 {
		t.Errorf("the last screen is %d by %d with %d lines, expected 5 by 9", all[3].Rows, all[3].Cols, len(all[3].Lines))
	}
}
