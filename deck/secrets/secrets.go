// Package secrets tells a scrubber what is secret before a program starts: in its arguments, in the environment, by the project's
// key. It makes the log of a run that holds no more of them than its recording does.
//
// Goals: what names itself a secret in the ways that programs take them is found. Not goals: the shapes of secrets, which package
// scrub knows.
package secrets

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/scrub/names"
)

// OfProject returns what hides secrets in what comes from elsewhere, such as another tool's transcript, as Record hides them
// in what it writes: with the project's key, so that a secret has one placeholder wherever it was found; values of the
// environment env (NAME=VALUE) by their names, and the shapes of secrets. The key is made on first use.
func OfProject(env []string) (*scrub.Scrubber, error) {
	key, err := recording.LoadKey("")
	if err != nil {
		return nil, err
	}
	return here(key, env)
}

// here is a scrubber of the working directory.
func here(key scrub.Key, env []string) (*scrub.Scrubber, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return scrub.New(key, &scrub.Options{Env: env, Harmless: PathsFrom(cwd)}), nil
}

// PathsFrom tells the paths of what there is, seen from the directory cwd.
func PathsFrom(cwd string) func(value string) bool {
	const longest = 4096 // bytes
	return func(value string) bool {
		if len(value) > longest || strings.ContainsAny(value, "\x00\n") {
			return false
		}
		if !filepath.IsAbs(value) {
			value = filepath.Join(cwd, value)
		}
		_, err := os.Lstat(value)
		return err == nil
	}
}

// OfTerminal returns what knows the secrets of a program that is recorded on a terminal alone: those in its arguments and
// its environment by their names, as for Record, and the shapes of secrets.
func OfTerminal(argv, env []string) (*scrub.Scrubber, error) {
	s, err := here(scrub.Key{1}, env) // masks have no key
	if err == nil && len(argv) > 1 {
		LearnArgs(s, argv[1:])
	}
	return s, err
}

// What an argument is that may hold a secret by its name.
var (
	// flagArg is --NAME=V, of which all of the rest is the value, and --NAME; varArg is NAME=V as docker -e and env take it.
	flagArg = lazyregexp.New(`(?s)^--?([A-Za-z][A-Za-z0-9_.-]*)(=.*)?$`)
	varArg  = lazyregexp.New(`^([A-Z][A-Z0-9_]*)=(\S+)$`)
	// flagLike is what is no value of the flag before it: --word, --word=V, -x.
	flagLike = lazyregexp.New(`(?s)^(--[A-Za-z][A-Za-z0-9_-]*(=.*)?|-[A-Za-z])$`)
	// lineArg is X-Api-Key: V as curl takes it, also in one argument with its flag.
	lineArg = lazyregexp.New(`^(?:-H|--header=|--proxy-header=)?\s*([A-Za-z][A-Za-z0-9-]*):\s*(\S.*)$`)
)

// What stands in an argument that is a script, a query or JSON.
var (
	assigned = lazyregexp.New(`([A-Za-z][A-Za-z0-9_-]*)=(?:"([^"]*)"|'([^']*)'|([^\s"'&;,]+))`)
	flagged  = lazyregexp.New(`(?:^|\s)--?([A-Za-z][A-Za-z0-9_-]*)\s+(?:"([^"]*)"|'([^']*)'|([^\s"']*[0-9][^\s"']*))`)
	member   = lazyregexp.New(`"([A-Za-z][A-Za-z0-9_-]*)"\s*:\s*"((?:[^"\\]|\\.)+)"`) // "api_key": "V"
	line     = lazyregexp.New(`["']([A-Za-z][A-Za-z0-9-]*):\s*([^"'\\\n]+)\\?["']`)
	// reference is what a shell puts the secret into: Bearer $TOKEN, $(pass show x).
	reference = lazyregexp.New("^(\\S+\\s+)?([$][A-Za-z_{(]|`)")
)

// LearnArgs tells s the secrets among the arguments of a program: what names itself one in the ways that programs take
// them. A secret that nothing names, and that has no known shape, cannot be told from any other word.
func LearnArgs(s *scrub.Scrubber, args []string) {
	for i, a := range args {
		s.LearnURLs(a)
		if !learnFlag(s, a, args[i+1:]) {
			learnText(s, a)
		}
	}
}

