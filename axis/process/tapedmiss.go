package process

import (
	"fmt"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// A NotTapedError is a command that the event tape does not answer.
type NotTapedError struct {
	Asked   Command
	Nearest *Recorded // the recorded command that is most like it; nil for a tape without any
	Fields  []string  // in which the two differ: "program", "args", "cwd", "stdin"; none for the same one, asked once too often
	Times   int       // how often the same command was recorded
}

// Error implements error.
func (e *NotTapedError) Error() string {
	why := "the tape has no command at all"
	switch n := e.Nearest; {
	case n != nil && e.Times > 0:
		why = fmt.Sprintf("it was recorded %s, last as record %d, and was asked for once more", times(e.Times), n.Seq)
	case n != nil:
		why = fmt.Sprintf("nearest is record %d: %s (%s)", n.Seq, &n.Command, differ(e.Fields))
	}
	return fmt.Sprintf("process: not on the tape: %s; %s; a replay answers only what was recorded", &e.Asked, why)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// missing explains a command that is not on the tape. It is called under mu.
func (t *Taped) missing(c *Command) error {
	e := &NotTapedError{Asked: *c}
	stdin := cas.Sum(c.Stdin)
	key := keyOf(c, stdin)
	best := -1
	for _, s := range t.spawns {
		if t.inOrder || keyOf(&s.Command, s.stdin) == key {
			e.Times++
			e.Nearest, e.Fields = &s.Recorded, nil
			continue
		}
		if e.Times > 0 {
			continue
		}
		if likeness := s.likeness(c, stdin); likeness > best {
			best, e.Nearest, e.Fields = likeness, &s.Recorded, s.differs(c, stdin)
		}
	}
	return e
}

// differs lists the fields in which a command is not the recorded one.
func (s *spawn) differs(c *Command, stdin cas.Digest) []string {
	fields := differing(c, &s.Command, false)
	if s.stdin != stdin {
		fields = append(fields, "stdin")
	}
	return fields
}

// likeness is larger the more alike the two are: by the program's name, then by the arguments, by what nobody asked for yet, by the rest.
func (s *spawn) likeness(c *Command, stdin cas.Digest) int {
	const most = 1000 // arguments that count
	n := 0
	if baseName(s.Command.Program) == baseName(c.Program) {
		n += 8 * (most + 2)
	}
	n += 8 * min(most, shared(s.Command.Args, c.Args))
	if len(s.differs(c, stdin)) == 1 {
		n += 4
	}
	if !s.used {
		n += 2
	}
	if s.Command.Program == c.Program {
		n++
	}
	return n
}

func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// shared counts the arguments that a and b have in common at their beginning and at their end.
func shared(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	end := 0
	for end < min(len(a), len(b))-n && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return n + end
}
