package page

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A growing is the survey of a tape that is being written, and where it goes on.
type growing struct {
	survey *survey
	at     int64
}

// grow reads what has come since it was asked last, up to the last whole line. r.mu is held.
func (r *Source) grow() (*summary, error) {
	if r.growing == nil {
		r.growing = &growing{survey: newSurvey(r.store, r.prices)}
	}
	g := r.growing
	file, err := regular.Open(r.rec.TapePath())
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(g.at, io.SeekStart); err != nil {
		return nil, err
	}
	size := sizeOf(r.rec.TapePath())
	var damage error
	err = eachLine(file, func(line []byte) bool {
		at := g.at
		g.at += int64(len(line)) + 1
		if at == 0 {
			return true // the header
		}
		rec, err := tape.ParseRecord(line)
		if err != nil {
			damage, g.at = err, at
			return false
		}
		g.survey.add(rec, at)
		return g.at < size
	})
	if err == nil {
		err = damage
	}
	s := g.survey.close()
	if err != nil {
		out := *s
		out.Problems = append(out.Problems, Problem{recording.TapeName, err.Error()})
		s = &out
	}
	s.Tape = size
	return s, nil
}

// current reports whether a recording is still in the state in which it was opened.
func (r *Source) current() bool {
	m, err := recording.ReadManifest(r.rec.Dir)
	return err == nil && m.State == r.rec.Manifest.State
}

// How often a tape that grows is looked at, and how long a page is left alone between two tellings, which it answers by asking for what
// has changed.
const pollEvery, tellEvery = 200 * time.Millisecond, time.Second

// live tells a page how a run grows, until it has ended. Of one that is not being recorded there is nothing to tell: that status has a page
// not ask again.
func (s *Stacks) live(w http.ResponseWriter, r *http.Request, id string) {
	src, err := s.source(id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if src.rec.Finished() || src.rec.Live() != recording.LiveYes {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	s.follow(r.Context(), src.rec, func(event string, rows int) error {
		if _, err := fmt.Fprintf(w, "event: %s\ndata: %d\n\n", event, rows); err != nil {
			return err
		}
		return out.Flush()
	})
}

// follow tells of each growth of a recording, and of its end, until who is told has gone.
func (s *Stacks) follow(ctx context.Context, rec *recording.Recording, tell func(event string, rows int) error) {
	rows := &rowCount{path: rec.TapePath(), n: -1} // the header is none
	if rows.count(); tell("grown", rows.n) != nil {
		return
	}
	tick := time.NewTicker(s.poll)
	defer tick.Stop()
	told, fresh := time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		fresh = rows.count() || fresh
		if ended := rec.Live() != recording.LiveYes; ended {
			_ = tell("ended", rows.n) // who has gone needs it no more
			return
		}
		if fresh && time.Since(told) >= s.tell {
			if told, fresh = time.Now(), false; tell("grown", rows.n) != nil {
				return
			}
		}
	}
}

// A rowCount counts the lines of a file that grows.
type rowCount struct {
	path string
	at   int64
	n    int
}

// count counts what has come, and reports whether there was any.
func (c *rowCount) count() bool {
	f, err := regular.Open(c.path)
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := f.Seek(c.at, io.SeekStart); err != nil {
		return false
	}
	was, buf := c.n, make([]byte, 256<<10)
	for {
		n, err := f.Read(buf)
		c.n, c.at = c.n+bytes.Count(buf[:n], []byte("\n")), c.at+int64(n)
		if err != nil {
			return c.n > was
		}
	}
}
