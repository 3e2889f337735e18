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

	"github.com/spf13/cobra"
	"github.com/tapedeck-dev/tapedeck/deck/derive"
	"github.com/tapedeck-dev/tapedeck/deck/library"
	httpforeign "github.com/tapedeck-dev/tapedeck/httptape/foreign"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
	"github.com/tapedeck-dev/tapedeck/sessionlog/foreign"
)

func newSessionCommand(std streams) *cobra.Command {
	cmd := withHelp("session", &cobra.Command{
		Args: knownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	})
	cmd.AddCommand(
		newSessionSnapshotCommand(std), newSessionCheckCommand(std), newSessionShowCommand(std), newSessionExportCommand(std),
		newSessionRepairCommand(std), newSessionImportCommand(std),
	)
	return cmd
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
func findSession(ctx context.Context, name string, std streams, p *progress) (*sessionSource, error) {
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

// sessionFile is a log, or a tape, at path.
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
func openSession(ctx context.Context, name string, std streams, p *progress) (*sessionLog, error) {
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

// log opens the log once.
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
func (l *sessionLog) tell(std streams) {
	if torn := l.Torn(); torn != nil {
		visible.Fprintf(std.err, "tapedeck: line %d is torn, as a crash leaves it; it was dropped\n", torn.Line)
	}
	if derived, ok := l.from.(*derive.SessionReader); ok && derived.Derived {
		derived.Close()
		for _, n := range derived.Notes() {
			visible.Fprintf(std.err, "tapedeck: %s\n", n)
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
func (s *sessionSource) keep() error {
	if s.name != "stdin" {
		return nil
	}
	f, err := os.CreateTemp("", "tapedeck-stdin-")
	if err != nil {
		return err
	}
	s.close = func() { _ = os.Remove(f.Name()) } // a temporary file that stays costs room alone
	in, err := s.open()
	if err == nil {
		_, err = io.Copy(f, in)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.close()
		return err
	}
	s.open = func() (io.ReadCloser, error) { return os.Open(f.Name()) }
	return nil
}
