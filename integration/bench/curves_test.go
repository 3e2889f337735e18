package bench

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// A picture is XML with a point for each figure, and the table says the same.
func TestCurve(t *testing.T) {
	c := &curve{X: "agents <at once>", Y: "ms", Lines: []curveLine{{Name: "a"}, {Name: "b & c"}}}
	for i, at := range []float64{1, 10, 100} {
		c.Lines[0].add(at, at*5)
		if i > 0 {
			c.Lines[1].add(at, 0.25)
		}
	}
	dec, dots := xml.NewDecoder(strings.NewReader(c.svg())), 0
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "title" {
			dots++
		}
	}
	if dots != 5 {
		t.Errorf("%d points of 5", dots)
	}
	want := "| agents <at once> | a | b & c |\n|---|---|---|\n| 1 | 5.00 |  |\n| 10 | 50.0 | 0.25 |\n| 100 | 500 | 0.25 |\n"
	if got := c.table(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if r := c.reading(0, 10); r.value != 10 {
		t.Errorf("from 50 to 500 is %vx", r.value)
	}
}

// What is in ten times on an axis is as far apart everywhere on it.
func TestScaleIsLogarithmic(t *testing.T) {
	s := newScale(0, 300, []float64{1, 1000})
	for v, want := range map[float64]float64{1: 0, 10: 100, 100: 200, 1000: 300} {
		if got := s.place(v); got < want-0.01 || got > want+0.01 {
			t.Errorf("%v lies at %v, want %v", v, got, want)
		}
	}
}

// The tapes that are compared at scale load as they were written.
func TestTapeOf(t *testing.T) {
	job := tapeOf{filepath.Join(t.TempDir(), "a.tape"), 1_000}
	if err := writeTape(job); err != nil {
		t.Fatal(err)
	}
	if err := loadTape(job); err != nil {
		t.Fatal(err)
	}
	job.Records++
	if err := loadTape(job); err == nil {
		t.Error("a record too few was not seen")
	}
}
