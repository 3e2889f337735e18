package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// partEvery is how often one answer that still streams is told of, where telling means a line of its own.
const partEvery = time.Second

// A tail shows a recording that is being made. Everything happens on the goroutine of Follow.
type tail struct {
	o     *showOptions
	std   *console
	shown shown                      // its tape has the store alone: Follow reads the records
	last  *follow.Last[*tape.Record] // of --tail, until everything that was there has been read; nil then
	line  *liveLine
	rows  *tapeview.Rows
	found int // records shown

	told map[uint64]toldPart
}

// A toldPart is what was last said of an answer that still streams.
type toldPart struct {
	len int64
	at  time.Time
}

func runFollow(ctx context.Context, o *showOptions, path string, std *console) error {
	rec, err := recording.OpenIfRecording(path)
	if err != nil {
		return err
	}
	if rec == nil {
		return errors.New("--follow: a bare tape has no recorder to wait for; name a recording, or show it without --follow")
	}
	if o.masks || o.coverage {
		return errors.New("--follow goes with records alone: leave out --masks and --coverage")
	}
	if slices.Contains(o.filter.Kinds, screen.KindScreen) {
		return errors.New("--follow shows records alone: leave out --kind screen, or --follow once the program has ended")
	}
	store, err := cas.OpenDir(rec.TapePath()+tape.StoreSuffix, nil)
	if err != nil {
		return err
	}
	t := &tail{
		o: o, std: std, shown: shown{rec: rec, tape: &tape.Tape{Store: store}}, line: newLiveLine(std), rows: tapeview.New(store, &o.view),
		told: make(map[uint64]toldPart),
	}
	if o.filter.Tail > 0 {
		t.last = &follow.Last[*tape.Record]{Size: o.filter.Tail}
	}
	fo := &follow.Options{Record: t.record, CaughtUp: t.caughtUp}
	if o.filter.All() {
		fo.Parts = t.parts
	}
	finished, err := follow.Follow(ctx, rec, fo)
	t.line.clear()
	if err != nil {
		return err
	}
	return t.end(finished)
}

func (t *tail) record(rec *tape.Record) error {
	t.rows.Listen(rec)
	want, err := t.o.filter.Wants(rec, t.shown.tape.Store)
	if err != nil || !want {
		return err
	}
	if t.last != nil {
		t.last.Add(rec)
		return nil
	}
	return t.show(rec)
}

// caughtUp shows the last of what was there before. Who mistyped a kind need not wait for the recorder's end.
func (t *tail) caughtUp() error {
	if err := t.o.unknown(); err != nil {
		return err
	}
	if t.last == nil {
		return nil
	}
	recs := t.last.All()
	t.last = nil
	for _, rec := range recs {
		if err := t.show(rec); err != nil {
			return err
		}
	}
	return nil
}

// show prints one record at once; its columns cannot wait for those below.
func (t *tail) show(rec *tape.Record) error {
	t.o.bill.Add(rec.Kind)
	t.found++
	if t.std.json {
		line, err := t.shown.recordJSON(rec, t.o)
		if err != nil {
			return err
		}
		return t.object("record", json.RawMessage(line))
	}
	t.line.clear()
	err := t.rows.Now(t.std.out, rec, t.o.filter.LaneOf(rec.Kind))
	if err == nil && t.o.payloads {
		err = t.shown.showPayloads(rec.Kind, t.std.out)
	}
	return err
}

func (t *tail) object(key string, v any) error { return printLine(t.std.out, map[string]any{key: v}) }

// A part is an answer that still streams, in --json.
type part struct {
	Arrival uint64 `json:"arrival"`
	Kind    string `json:"kind"`
	Method  string `json:"method"`
	URL     string `json:"url"`
	Lane    string `json:"lane,omitempty"`
	Len     int64  `json:"len_bytes"`
}

// parts shows the answers that still stream: on a terminal in one line that changes, else each in a line of its own when
// it begins, and then no more often than every partEvery.
func (t *tail) parts(all []follow.Streaming) error {
	if t.line.set(all) {
		return nil
	}
	for _, s := range all {
		was, known := t.told[s.Arrival]
		if known && (s.Len == was.len || time.Since(was.at) < partEvery) {
			continue
		}
		t.told[s.Arrival] = toldPart{s.Len, time.Now()}
		if err := t.part(s); err != nil {
			return err
		}
	}
	return nil
}

func (t *tail) part(s follow.Streaming) error {
	if t.std.json {
		return t.object("part", part{s.Arrival, s.Kind, s.Method, s.URL, s.Lane, s.Len})
	}
	_, err := visible.Fprintf(t.std.out, "part  %s %s: %s of the answer so far\n", s.Method, s.URL, size(s.Len))
	return err
}

// end says what the calls that were shown cost, and how the recording ended.
func (t *tail) end(finished bool) error {
	var exit *recording.Exit
	if rec, err := recording.Open(t.shown.rec.Dir); err == nil {
		exit = rec.Manifest.Exit
	}
	if t.std.json {
		state := recording.StateFinished
		if !finished {
			state = "killed"
		}
		if err := t.object("end", map[string]any{"state": state, "exit": exit, "usage": tapeview.NewBillJSON(t.o.bill)}); err != nil {
			return err
		}
	} else if err := errors.Join(t.o.nothingFailed(t.found, t.std.out), writeBill(t.std.out, t.o.bill)); err != nil {
		return err
	}
	if !finished {
		return fmt.Errorf("the recorder of %s was killed; what it had recorded is all there: tapedeck verify %[1]s", shortPath(t.shown.rec.Dir))
	}
	if exit != nil && !t.std.json {
		visible.Fprintf(t.std.err, "tapedeck: finished: exit %d\n", exit.Code)
	}
	return nil
}

// A liveLine is the line of a terminal that tells of answers that still stream. It is none where stdout is no terminal.
type liveLine struct {
	w     io.Writer
	cols  int
	shown bool
}

func newLiveLine(std *console) *liveLine {
	if !isTerminal(std.out) {
		return new(liveLine)
	}
	return &liveLine{w: std.out, cols: width(std.out)}
}

// set shows all, the newest first, and reports whether there is a line to show it on.
func (l *liveLine) set(all []follow.Streaming) bool {
	if l.w == nil {
		return false
	}
	l.clear()
	if len(all) == 0 {
		return true
	}
	s := all[len(all)-1]
	text := fmt.Sprintf("… %s %s: %s", s.Method, s.URL, size(s.Len))
	if len(all) > 1 {
		text += fmt.Sprintf(" and %d more", len(all)-1)
	}
	r := []rune(visible.Line(text))
	text = string(r[:min(len(r), max(0, l.cols-1))])
	raw(l.w, "%s", text)
	l.shown = true
	return true
}

func (l *liveLine) clear() {
	if l.shown {
		raw(l.w, "\r\x1b[K")
		l.shown = false
	}
}
