package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/pager"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"golang.org/x/term"
)

// jsonVersion is the version of what --json prints.
const jsonVersion = 1

// versioned is v, which must be an object, as JSON with "version" as its first key.
func versioned(v any) ([]byte, error) {
	b, err := jsonscan.Marshal(v)
	if err != nil {
		return nil, err
	}
	head := fmt.Appendf(nil, `{"version":%d`, jsonVersion)
	if len(b) > 2 {
		head = append(head, ',')
	}
	return append(head, b[1:]...), nil
}

// printJSON writes a command's result, indented.
func printJSON(w io.Writer, v any) error {
	b, err := versioned(v)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return err
	}
	return raw(w, "%s\n", &out)
}

// printLine writes one of a command's results, on a line of its own.
func printLine(w io.Writer, v any) error {
	b, err := versioned(v)
	if err != nil {
		return err
	}
	return raw(w, "%s\n", b)
}

// joined are objects that are one in JSON.
type joined []any

// MarshalJSON puts the keys of all into one object.
func (j joined) MarshalJSON() ([]byte, error) {
	var all []byte
	for _, v := range j {
		b, err := jsonscan.Marshal(v)
		if err != nil {
			return nil, err
		}
		all = append(append(all, ','), b[1:len(b)-1]...)
	}
	return append(append([]byte("{"), all[1:]...), '}'), nil
}

// A console is what one command talks with.
type console struct {
	streams
	json bool // --json was given: its result is one JSON object on stdout, and its reader a program
}

// jsonFlag gives cmd the flag --json.
func (c *console) jsonFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&c.json, "json", false, usage)
}

// outputs is where a program that is run writes to: with --json stdout is ours.
func (c *console) outputs() deck.Streams {
	if c.json {
		return deck.Streams{Stdout: c.err, Stderr: c.err}
	}
	return deck.Streams{Stdout: c.out, Stderr: c.err}
}

// ofProgram is outputs, of a program that reads ours.
func (c *console) ofProgram() deck.Streams {
	o := c.outputs()
	o.Stdin = c.in
	return o
}

// say says a line beside the result.
func (c *console) say(format string, args ...any) error {
	_, err := visible.Fprintf(c.err, "tapedeck: "+format+"\n", args...)
	return err
}

// verdict prints what a command that checks something has found, v as JSON or else text, and returns what makes the exit status: 2 where
// not all holds.
func (c *console) verdict(holds bool, v any, text func() error) error {
	print := text
	if c.json {
		print = func() error { return printJSON(c.out, v) }
	}
	if err := print(); err != nil || holds {
		return err
	}
	return &statusError{status: statusDiverged}
}

// progress tells how far something has come; nil with --json.
func (c *console) progress() *progress {
	if c.json {
		return nil
	}
	return newProgress(c.err)
}

