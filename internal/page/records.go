package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/regular"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// lines gives the lines of a tape from an offset on, each without its newline and valid until the next, until f says false.
func (r *Source) lines(from int64, f func(line []byte) bool) error {
	file, err := regular.Open(r.rec.TapePath())
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return err
	}
	return eachLine(file, f)
}

func eachLine(file io.Reader, f func(line []byte) bool) error {
	in := jsonscan.NewLines(file, tape.MaxLine+1)
	for {
		line, err := in.Next()
		if err != nil || in.Torn() { // a line without its end is not whole
			return recording.NotEOF(err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 && !f(line) {
			return nil
		}
	}
}

// records makes a block of records, as they stand on the tape.
func (r *Source) records(block int) (*Records, error) {
	s, err := r.sum()
	if err != nil {
		return nil, err
	}
	if block < 0 || block >= len(s.Blocks) {
		return nil, ErrNoDocument
	}
	out := &Records{First: block * blockRows, Records: []json.RawMessage{}}
	n := min(blockRows, s.Rows-out.First)
	err = r.lines(s.Blocks[block], func(line []byte) bool {
		if !json.Valid(line) {
			return false // the summary says so
		}
		out.Records = append(out.Records, bytes.Clone(line))
		return len(out.Records) < n
	})
	return out, err
}

// record reads one record.
func (r *Source) record(s *summary, seq uint64) (rec *tape.Record, err error) {
	row, ok := s.row(seq)
	if !ok {
		return nil, fmt.Errorf("%w: the tape has no record %d", ErrNoDocument, seq)
	}
	skip := row % blockRows
	errLines := r.lines(s.Blocks[row/blockRows], func(line []byte) bool {
		if skip == 0 {
			rec, err = tape.ParseRecord(line)
		}
		skip--
		return skip >= 0
	})
	if rec == nil && err == nil {
		err = errors.Join(errLines, fmt.Errorf("%w: the tape ends before record %d", ErrNoDocument, seq))
	}
	return rec, err
}

// recordAt reads the record whose line begins at an offset of a tape.
func recordAt(from io.ReaderAt, offset int64) (*tape.Record, error) {
	line, err := jsonscan.NewLines(io.NewSectionReader(from, offset, tape.MaxLine+1), tape.MaxLine+1).Next()
	if err != nil {
		return nil, err
	}
	return tape.ParseRecord(bytes.TrimSpace(line))
}
