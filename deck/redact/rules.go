package redact

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/scrub/tty"
)

// A Rule finds what is to be taken out. Its name stands in placeholders, and in the new recording.
type Rule struct {
	Name string
	find func(text []byte, found func(value []byte))
}

// Match is a rule that finds what an expression matches (syntax of Go's regexp, RE2).
func Match(expr string) (Rule, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return Rule{}, err
	}
	if re.MatchString("") {
		return Rule{}, fmt.Errorf("%q matches nothing at all too: it must match a text", expr)
	}
	return Rule{"match", func(text []byte, found func([]byte)) {
		for _, m := range re.FindAllIndex(text, -1) {
			found(text[m[0]:m[1]])
		}
	}}, nil
}

// Email is the rule that finds addresses of email.
func Email() Rule {
	return Rule{"email", func(text []byte, found func([]byte)) {
		tty.EachEmail(text, func(start, end int) { found(text[start:end]) })
	}}
}

// maxValuesFile bounds, in bytes, a file of values.
const maxValuesFile = 16 << 20

// ValuesFrom is a rule that finds the lines of a file, each as it stands.
func ValuesFrom(file string) (Rule, error) {
	b, err := recording.ReadBounded(file, maxValuesFile)
	if err != nil {
		return Rule{}, err
	}
	var values [][]byte
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, maxValuesFile)
	for lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			values = append(values, bytes.Clone(line))
		}
	}
	if len(values) == 0 {
		return Rule{}, errors.Join(lines.Err(), fmt.Errorf("%s: no line with a value in it", file))
	}
	return Rule{"value", func(text []byte, found func([]byte)) {
		for _, v := range values {
			if bytes.Contains(text, v) {
				found(v)
			}
		}
	}}, lines.Err()
}

// A ShortError says that a value cannot be taken out: it would be found within other words.
type ShortError struct {
	Rule  string
	Value string
	Least int // bytes
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("%s finds %q, and what has fewer than %d bytes is not searched for: name more of it, as in a first and a last name",
		e.Rule, e.Value, e.Least)
}

// A LeftError says where a recording without what was named would hold some of it all the same. There is no new recording.
type LeftError struct{ Places []string }

func (e *LeftError) Error() string {
	const shown = 5
	places := e.Places
	more := ""
	if len(places) > shown {
		places, more = places[:shown], fmt.Sprintf(" and %d more", len(e.Places)-shown)
	}
	return "something of it would be left in " + strings.Join(places, ", ") + more +
		": nothing was made; where the rule finds what a recording is made of (digests, times, numbers) let it match less"
}

// ErrNothing says that the rules find nothing in a recording.
var ErrNothing = errors.New("the rules find nothing in it: nothing was made")