// learnFlag takes the value of a flag whose name says so, in both spellings (--api-key=V, --api-key V), that of a variable, and
// the password of -u USER:PASSWORD. It reports whether nothing else is in a.
func learnFlag(s *scrub.Scrubber, a string, rest []string) (all bool) {
	if m := varArg.FindStringSubmatch(a); m != nil {
		return learnNamed(s, m[1], m[2])
	}
	m := flagArg.FindStringSubmatch(a)
	switch {
	case m == nil:
		return false
	case m[2] != "":
		return learnNamed(s, m[1], m[2][1:])
	case len(rest) > 0 && !flagLike.MatchString(rest[0]):
		learnBehind(s, m[1], rest[0])
	}
	return true
}

func learnBehind(s *scrub.Scrubber, name, value string) {
	if _, password, ok := strings.Cut(value, ":"); ok && (name == "u" || name == "user" || name == "proxy-user" || name == "U") {
		s.AddSecret("password", password)
		return
	}
	learnNamed(s, name, value)
}

// learnText takes what names itself a secret within an argument.
func learnText(s *scrub.Scrubber, a string) {
	if m := lineArg.FindStringSubmatch(a); m != nil {
		s.LearnHeader(map[string][]string{m[1]: {m[2]}})
	}
	for _, m := range line.FindAllStringSubmatch(a, -1) {
		// One word in prose is no header: "token: none of these".
		prose := !strings.Contains(m[1], "-") && names.SaySecret(m[1]) && strings.Contains(strings.TrimSpace(m[2]), " ")
		if !prose && !reference.MatchString(m[2]) {
			s.LearnHeader(map[string][]string{m[1]: {m[2]}})
		}
	}
	for _, m := range member.FindAllStringSubmatch(a, -1) {
		learnNamed(s, m[1], m[2])
	}
	for _, m := range assigned.FindAllStringSubmatch(a, -1) {
		if value := m[2] + m[3] + m[4]; !reference.MatchString(value) {
			learnNamed(s, m[1], value)
		}
	}
	for _, m := range flagged.FindAllStringSubmatch(a, -1) {
		if value := m[2] + m[3] + m[4]; !reference.MatchString(value) && !flagLike.MatchString(value) {
			learnBehind(s, m[1], value)
		}
	}
}

// learnNamed makes value known where name says that it is a secret, and reports whether it does.
func learnNamed(s *scrub.Scrubber, name, value string) bool {
	if !s.NamesSecret(name, value) {
		return false
	}
	s.AddPieces(strings.ToLower(strings.ReplaceAll(name, "-", "_")), value)
	return true
}

// Logger returns what the parts of a run log to: what they say beside the recording holds no more secrets than the
// recording does. A URL has its key in its query, an error may quote one, and net/http what it got. Nil is silent.
func Logger(to *slog.Logger, s *scrub.Scrubber) *slog.Logger {
	if to == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&scrubHandler{to.Handler(), s})
}

// A scrubHandler is a slog.Handler that hides secrets in messages and in every attribute but numbers, times and the like.
type scrubHandler struct {
	slog.Handler
	s *scrub.Scrubber
}

func (h *scrubHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, h.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h *scrubHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &scrubHandler{h.Handler.WithAttrs(h.attrs(attrs)), h.s}
}

func (h *scrubHandler) WithGroup(name string) slog.Handler {
	return &scrubHandler{h.Handler.WithGroup(name), h.s}
}

func (h *scrubHandler) attrs(in []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(in))
	for i, a := range in {
		out[i] = h.attr(a)
	}
	return out
}

func (h *scrubHandler) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.text(v.String()))
	case slog.KindAny:
		a.Value = slog.StringValue(h.text(fmt.Sprint(v.Any())))
	case slog.KindGroup:
		a.Value = slog.GroupValue(h.attrs(v.Group())...)
	}
	return a
}

// inText finds what may be a URL, or the target of a request, in a text.
var inText = lazyregexp.New(`[^\s"'<>]*(?:\?|://)[^\s"'<>]*`)

func (h *scrubHandler) text(s string) string {
	return h.s.String(inText.ReplaceAllStringFunc(s, h.s.URL))
}
