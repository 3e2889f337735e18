package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/secrets"
	httpforeign "github.com/tapedeck-dev/tapedeck/httptape/foreign"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/sessionlog/foreign"
	_ "github.com/tapedeck-dev/tapedeck/sessionlog/foreign/sqlite" // opencode keeps its sessions in a database
)

type sessionImportOptions struct {
	output string
	force  bool
}

// kindAuto has the kind told by what is in FILE.
const kindAuto = "auto"

func newSessionImportCommand(std *console) *cobra.Command {
	var o sessionImportOptions
	cmd := command("session import", "KIND FILE", interruptibly(func(cmd *cobra.Command, args []string) error {
		return runSessionImport(cmd.Context(), &o, args[0], args[1], std)
	}))
	cmd.ValidArgsFunction = importKinds
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`file` to write: a session log, X.tape of an HTTP cassette (default: stdout)")
	f.BoolVarP(&o.force, "force", "f", false, "replace the session log where it is there")
	std.jsonFlag(cmd, "what was read and skipped as JSON; takes -o")
	return cmd
}

// importKinds completes KIND, and then files.
func importKinds(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return kindNames(), cobra.ShellCompDirectiveNoFileComp
}

func kindNames() []string {
	return slices.Concat([]string{kindAuto}, foreign.Names(), httpforeign.Names())
}

func runSessionImport(ctx context.Context, o *sessionImportOptions, kind, name string, std *console) (err error) {
	file, done, err := keptStdin(name, std)
	if err != nil {
		return err
	}
	defer done()
	defer func() { err = namedStdin(err, name, file) }()
	session, http, err := importerFor(kind, file)
	if err != nil {
		return err
	}
	hide, err := secrets.OfProject(os.Environ())
	if err != nil {
		return err
	}
	if http != nil {
		return orOther(o.importTape(ctx, http, file, name, hide, std), http.Name(), file)
	}
	return orOther(o.importSession(ctx, session, file, name, hide, std), session.Name(), file)
}

// looksLike names the KIND that a file is by what is in it, "" where that is none.
func looksLike(file string) string {
	if im, err := foreign.Detect(file); err == nil {
		return im.Name()
	}
	if im, err := httpforeign.Detect(file); err == nil {
		return im.Name()
	}
	return ""
}

// orOther says of a file that could not be read as one kind that it looks like another's.
func orOther(err error, kind, file string) error {
	var session *foreign.Error
	var http *httpforeign.ReadError
	if !errors.As(err, &session) && !errors.As(err, &http) && !errors.Is(err, httpforeign.ErrFormat) {
		return err
	}
	if other := looksLike(file); other != "" && other != kind {
		return fmt.Errorf("%w; it looks like one of %s", err, other)
	}
	return err
}

// keptStdin holds stdin, which name "-" stands for, in a file that is nobody else's until done: importers read a file more than
// once. Another name is the file itself.
func keptStdin(name string, std *console) (file string, done func(), err error) {
	if name != "-" {
		return name, func() {}, nil
	}
	f, err := os.CreateTemp("", "tapedeck-stdin-")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.Remove(f.Name()) } // a temporary file that stays costs room alone
	_, err = io.Copy(f, std.in)
	if err = errors.Join(err, f.Close()); err != nil {
		done()
		return "", nil, err
	}
	return f.Name(), done, nil
}

// namedStdin makes an error about the file that stands for stdin say stdin.
func namedStdin(err error, name, file string) error {
	if err == nil || name != "-" {
		return err
	}
	return &stdinError{err, file}
}

type stdinError struct {
	error
	file string
}

func (e *stdinError) Error() string { return strings.ReplaceAll(e.error.Error(), e.file, "stdin") }
func (e *stdinError) Unwrap() error { return e.error }

// fromOf is what was read, for people: the file, or the one that was chosen in a folder.
func fromOf(name, chosen string) string {
	if name == "-" {
		return "stdin"
	}
	return chosen
}

