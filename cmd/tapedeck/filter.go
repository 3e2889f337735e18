package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/deck/follow"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// filterFlags choose records as they were typed; a deck.Filter is what they mean.
type filterFlags struct {
	seq          string
	kinds        []string
	lane, grep   string
	since, until string
	errors       bool
	tail         int

	single bool // --seq N, once parsed
}

func (f *filterFlags) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.seq, "seq", "", "only the record with this number, or those of a range: `N`, N-M or N-")
	fs.StringSliceVar(&f.kinds, "kind", nil, "only records of this `kind`, as in llm_call (repeatable, or with commas)")
	fs.StringVar(&f.lane, "lane", "", "only records whose `lane` begins so, or fits a pattern with * and ?")
	fs.StringVar(&f.grep, "grep", "", "only records in whose fields or payloads this regular `expression` (RE2) is found")
	fs.StringVar(&f.since, "since", "", "only records from this `time` after the start on: 1500 (ms), 1.5s or 2m")
	fs.StringVar(&f.until, "until", "", "only records up to this `time` after the start")
	fs.BoolVar(&f.errors, "errors", false, "only what was refused, exchanges that failed and programs that did not exit with 0")
	fs.IntVar(&f.tail, "tail", 0, "only the last `N` of what the other flags choose")
}

// parse returns what the flags ask for.
func (f *filterFlags) parse() (*follow.Filter, error) {
	out := follow.NewFilter()
	out.Kinds, out.Failed, out.Tail = f.kinds, f.errors, f.tail
	err := errors.Join(f.parseSeq(out), parseOffset("since", f.since, &out.Since), parseOffset("until", f.until, &out.Until))
	if f.tail < 0 {
		err = errors.Join(err, fmt.Errorf("--tail %d: want how many of the last records to show", f.tail))
	}
	if f.lane != "" {
		out.Lane = follow.MatchLane(f.lane)
	}
	if f.grep != "" {
		re, errGrep := regexp.Compile(f.grep)
		if errGrep != nil {
			errGrep = fmt.Errorf(`--grep: %w: put plain text between \Q and \E`, errGrep)
		}
		out.Grep, err = re, errors.Join(err, errGrep)
	}
	return out, err
}

func (f *filterFlags) parseSeq(out *follow.Filter) error {
	s := f.seq
	if s == "" {
		return nil
	}
	from, to, ranged := strings.Cut(s, "-")
	var err1, err2 error
	out.First, err1 = strconv.ParseUint(from, 10, 64)
	switch {
	case !ranged:
		out.Last, f.single = out.First, true
	case to != "":
		out.Last, err2 = strconv.ParseUint(to, 10, 64)
	}
	if err1 != nil || err2 != nil || out.First > out.Last {
		return fmt.Errorf("--seq %q: want the number of a record, or a range as in 10-20 or 10-", s)
	}
	return nil
}

// parseOffset reads ms or a duration into at.
func parseOffset(flag, s string, at *int64) error {
	if s == "" {
		return nil
	}
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(s)
		ms = d.Milliseconds()
	}
	if err != nil || ms < 0 {
		return fmt.Errorf("--%s %q: want a time after the start of the recording: 1500 (ms), 1.5s or 2m", flag, s)
	}
	*at = ms
	return nil
}

// unknown is the error of a kind that was asked for, and that neither tapedeck nor the tape knows.
func (f *filterFlags) unknown(of *follow.Filter) error {
	kind, known := of.Unknown()
	if kind == "" {
		return nil
	}
	return fmt.Errorf("--kind %s: want one of %s", kind, strings.Join(known, ", "))
}

// nothing is the error of a choice that no record fits: a typing error must not read as an empty tape.
func (f *filterFlags) nothing(of *follow.Filter, found int) error {
	strict := (f.seq != "" || len(f.kinds) > 0 || f.lane != "" || f.grep != "") && !f.errors
	if err := f.unknown(of); err != nil || found > 0 || !strict {
		return err
	}
	return errors.New("no record fits; `tapedeck show REC` lists their numbers, kinds and lanes")
}

// nothingFailed says that --errors has found nothing, so that no output is not taken for none made.
func (f *filterFlags) nothingFailed(found int, out io.Writer) error {
	if found > 0 || !f.errors {
		return nil
	}
	_, err := visible.Fprintln(out, "nothing was refused and nothing failed")
	return err
}
