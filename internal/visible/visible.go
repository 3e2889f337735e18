// Package visible writes text that others made, such as what a recording holds, for people to read: what would steer their
// terminal stands there as an escape in place of being obeyed.
//
// Escaped are control characters (C0, DEL, C1), what turns the direction of writing, the separators of lines and paragraphs
// (U+2028, U+2029) and bytes that are no UTF-8: as \n, \x1b, \u202e. A backslash stays as it is, so that paths and JSON read
// as they were written: what is shown cannot be read back to the byte.
package visible

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s as one line: line ends and tabs are escaped too.
func Line(s string) string { return escape(s, hidden) }

// Text returns s as lines: the ends of lines and tabs stay. A carriage return does not.
func Text(s string) string { return escape(s, hiddenInText) }

// JSON returns a JSON text that means the same, and keeps its layout.
func JSON(s string) string {
	if !strings.ContainsFunc(s, hiddenInText) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hiddenInText(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Error returns the text of err. Where that has several lines, as joined errors have, those behind the first are indented: no
// line of it can pass for one of ours.
func Error(err error) string {
	first, rest, more := strings.Cut(Text(err.Error()), "\n")
	if !more {
		return first
	}
	lines := strings.Split(rest, "\n")
	for i, l := range lines {
		if l != "" && l[0] != ' ' {
			lines[i] = "  " + l
		}
	}
	return first + "\n" + strings.Join(lines, "\n")
}

// Fprintf is fmt.Fprintf whose layout is that of format alone: each argument that is text passes through Line, an error
// through Error.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, shown(args)...)
}

// Fprintln is fmt.Fprintln, with its arguments as in Fprintf.
func Fprintln(w io.Writer, args ...any) (int, error) { return fmt.Fprintln(w, shown(args)...) }

func shown(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case string:
			out[i] = Line(a)
		case error:
			out[i] = Error(a)
		case fmt.Stringer:
			out[i] = Line(a.String())
		case []byte:
			out[i] = Line(string(a))
		case bool, int, int32, int64, uint16, uint32, uint64, float64:
			out[i] = a
		default:
			out[i] = Line(fmt.Sprint(a))
		}
	}
	return out
}

func escape(s string, hide func(rune) bool) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hide) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch invalid := r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"); {
		case invalid:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !hide(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

func hiddenInText(r rune) bool { return r != '\n' && r != '\t' && hidden(r) }

// Command returns a command line as a shell would take it: arguments that hold more than the characters of plain words stand
// in quotes. It is for people: control characters are left to who writes it, as for any text.
func Command(argv []string) string {
	var b strings.Builder
	for i, arg := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if arg != "" && !strings.ContainsFunc(underRoot(arg), quoted) {
			b.WriteString(arg)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(arg, "'", `'\''`) + "'")
	}
	return b.String()
}

// underRoot is a path without the name of the root that a tape puts before it: ~ or $TMP.
func underRoot(arg string) string {
	for _, root := range []string{"~/", "$TMP/"} {
		if rest, ok := strings.CutPrefix(arg, root); ok {
			return rest
		}
	}
	return arg
}

// quoted reports whether r means something to a shell, or might.
func quoted(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("@%+=:,./_-", r)
}

// Markdown returns s as one line of which Markdown and HTML show every character: what means something to them stands there as an entity,
// and so does what at the begin of a line makes it an item, a rule or code.
func Markdown(s string) string {
	s = Line(s)
	block := opensBlock(s)
	var b strings.Builder
	for i, r := range s {
		if strings.ContainsRune("\\`*_[]<>|&@#~$", r) || i == 0 && block {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Code is s as a span of code of a Markdown document, on one line.
func Code(s string) string {
	s = Line(s)
	marks := marks(s, 1)
	if s == "" || strings.Contains(s, "`") || s[0] == ' ' && s[len(s)-1] == ' ' { // one space of each side is not shown
		s = " " + s + " "
	}
	return marks + s + marks
}

// Fence is s as a block of code of a Markdown document, as it stands.
func Fence(lang, s string) string {
	marks := marks(s, 3)
	return marks + lang + "\n" + strings.TrimSuffix(s, "\n") + "\n" + marks
}

// marks is a row of backquotes, at least so many, that is longer than each in s.
func marks(s string, least int) string {
	row := 0
	for i := range len(s) {
		if row++; s[i] != '`' {
			row = 0
		}
		least = max(least, row+1)
	}
	return strings.Repeat("`", least)
}

// opensBlock reports whether a line may begin something else than a paragraph by a character that stands for itself elsewhere. Numbers do not.
func opensBlock(line string) bool {
	if behind := strings.TrimLeft(line, "0123456789"); behind != line {
		return behind == "." || behind == ")" || strings.HasPrefix(behind, ". ") || strings.HasPrefix(behind, ") ")
	}
	number := len(line) > 1 && line[1] >= '0' && line[1] <= '9'
	return line != "" && strings.IndexByte(" -+=", line[0]) >= 0 && !number
}

// WithoutUser returns the URL that somebody gave, however it is written, without a user and a password before its host: ***@ stands for
// them. What may be no URL at all loses all before its last @.
func WithoutUser(url string) string {
	at := strings.LastIndexByte(url, '@')
	if at < 0 {
		return url
	}
	from := 0
	if i := strings.Index(url[:at], "://"); i >= 0 {
		from = i + len("://")
	}
	return url[:from] + "***" + url[at:]
}

// WithoutKeys is WithoutUser, without a query and a fragment too, where keys stand as well: ?*** stands for them. Where an @ after the
// first ? leaves open which of the two hides what, only the scheme stays.
func WithoutKeys(url string) string {
	query := strings.IndexAny(url, "?#")
	if query < 0 {
		return WithoutUser(url)
	}
	if strings.Contains(url[query:], "@") {
		scheme, _, ok := strings.Cut(url[:query], "://")
		if !ok {
			return "***"
		}
		return scheme + "://***"
	}
	return WithoutUser(url[:query]) + "?***"
}