// importerFor returns the one importer that KIND names, or that FILE looks made for.
func importerFor(kind, file string) (*foreign.Importer, *httpforeign.Importer, error) {
	if im, ok := foreign.ByName(kind); ok {
		return im, nil, nil
	}
	if im, ok := httpforeign.ByName(kind); ok {
		return nil, im, nil
	}
	if kind != kindAuto {
		return nil, nil, fmt.Errorf("KIND %q: want one of %s", kind, strings.Join(kindNames(), ", "))
	}
	session, err := foreign.Detect(file)
	if err == nil {
		return session, nil, nil
	}
	if http, errHTTP := httpforeign.Detect(file); errHTTP == nil {
		return nil, http, nil
	}
	if errors.Is(err, foreign.ErrUnknown) {
		err = unknownKind(file)
	}
	return nil, nil, err
}

// unknownKind says how to go on with what auto cannot tell.
func unknownKind(file string) error {
	what := "looks like nothing that is known here"
	if st, err := os.Stat(file); err == nil && st.IsDir() {
		what = "is a folder, and nothing in its form says whose"
	}
	return fmt.Errorf("%s %s: name its KIND, one of %s", file, what, strings.Join(kindNames()[1:], ", "))
}

func (o *sessionImportOptions) importSession(ctx context.Context, im *foreign.Importer, file, name string, hide *scrub.Scrubber, std *console) error {
	output := o.output
	switch {
	case output == "" && std.json:
		return errors.New("--json says what was read, and takes -o FILE: stdout has the log")
	case output == "":
		output = "-"
	case std.json && output == "-":
		return errors.New("--json and -o - both take stdout: name a file with -o")
	case strings.HasSuffix(output, ".tape"):
		return fmt.Errorf("-o %s: %s gives a session log, and no tape: name it session.jsonl, say", output, im.Name())
	}
	var report *foreign.Report
	p := std.progress()
	n, err := putWhole(output, o.force, std.out, func(w io.Writer) error {
		out := &scrubbedLog{w: bufio.NewWriterSize(w, 1<<16), hide: hide, p: p}
		var err error
		if report, err = im.Import(ctx, file, out.add); err != nil {
			return err
		}
		if out.seq == 0 {
			return noEvents(im, file, report)
		}
		return out.w.Flush()
	})
	p.end()
	if err != nil {
		return err
	}
	report.File = fromOf(name, report.File)
	return o.tellSession(report, n, hide, std)
}

// noEvents says of a transcript in which nothing was found what may be the reason.
func noEvents(im *foreign.Importer, file string, r *foreign.Report) error {
	hint := ""
	switch looksLike(file) {
	case "":
		hint = "; it may be of another KIND"
	case im.Name():
		hint = "; it has no prompt and no answer yet"
	}
	return &foreign.Error{Path: r.File, Err: fmt.Errorf("no event in its %s, read as %s%s", plural(r.Lines, "line", "lines"), im.Name(), hint)}
}

// A scrubbedLog writes events as a session log, their secrets hidden.
type scrubbedLog struct {
	w    *bufio.Writer
	hide *scrub.Scrubber
	p    *progress
	buf  []byte
	seq  uint64
	n    int64
}

// add writes one event. What is no event any more once its secrets are hidden is not written.
func (l *scrubbedLog) add(e sessionlog.Event) error {
	event, err := sessionlog.AppendEvent(l.buf[:0], e)
	if err != nil {
		return err
	}
	l.buf = event
	_, over := l.hide.LearnAll(l.hide.Named("application/json", event))
	if len(over) > 0 {
		event = l.hide.HideAt(event, over)
	}
	event, _ = l.hide.Bytes(event)
	if err := jsonscan.Valid(event); err != nil {
		return fmt.Errorf("event %d, %s: hiding its secrets left no JSON (%w): it cannot be written", l.seq, sessionlog.KindOf(e), err)
	}
	n, err := l.w.Write(fmt.Appendf(nil, `{"seq":%d,"event":%s}`+"\n", l.seq, event))
	l.seq++
	l.n += int64(n)
	l.p.show(func() string {
		return fmt.Sprintf("importing: %s, %s", plural(int(l.seq), "event", "events"), size(l.n))
	})
	return err
}

