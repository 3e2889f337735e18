package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	httpforeign "github.com/tapedeck-dev/tapedeck/httptape/foreign"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/sessionlog/foreign"
)

func newSessionCommand(std *console) *cobra.Command {
	return commandGroup("session",
		newSessionSnapshotCommand(std), newSessionCheckCommand(std), newSessionShowCommand(std), newSessionExportCommand(std),
		newSessionRepairCommand(std), newSessionImportCommand(std),
	)
}

// sessionNames completes a FILE argument: files, and recordings.
func sessionNames(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return recordingNames(cmd, args, word)
}

// A sessionSource is what a FILE argument stands for. It can be opened several times, but for stdin.
type sessionSource struct {
	name  string // for people
	path  string // of the log itself, "" where it is derived or stdin
	open  func() (io.ReadCloser, error)
	close func() // removes what an opening left in temporary directories
}

// findSession finds what name stands for.
func findSession(ctx context.Context, name string, std *console, p *progress) (*sessionSource, error) {
	if name == "-" {
		return &sessionSource{name: "stdin", close: func() {}, open: func() (io.ReadCloser, error) { return io.NopCloser(std.in), nil }}, nil
	}
	if st, err := os.Stat(name); err == nil && st.Mode().IsRegular() && !library.LooksPacked(name) {
		return sessionFile(name), transcriptError(name)
	} else if errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(name, "/.\\") {
		return nil, fmt.Errorf("%s: there is no such file, and no recording of that name", name)
	}
	path, clean, err := unpacked(ctx, name, p)
	if err != nil {
		return nil, err
	}
	rec, err := openRecording(path)
	if err != nil {
		clean()
		return nil, err
	}
	return &sessionSource{name: shortPath(rec.Dir), close: clean, open: func() (io.ReadCloser, error) { return derive.SessionLog(rec) }}, nil
}

// transcriptError is of a file that is no session log, and looks like what session import reads: nil for any other.
func transcriptError(name string) error {
	if isTape(name) {
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil // that is said where it is read
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, foreign.HeadSize).ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || len(bytes.TrimSpace(line)) == 0 || bytes.TrimSpace(line)[0] == '[' {
		return nil
	}
	if _, err := sessionlog.ParseEntry(line); err == nil {
		return nil
	}
	kind := looksLike(name)
	if kind == "" {
		return nil
	}
	out := "session.jsonl"
	if _, ok := httpforeign.ByName(kind); ok {
		out = "X.tape"
	}
	return fmt.Errorf("%s is no session log, it looks like one of %s: tapedeck session import %s %s -o %s reads it", name, kind, kind, name, out)
}

func sessionFile(path string) *sessionSource {
	s := &sessionSource{name: path, path: path, close: func() {}}
	s.open = func() (io.ReadCloser, error) { return os.Open(path) }
	if isTape(path) {
		s.path = ""
		s.open = func() (io.ReadCloser, error) { return derive.SessionLogOfTape(path) }
	}
	return s
}

// isTape reports whether the first line of the file is the header of a tape.
func isTape(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	line, _ := bufio.NewReaderSize(f, 4096).ReadSlice('\n')
	return bytes.HasPrefix(bytes.TrimSpace(line), []byte(`{"type":"header"`))
}

// A sessionLog is an open log.
type sessionLog struct {
	*sessionlog.Reader
	name  string
	from  io.ReadCloser
	close func()
}

// Close ends the reading.
func (l *sessionLog) Close() {
	l.from.Close()
	l.close()
}

// openSession opens what a FILE argument stands for. A torn end, as a crash leaves it, is dropped; tell says so.
func openSession(ctx context.Context, name string, std *console, p *progress) (*sessionLog, error) {
	src, err := findSession(ctx, name, std, p)
	if err != nil {
		return nil, err
	}
	l, err := src.log(ctx, p)
	if err != nil {
		src.close()
		return nil, err
	}
	l.close = src.close
	return l, nil
}

func (s *sessionSource) log(ctx context.Context, p *progress) (*sessionLog, error) {
	from, err := s.open()
	if err != nil {
		return nil, err
	}
	r := &watchedReader{ctx: ctx, r: from, p: p}
	if st, err := os.Stat(s.path); err == nil {
		r.total = st.Size()
	}
	return &sessionLog{sessionlog.NewReader(r, s.name, &sessionlog.ReaderOptions{Tolerant: true}), s.name, from, func() {}}, nil
}

