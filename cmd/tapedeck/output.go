package main

import (
	"bytes"
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
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/internal/durable"
	"github.com/tapedeck-dev/tapedeck/internal/pager"
	"github.com/tapedeck-dev/tapedeck/internal/tapeview"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"golang.org/x/term"
)

// jsonVersion is the version of what --json prints.
const jsonVersion = 1

// printJSON writes v, which must be an object, with "version" as its first key.
func printJSON(w io.Writer, v any) error {
	b, err := marshal(v)
	if err != nil {
		return err
	}
	if len(b) < 2 || b[0] != '{' {
		return fmt.Errorf("internal: --json of %T is no object", v)
	}
	var own struct{ Version json.RawMessage }
	if json.Unmarshal(b, &own) == nil && own.Version != nil {
		return fmt.Errorf("internal: --json of %T has a version of its own: readers would take one or the other", v)
	}
	head := fmt.Sprintf(`{"version":%d`, jsonVersion)
	if len(b) > 2 {
		head += ","
	}
	var out bytes.Buffer
	if err := json.Indent(&out, append([]byte(head), b[1:]...), "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// printVerdict prints what a command that checks something has found, v as JSON or else text, and returns what makes the exit
// status: 2 where not all holds.
func printVerdict(std streams, json, holds bool, v any, text func() error) error {
	print := text
	if json {
		print = func() error { return printJSON(std.out, v) }
	}
	if err := print(); err != nil || holds {
		return err
	}
	return &statusError{status: statusDiverged}
}

// marshal is json.Marshal without the escaping that is for web pages.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
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

// A colorFlag says whether text has colours.
type colorFlag struct{ color string }

func (o *colorFlag) defineColor(cmd *cobra.Command) {
	o.color = "auto"
	cmd.Flags().Var((*whenValue)(&o.color), "color", "colours: auto, always or never")
	completeFlag(cmd, "color", "auto", "always", "never")
}

// defineNoColor has --no-color, which came before, mean --color never.
func (o *colorFlag) defineNoColor(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolFunc("no-color", "as --color never", func(string) error { o.color = "never"; return nil })
	_ = f.MarkHidden("no-color") // it is there
}

// colours reports whether w gets colours.
func (o *colorFlag) colours(w io.Writer) (bool, error) {
	switch o.color {
	case "auto":
		return colour(w), nil
	case "always", "never":
		return o.color == "always", nil
	}
	return false, fmt.Errorf("--color %q: want auto, always or never", o.color)
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
func (o *lookFlags) paged(std streams, show func(streams) error) error {
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
	err = show(streams{std.in, p, &said})
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

func size(n int64) string { return tapeview.Size(n) }

func seconds(ms int64) string { return tapeview.Seconds(ms) }

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