// importedSession is what session import --json prints of a transcript.
type importedSession struct {
	File          string         `json:"file"`
	Bytes         int64          `json:"bytes"`
	Secrets       map[string]int `json:"secrets"`
	From          string         `json:"from"`
	Format        string         `json:"format"`
	SourceVersion string         `json:"source_version"` // of the program that wrote it; "" where it does not say
	Session       string         `json:"session"`
	Lines         int            `json:"lines"`
	Turns         int            `json:"turns"`
	Calls         int            `json:"calls"`
	Results       int            `json:"results"`
	Skipped       []foreign.Skip `json:"skipped"`
	Notes         []string       `json:"notes"`
}

func (o *sessionImportOptions) tellSession(r *foreign.Report, n int64, hide *scrub.Scrubber, std *console) error {
	if std.json {
		return printJSON(std.out, &importedSession{
			o.output, n, hide.Counts(), r.File, r.Format, r.Version, r.Session, r.Lines, r.Turns, r.Calls, r.Results, r.Skipped, r.Notes,
		})
	}
	for _, s := range r.Skipped {
		first := ""
		if s.FirstLine > 0 {
			first = fmt.Sprintf(", first in line %d", s.FirstLine)
		}
		std.say("skipped %s: %s (%s%s)", s.What, s.Why, plural(s.Count, "time", "times"), first)
	}
	for _, note := range r.Notes {
		std.say("%s", note)
	}
	std.say("read %s: %s, %s: %s, %s, %s%s", shortPath(r.File), strings.TrimSpace(r.Format+" "+r.Version),
		plural(r.Lines, "line", "lines"), plural(r.Turns, "turn", "turns"), plural(r.Calls, "call", "calls"),
		plural(r.Results, "result", "results"), hidden(hide))
	if o.output == "" || o.output == "-" {
		return nil
	}
	return std.say("wrote %s: %s", shortPath(o.output), size(n))
}

func hidden(hide *scrub.Scrubber) string {
	n := total(hide.Counts())
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; secrets hidden %s", plural(n, "time", "times"))
}

// importTape makes a tape.
func (o *sessionImportOptions) importTape(ctx context.Context, im *httpforeign.Importer, file, name string, hide *scrub.Scrubber, std *console) error {
	switch {
	case o.output == "" || o.output == "-":
		return fmt.Errorf("%s becomes a tape, with its payloads beside it: name it with -o X.tape", im.Name())
	case !strings.HasSuffix(o.output, ".tape"):
		return fmt.Errorf("-o %s: %s becomes a tape: let its name end in .tape", o.output, im.Name())
	}
	p := std.progress()
	r, err := im.Import(ctx, file, o.output, &httpforeign.Options{Scrub: hide, Progress: p.bytes("importing")})
	p.end()
	if err != nil {
		return err
	}
	if std.json {
		return printJSON(std.out, importedTapeOf(o.output, fromOf(name, file), hide, r))
	}
	for _, s := range r.Skipped {
		std.say("skipped %s: %s (the first: %s)", plural(s.Count, "exchange", "exchanges"), s.Why, s.First)
	}
	for _, note := range r.Notes {
		std.say("%s", note)
	}
	return std.say("wrote %s: %s: %s, %d of them with a model%s", shortPath(o.output),
		cmp.Or(r.Version, r.Format), plural(r.Exchanges, "exchange", "exchanges"), r.LLMCalls, hidden(hide))
}

// importedTape is what session import --json prints of an HTTP cassette.
type importedTape struct {
	File          string         `json:"file"`
	From          string         `json:"from"`
	Format        string         `json:"format"`
	SourceVersion string         `json:"source_version"` // of the form, and of the program that wrote it
	Exchanges     int            `json:"exchanges"`
	LLMCalls      int            `json:"llm_calls"`
	Secrets       map[string]int `json:"secrets"`
	Skipped       []skippedPart  `json:"skipped"`
	Notes         []string       `json:"notes"`
}

type skippedPart struct {
	Why   string `json:"why"`
	Count int    `json:"count"`
	First string `json:"first"`
}

func importedTapeOf(output, file string, hide *scrub.Scrubber, r *httpforeign.Report) *importedTape {
	out := &importedTape{output, file, r.Format, r.Version, r.Exchanges, r.LLMCalls, hide.Counts(), []skippedPart{}, []string{}}
	for _, s := range r.Skipped {
		out.Skipped = append(out.Skipped, skippedPart(s))
	}
	out.Notes = append(out.Notes, r.Notes...)
	return out
}