// tell says on stderr what of the log was dropped or could not be derived.
func (l *sessionLog) tell(std *console) {
	if torn := l.Torn(); torn != nil {
		std.say("line %d is torn, as a crash leaves it; it was dropped", torn.Line)
	}
	if derived, ok := l.from.(*derive.SessionReader); ok && derived.Derived {
		derived.Close()
		for _, n := range derived.Notes() {
			std.say("%s", n)
		}
	}
}

// A watchedReader tells how far the reading has come, and ends with its context.
type watchedReader struct {
	ctx         context.Context
	r           io.Reader
	p           *progress
	done, total int64
}

func (w *watchedReader) Read(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(b)
	w.done += int64(n)
	w.p.show(func() string {
		if w.total == 0 {
			return "reading: " + size(w.done)
		}
		return fmt.Sprintf("reading: %d%% of %s", percent(w.done, w.total), size(w.total))
	})
	return n, err
}

// keep makes a source that can be opened once alone, stdin, one that can be opened again: what comes is held in a file that
// is nobody else's, until close.
func (s *sessionSource) keep(std *console) error {
	if s.name != "stdin" {
		return nil
	}
	file, done, err := keptStdin("-", std)
	if err == nil {
		s.close, s.open = done, func() (io.ReadCloser, error) { return os.Open(file) }
	}
	return err
}

func newSessionCheckCommand(std *console) *cobra.Command {
	cmd := command("session check", "FILE", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runSessionCheck(cmd.Context(), args[0], std)
	}))
	cmd.ValidArgsFunction = sessionNames
	std.jsonFlag(cmd, "as JSON")
	return cmd
}

func runSessionCheck(ctx context.Context, name string, std *console) error {
	p := std.progress()
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	c, err := sessionlog.CheckCategories(log.Reader)
	p.end()
	if err != nil {
		return err
	}
	err = std.verdict(c.Passed, c, func() error { return writeCheck(std, log.name, c) })
	log.tell(std)
	if order := log.Order(); order.First != nil {
		std.say("the numbers are not in order: %s", order.First.String())
	}
	return err
}

func writeCheck(std *console, name string, c *sessionlog.CategoryCheck) error {
	if c.Passed {
		_, err := visible.Fprintf(std.out, "%s: %s, %s with a category: passed\n", name, plural(c.Events, "event", "events"),
			plural(c.Kernel, "kernel event", "kernel events"))
		return err
	}
	_, err := visible.Fprintf(std.out, "%s: %d of %s without its category; the first: %s\n", name, c.Offenders,
		plural(c.Kernel, "kernel event", "kernel events"), c.First.String())
	return err
}

type sessionRepairOptions struct {
	output string
	force  bool
}

func newSessionRepairCommand(std *console) *cobra.Command {
	var o sessionRepairOptions
	cmd := command("session repair", "FILE", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runSessionRepair(cmd.Context(), &o, args[0], std)
	}))
	cmd.ValidArgsFunction = sessionNames
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`file` of the repaired copy, - for stdout")
	f.BoolVarP(&o.force, "force", "f", false, "replace the file where it is there")
	std.jsonFlag(cmd, "what was found as JSON")
	return cmd
}

func runSessionRepair(ctx context.Context, o *sessionRepairOptions, name string, std *console) error {
	if std.json && o.output == "-" {
		return errors.New("--json and -o - both take stdout: name a file with -o")
	}
	p := std.progress()
	src, err := findSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer src.close()
	if o.output != "" {
		if err := src.keep(std); err != nil {
			return err
		}
	}
	found, err := o.examine(ctx, src, p)
	p.end()
	if err != nil {
		return err
	}
	if o.output != "" {
		if err := o.copy(ctx, src, found, std, p); err != nil {
			return err
		}
	}
	return o.tell(src.name, found, std)
}

func (o *sessionRepairOptions) examine(ctx context.Context, src *sessionSource, p *progress) (*sessionlog.Findings, error) {
	log, err := src.log(ctx, p)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return sessionlog.Examine(log.Reader)
}