func isTerminal(w any) bool {
	f, ok := behind(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// behind is where what is written to w comes to stand: of a pager the terminal.
func behind(w any) any {
	if p, ok := w.(*pager.Pager); ok {
		return p.Terminal()
	}
	return w
}

// colour reports whether w wants colours: a terminal that neither NO_COLOR nor CLICOLOR speaks against, or anything where CLICOLOR_FORCE
// asks for them.
func colour(w io.Writer) bool {
	force := os.Getenv("CLICOLOR_FORCE")
	switch {
	case os.Getenv("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return isTerminal(w) && os.Getenv("TERM") != "dumb" && os.Getenv("CLICOLOR") != "0"
}

// width is the width of w in characters, 100 where it is no terminal.
func width(w io.Writer) int {
	if f, ok := behind(w).(*os.File); ok {
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
			return cols
		}
	}
	return 100
}

// A lookFlags says how text looks on a terminal.
type lookFlags struct {
	colorFlag
	noPager bool
}

func (o *lookFlags) define(cmd *cobra.Command) {
	o.defineColor(cmd)
	cmd.Flags().BoolVar(&o.noPager, "no-pager", false, "long text without a pager on a terminal, too")
}

// paged has show write text: through a pager where stdout is a terminal and the text is longer than that. What show says on stderr comes
// when the pager has ended.
func (o *lookFlags) paged(std *console, show func(*console) error) error {
	command := pager.Command(os.LookupEnv)
	f, ok := std.out.(*os.File)
	if !ok || !isTerminal(f) || o.noPager || command == "" || os.Getenv("TERM") == "dumb" {
		return show(std)
	}
	cols, rows, err := term.GetSize(int(f.Fd()))
	if err != nil || rows <= 0 || cols <= 0 {
		return show(std)
	}
	var said bytes.Buffer
	p := pager.New(f, command, rows, cols)
	err = show(&console{streams: streams{std.in, p, &said}, json: std.json})
	if errors.Is(err, pager.ErrQuit) {
		err = nil
	}
	err = errors.Join(err, p.Close())
	_, errSaid := std.err.Write(said.Bytes())
	return errors.Join(err, errSaid)
}

// endLine ends the line that a program left without an end on the terminal that our own lines go to.
func endLine(w io.Writer, open bool) {
	if open && isTerminal(w) {
		visible.Fprintln(w)
	}
}

// raw writes what is no text for people, such as JSON and control sequences of our own, as it stands. All else is written by
// package visible, so that nothing in a recording steers the terminal of who looks at it.
func raw(w io.Writer, format string, args ...any) error {
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// plural is "1 file", "2 files".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// holds says whether something holds that has so many problems.
func holds(problems int) string {
	if problems == 0 {
		return "holds"
	}
	return "does not hold: " + plural(problems, "problem", "problems")
}

func size(n int64) string { return tapeview.Size(n) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// forJSON returns std as a command line that asks for JSON writes to it. On a terminal, what of the JSON would steer it (C1, what turns
// the direction of writing) stands there as an escape of JSON; a file and a pipe get it as it is.
func (std streams) forJSON(args []string) streams {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if isTerminal(std.out) && (slices.Contains(args, "--json") || slices.Contains(args, "--json=true")) {
		std.out = &shownJSON{w: std.out}
	}
	return std
}

// shownJSON writes JSON to a terminal.
type shownJSON struct {
	w   io.Writer
	cut []byte // the begin of a character, until the rest of it comes
}

func (s *shownJSON) Write(p []byte) (int, error) {
	b := slices.Concat(s.cut, p)
	n := len(b)
	for i := 1; i < utf8.UTFMax && i <= n; i++ {
		if c := b[n-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[n-i:]) {
				n -= i
			}
			break
		}
	}
	s.cut = slices.Clone(b[n:])
	if _, err := io.WriteString(s.w, visible.JSON(string(b[:n]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// formatOf is the format that the name of an export's file ends in; otherwise for stdout and a name without an ending, where that is not
// "". Any other ending is refused: who writes x.html gets HTML, or is told what there is.
func formatOf(output, otherwise string, endings map[string]string) (string, error) {
	end := strings.ToLower(filepath.Ext(output))
	if format, ok := endings[end]; ok {
		return format, nil
	}
	if (end == "" || output == "-") && otherwise != "" {
		return otherwise, nil
	}
	return "", fmt.Errorf("-o %s: its name says no format that this writes: end it in %s", output,
		strings.Join(slices.Sorted(maps.Keys(endings)), ", "))
}

// putNew writes a file that is not there yet, or stdout for "-" and "".
func putNew(file string, b []byte, std *console) error {
	if _, err := os.Lstat(file); err == nil && file != "" && file != "-" {
		return fmt.Errorf("%s is there already: choose another name", file)
	}
	_, err := putWhole(cmp.Or(file, "-"), false, std.out, func(w io.Writer) error { _, err := w.Write(b); return err })
	return err
}

// putWhole writes the file output, "-" for stdout, whole or not at all, and returns how many bytes it has. With force it
// replaces one that is there.
func putWhole(output string, force bool, stdout io.Writer, write func(io.Writer) error) (int64, error) {
	if output == "-" {
		w := &counted{w: stdout}
		err := write(w)
		return w.n, err
	}
	if _, err := os.Lstat(output); err == nil && !force {
		return 0, fmt.Errorf("%s is there already: choose another name, or --force", output)
	}
	if _, err := os.Stat(filepath.Dir(output)); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("-o %s: there is no directory %s", output, filepath.Dir(output))
	}
	w := new(counted)
	err := writeWhole(output, func(f io.Writer) error { w.w = f; return write(w) })
	return w.n, err
}

// writeWhole writes the file at path whole or not at all, in the place of one that is there.
func writeWhole(path string, write func(io.Writer) error) error {
	f, err := durable.Create(filepath.Dir(path), &durable.Options{Mode: 0o644})
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Discard()
		return err
	}
	return f.Commit(path)
}

// counted counts what is written.
type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// An indenter puts two spaces before each line that passes. Several goroutines may write.
type indenter struct {
	w io.Writer

	mu  sync.Mutex
	mid bool // the last byte written was not the end of a line
}

func (i *indenter) Write(p []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line := rest
		if n := bytes.IndexByte(rest, '\n'); n >= 0 {
			line = rest[:n+1]
		}
		rest = rest[len(line):]
		if !i.mid && len(line) > 1 {
			if _, err := io.WriteString(i.w, "  "); err != nil {
				return 0, err
			}
		}
		if _, err := i.w.Write(line); err != nil {
			return 0, err
		}
		i.mid = line[len(line)-1] != '\n'
	}
	return len(p), nil
}

const (
	progressAfter = time.Second // work that is shorter says nothing
	progressEvery = 100 * time.Millisecond
)

// A progress shows on a terminal how far something has come that takes longer than a second: one line, which is taken away
// before anything else is written. On anything else than a terminal it says nothing. A nil one says nothing either.
type progress struct {
	w io.Writer // nil for nowhere

	mu    sync.Mutex
	begun time.Time // when it was first told of anything
	last  time.Time
	shown bool
}

func newProgress(w io.Writer) *progress {
	p := new(progress)
	if isTerminal(w) {
		p.w = w
	}
	return p
}

// show puts text on the line, where it is time for that.
func (p *progress) show(text func() string) {
	if p == nil || p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.begun.IsZero() {
		p.begun = now
	}
	if now.Sub(p.begun) > progressAfter && now.Sub(p.last) > progressEvery {
		p.last, p.shown = now, true
		raw(p.w, "\rtapedeck: %s\x1b[K", visible.Line(text()))
	}
}

func (p *progress) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		raw(p.w, "\r\x1b[K")
		p.shown = false
	}
}

// step tells of the files and bytes of a snapshot; done takes the line away, for the program may write then.
func (p *progress) step(files int, bytes int64, done bool) {
	if done {
		p.end()
		return
	}
	p.show(func() string {
		return fmt.Sprintf("reading the work tree: %s, %s", plural(files, "file", "files"), size(bytes))
	})
}

// hiding tells how far what the program wrote has been looked through for secrets that became known late.
func (p *progress) hiding(items int, bytes int64, done bool) {
	if done {
		p.end()
		return
	}
	p.show(func() string {
		return fmt.Sprintf("hiding secrets that became known late: %d files and records, %s", items, size(bytes))
	})
}

// bytes tells of work that is so many bytes long.
func (p *progress) bytes(what string) func(done, total int64) {
	return func(done, total int64) {
		p.show(func() string { return fmt.Sprintf("%s: %d%% of %s", what, percent(done, total), size(total)) })
	}
}

// counted tells of work of which so many are to be done, one of which may take long, until stop is called.
func (p *progress) counted(what string) (step func(done, total int64), stop func()) {
	var done, total atomic.Int64
	stop = p.ticking(func() string {
		if total.Load() == 0 {
			return what
		}
		return fmt.Sprintf("%s: %d of %d", what, done.Load(), total.Load())
	})
	return func(d, t int64) { done.Store(d); total.Store(t) }, stop
}

// records tells of work whose end is not known.
func (p *progress) records(what string) func(records int, bytes int64) {
	return func(records int, bytes int64) {
		p.show(func() string {
			return fmt.Sprintf("%s: %s, %s", what, plural(records, "record", "records"), size(bytes))
		})
	}
}

// busy tells of work that does not tell by itself, until stop is called.
func (p *progress) busy(what string) (stop func()) {
	return p.ticking(func() string { return fmt.Sprintf("%s: %d s", what, int(time.Since(p.begun).Seconds())) })
}

// ticking shows text again and again, until stop is called, which waits for its goroutine.
func (p *progress) ticking(text func() string) (stop func()) {
	if p == nil || p.w == nil {
		return func() {}
	}
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				p.show(text)
			}
		}
	})
	return func() { close(done); ticking.Wait(); p.end() }
}

func percent(done, total int64) int64 {
	if total <= 0 {
		return 100
	}
	return min(100, int64(float64(done)/float64(total)*100))
}
