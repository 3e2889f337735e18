package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// A parsed is a flag that is read when it is given: what stands in the options is what it means.
type parsed[T any] struct {
	to    *T
	usual string
	text  string
	parse func(string) (T, error)
}

// parsedFlag defines a flag that parse reads. usual is what it says where it is not given, "" for nothing.
func parsedFlag[T any](f *pflag.FlagSet, to *T, name, usual, usage string, parse func(string) (T, error)) {
	v := &parsed[T]{to, usual, usual, parse}
	if usual != "" {
		*to, _ = parse(usual) // a text of ours
	}
	f.Var(v, name, usage)
}

func (p *parsed[T]) String() string { return p.text }
func (p *parsed[T]) Type() string   { return "value" }

// Set reads s; nothing is what it usually is.
func (p *parsed[T]) Set(s string) error {
	if s == "" {
		s = p.usual
	}
	if s == "" {
		*p.to, p.text = *new(T), ""
		return nil
	}
	v, err := p.parse(s)
	if err != nil {
		return &valueError{err}
	}
	*p.to, p.text = v, s
	return nil
}

// A valueError says by itself what a flag wants.
type valueError struct{ error }

// oneOf reads one of some words.
func oneOf(words ...string) func(string) (string, error) {
	return func(s string) (string, error) {
		if !slices.Contains(words, s) {
			last := len(words) - 1
			return "", fmt.Errorf("%q: want %s or %s", s, strings.Join(words[:last], ", "), words[last])
		}
		return s, nil
	}
}

// wordFlag defines a flag that takes one of some words, which a shell offers.
func wordFlag(cmd *cobra.Command, to *string, name, usual, usage string, words ...string) {
	parsedFlag(cmd.Flags(), to, name, usual, usage, oneOf(words...))
	completeFlag(cmd, name, words...)
}

// completeFlag makes a shell offer the values that a flag takes. The flag is there.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

var whens = []string{"auto", "always", "never"}

// A colorFlag says whether text has colours.
type colorFlag struct{ color string }

func (o *colorFlag) defineColor(cmd *cobra.Command) {
	wordFlag(cmd, &o.color, "color", "auto", "colours: `WHEN` is auto, always or never", whens...)
}

// colours reports whether w gets colours.
func (o *colorFlag) colours(w io.Writer) bool {
	return o.color == "always" || o.color != "never" && colour(w)
}

// modeFlag defines --mode.
func modeFlag(cmd *cobra.Command, to *fidelity.Mode) {
	parsedFlag(cmd.Flags(), to, "mode", "semantic", "what must match: "+modeNames, fidelity.ParseMode)
	completeFlag(cmd, "mode", modes...)
}

const modeNames = "semantic, outcome, byte-identical or phase-aware"

var modes = []string{"semantic", "outcome", "byte-identical", "phase-aware"}

// A treeFlag is the work tree that a program finds: the recorded one, or what lies on the disk now, at a directory or where it was.
type treeFlag struct {
	now bool
	at  string // "" for where it was
}

func (o *treeFlag) define(cmd *cobra.Command, usual string) {
	parsedFlag(cmd.Flags(), o, "tree", usual, "the work tree that a program finds: recorded, now (as it is on the disk), or a `directory` that holds it now", parseTree)
	completeFlag(cmd, "tree", "recorded", "now")
}

func parseTree(s string) (t treeFlag, err error) {
	switch s {
	case "recorded":
		return treeFlag{}, nil
	case "now":
		return treeFlag{now: true}, nil
	}
	at, err := filepath.Abs(s)
	if err == nil && !recording.IsDir(at) {
		err = fmt.Errorf("%q: want recorded, now, or a directory", s)
	}
	return treeFlag{true, recording.Resolved(at)}, err
}

// upstreamFlag defines --upstream.
func upstreamFlag(f *pflag.FlagSet, to *map[string]string, usage string) {
	*to = make(map[string]string)
	f.Func("upstream", usage, func(s string) error {
		name, url, ok := strings.Cut(s, "=")
		if !ok || name == "" || url == "" {
			return &valueError{fmt.Errorf("%q: want NAME[:PORT]=URL, as in api.anthropic.com=http://127.0.0.1:8080", visible.WithoutUser(s))}
		}
		(*to)[strings.ToLower(name)] = url
		return nil
	})
}

// offsetFlag defines a flag that takes a time of a session: ms, or a duration.
func offsetFlag(f *pflag.FlagSet, to *time.Duration, name, usage string) {
	parsedFlag(f, to, name, "", usage, parseOffset)
}

func parseOffset(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if ms, errMS := strconv.ParseInt(s, 10, 64); errMS == nil {
		d, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: want a time after the start: 1500 (ms), 1.5s or 2m", s)
	}
	return d, nil
}

// spanFlags define --since and --until, which name moments; the second is the end of a day.
func spanFlags(f *pflag.FlagSet, since, until *time.Time) {
	parsedFlag(f, since, "since", "", "only what began at this `time` or later: 2026-11-27, 2d, 12h, yesterday, monday",
		func(s string) (time.Time, error) { return library.ParseTime(s, time.Now(), false) })
	parsedFlag(f, until, "until", "", "only what began before the end of this `time`",
		func(s string) (time.Time, error) { return library.ParseTime(s, time.Now(), true) })
}

// parseGrep reads a --grep.
func parseGrep(s string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		err = fmt.Errorf(`%w: put plain text between \Q and \E`, err)
	}
	return re, err
}

// parseSpeed reads a --speed: how many times as fast, +Inf for all at once.
func parseSpeed(s string) (float64, error) {
	switch s {
	case "realtime":
		return 1, nil
	case "collapsed":
		return math.Inf(1), nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "x"), 64)
	if err != nil || !(n > 0) || n > 1e6 {
		return 0, fmt.Errorf("%q: want how many times as fast, as in 4 or 0.5, realtime, or collapsed", s)
	}
	return n, nil
}

// parseSize reads a number of bytes above 0, as parseBytes does.
func parseSize(s string) (int64, error) {
	n, err := parseBytes(s)
	if err == nil && n == 0 {
		err = badSize(s)
	}
	return n, err
}

// parseBytes reads a number of bytes, with K, M, G or T behind it for powers of 1024.
func parseBytes(s string) (int64, error) {
	digits, unit := strings.ToUpper(s), int64(1)
	if i := strings.IndexByte("KMGT", (digits + " ")[max(0, len(digits)-1)]); i >= 0 {
		digits, unit = digits[:len(digits)-1], 1<<(10*(i+1))
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return 0, badSize(s)
	}
	return n * unit, nil
}

func badSize(s string) error { return fmt.Errorf("%q: want a number of bytes, as in 500M or 64G", s) }