// copy writes the repaired copy, never over the log itself.
func (o *sessionRepairOptions) copy(ctx context.Context, src *sessionSource, found *sessionlog.Findings, std *console, p *progress) error {
	if a, err := os.Stat(src.path); err == nil {
		if b, err := os.Stat(o.output); err == nil && os.SameFile(a, b) {
			return fmt.Errorf("-o %s is the log itself, which is never changed: name another file", o.output)
		}
	}
	log, err := src.log(ctx, p)
	if err != nil {
		return err
	}
	defer log.Close()
	n, err := putWhole(o.output, o.force, std.out, func(w io.Writer) error { return found.WriteCopy(w, log.Reader) })
	p.end()
	if err != nil || o.output == "-" || std.json {
		return err
	}
	return std.say("wrote %s: %s", o.output, size(n))
}

// repairReport is what session repair --json prints.
type repairReport struct {
	Log      string               `json:"log"`
	Findings []sessionlog.Finding `json:"findings"`
	Copy     string               `json:"copy,omitempty"`
}

func (o *sessionRepairOptions) tell(name string, found *sessionlog.Findings, std *console) error {
	list := found.List
	if list == nil {
		list = []sessionlog.Finding{}
	}
	err := o.write(name, list, std)
	if err == nil && len(list) > 0 {
		err = &statusError{status: statusDiverged}
	}
	return err
}

func (o *sessionRepairOptions) write(name string, list []sessionlog.Finding, std *console) error {
	if std.json {
		return printJSON(std.out, &repairReport{name, list, o.output})
	}
	out := std.out
	if o.output == "-" {
		out = std.err // stdout has the copy
	}
	if len(list) == 0 {
		_, err := visible.Fprintf(out, "%s: nothing to repair\n", name)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, f := range list {
		where := "-"
		if f.Turn != "0" {
			where = string(f.Turn)
		}
		visible.Fprintf(w, "line %d\tturn %s\t%s\t%s\t%s\n", f.Line, where, string(f.Code), f.CallID, f.Message)
	}
	return w.Flush()
}

type sessionExportOptions struct {
	output  string
	title   string
	maxText int
	full    bool
	force   bool
}

func newSessionExportCommand(std *console) *cobra.Command {
	var o sessionExportOptions
	cmd := command("session export", "FILE", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runSessionExport(cmd.Context(), &o, args[0], std)
	}))
	cmd.ValidArgsFunction = sessionNames
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "-", "`file` to write, - for stdout")
	f.StringVar(&o.title, "title", "", "`text` of its heading (default: the log's name)")
	f.IntVar(&o.maxText, "max-text", 4000, "`bytes` of one text that are kept")
	f.BoolVar(&o.full, "full", false, "all of every text")
	f.BoolVarP(&o.force, "force", "f", false, "replace the file where it is there")
	std.jsonFlag(cmd, "what was written as JSON; takes -o")
	return cmd
}

func runSessionExport(ctx context.Context, o *sessionExportOptions, name string, std *console) error {
	switch {
	case std.json && o.output == "-":
		return errors.New("--json says what was written, and takes -o FILE")
	case o.maxText < 16:
		return errors.New("--max-text takes a number of bytes from 16; --full keeps all")
	}
	if _, err := formatOf(o.output, "markdown", map[string]string{".md": "markdown", ".markdown": "markdown", ".txt": "markdown"}); err != nil {
		return fmt.Errorf("%w: it is Markdown; `tapedeck export REC -o FILE.html` makes a page of a recording", err)
	}
	p := std.progress()
	log, err := openSession(ctx, name, std, p)
	if err != nil {
		return err
	}
	defer log.Close()
	if o.title == "" {
		o.title = "Session " + log.name
	}
	if o.full {
		o.maxText = -1
	}
	n, err := putWhole(o.output, o.force, std.out, func(w io.Writer) error {
		return sessionlog.WriteMarkdown(w, log.Reader, &sessionlog.MarkdownOptions{MaxText: o.maxText, Title: o.title})
	})
	p.end()
	if err != nil {
		return err
	}
	log.tell(std)
	return o.wrote(n, std)
}

func (o *sessionExportOptions) wrote(n int64, std *console) error {
	if o.output == "-" {
		return nil
	}
	if std.json {
		return printJSON(std.out, map[string]any{"file": o.output, "format": "markdown", "bytes": n})
	}
	return std.say("wrote %s: %s", o.output, size(n))
}
