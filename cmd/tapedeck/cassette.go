package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/cassette"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

func newCassetteCommand(std streams) *cobra.Command {
	cmd := withHelp("cassette", &cobra.Command{
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	})
	cmd.AddCommand(
		newCassetteRecordCommand(std), newCassetteListCommand(std), newCassettePlayCommand(std), newCassetteInfoCommand(std), newCassetteFramesCommand(std),
		newCassetteCheckCommand(std), newCassetteExportCommand(std), newCassetteImportCommand(std), newCassetteScrubCommand(std),
	)
	return cmd
}

// cassetteNames completes a CASSETTE argument.
func cassetteNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	lib, err := openLibrary()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	names, err := lib.CassetteNames()
	if err != nil || len(names) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	out := []string{"last"}
	for _, n := range names {
		if n == visible.Line(n) { // a shell gets no other
			out = append(out, n)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// cassettePath is the directory of what a CASSETTE argument stands for.
func cassettePath(name string) (string, error) {
	lib, err := openLibrary()
	if err != nil {
		return "", err
	}
	dir, err := lib.Cassette(name)
	if err != nil {
		return "", err
	}
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", err
	case !st.IsDir() && library.LooksPacked(dir):
		return "", fmt.Errorf("%s is a packed recording: tapedeck unpack %[1]s first", name)
	case !st.IsDir():
		return "", fmt.Errorf("%s is a file, and a cassette is a directory: tapedeck cassette import makes one of recordings of asciinema, script and ttyrec", name)
	case !isCassette(dir):
		return "", fmt.Errorf("%s is no cassette: it has no %s (tapedeck cassette record makes one)", name, cassette.ManifestFile)
	}
	return dir, nil
}

// isCassette reports whether a cassette, or what is left of one, is in dir.
func isCassette(dir string) bool {
	for _, name := range []string{cassette.ManifestFile, cassette.OutputFile, cassette.ChunksFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// openCassette opens what a CASSETTE argument stands for. Its output is held against the digests before any of it is shown, the rest
// is checked while it is read. Of a damaged one that partial opens it is said what ends it.
func openCassette(name string, partial bool, std streams) (*cassette.Reader, error) {
	dir, err := cassettePath(name)
	if err != nil {
		return nil, err
	}
	r, err := openSound(dir, partial, std)
	if err != nil {
		return nil, err
	}
	if why := r.Unfinished(); why != nil && !errors.Is(why, cassette.ErrNoManifest) {
		visible.Fprintf(std.err, "tapedeck: damaged: %s; what is whole before that is taken\n", firstLine(why))
	}
	return r, nil
}

// openSound opens the cassette in dir, whose output is what its digests say, or with partial as far as it is.
func openSound(dir string, partial bool, std streams) (*cassette.Reader, error) {
	r, err := cassette.Open(dir, &cassette.OpenOptions{Partial: partial, Lazy: !partial})
	if err == nil {
		stop := progressFor(std, false).busy("checking digests")
		err = r.CheckOutput()
		stop()
		if err != nil {
			r.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shortPath(dir), err)
	}
	return r, nil
}

// firstLine is the first of the errors that err joins.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// finishedOnly says that dir holds what --partial does not open for this, where that is why err came.
func finishedOnly(dir string, err error, only string) error {
	if !errors.Is(err, cassette.ErrNoManifest) {
		return err
	}
	return fmt.Errorf("%s is unfinished: its recorder is still at work or came to no end, and %s", shortPath(dir), only)
}

// partialHelp is the help of --partial.
const partialHelp = "open one whose recorder came to no end, up to its last whole chunk"

// hintForCassette is the next step after err, "" where it is none of a cassette.
func hintForCassette(err error) string {
	var locked *cassette.LockedError
	switch {
	case errors.Is(err, cassette.ErrNoManifest):
		return "its recorder is still at work or came to no end: --partial opens it up to its last whole chunk"
	case errors.Is(err, cassette.ErrDigest), errors.Is(err, cassette.ErrChunkDigest), errors.Is(err, cassette.ErrChunkRange):
		return "this is not what was recorded: `tapedeck verify` says all that is wrong, --partial takes what is whole before it"
	case errors.Is(err, cassette.ErrExists):
		return "name a directory that is empty, or that is not there yet"
	case errors.As(err, &locked):
		return "wait for it, or record for another --account"
	}
	return ""
}

// offsetFlag is a time of a session on the command line: ms, or a duration.
type offsetFlag struct{ time.Duration }

func (o *offsetFlag) String() string {
	if o.Duration == 0 {
		return ""
	}
	return o.Duration.String()
}

func (o *offsetFlag) Type() string { return "time" }

func (o *offsetFlag) Set(s string) error {
	d, err := time.ParseDuration(s)
	if ms, errMS := strconv.ParseInt(s, 10, 64); errMS == nil {
		d, err = time.Duration(ms)*time.Millisecond, nil
	}
	if err != nil || d < 0 {
		return errors.New("want 1500 (ms), 1.5s or 2m")
	}
	o.Duration = d
	return nil
}

// clockTime is d as people read it: 0:01.250, 1:02:03.004.
func clockTime(d time.Duration) string {
	ms := d.Milliseconds()
	s := fmt.Sprintf("%d:%02d.%03d", ms/60000%60, ms/1000%60, ms%1000)
	if h := ms / 3600000; h > 0 {
		s = fmt.Sprintf("%d:%02d:%02d.%03d", h, ms/60000%60, ms/1000%60, ms%1000)
	}
	return s
}

// exitText says how a program ended.
func exitText(e *cassette.Exit) string {
	switch {
	case e == nil:
		return "not known"
	case e.Signaled:
		return "ended by " + e.Signal
	case e.Exited:
		return fmt.Sprintf("exit %d", e.Code)
	}
	if s := strings.Trim(string(e.Err), `"`); s != "" && s != "null" {
		return s
	}
	return "not known"
}

// ms is that many milliseconds as people read them.
func ms(n int64) string { return clockTime(cassette.Timed{TMS: n}.Time()) }
