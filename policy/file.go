package policy

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/plainyaml"
)

// MaxFile is how many bytes a file of policies has at most.
const MaxFile = 1 << 20

// A FileError is one thing that is wrong in a file of policies.
type FileError struct {
	File         string
	Line, Column int    // from 1
	Rule         string // the rule's name, or "policy 3" where it has none; "" outside of rules
	Problem      string // what was expected and what came
}

func (e *FileError) Error() string {
	rule := ""
	if e.Rule != "" {
		rule = e.Rule + ": "
	}
	return fmt.Sprintf("%s:%d:%d: %s%s", e.File, e.Line, e.Column, rule, e.Problem)
}

// FileErrors are all that is wrong in a file, in its order; at least one.
type FileErrors []*FileError

func (e FileErrors) Error() string {
	var b strings.Builder
	for i, err := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

// ReadFile reads a file of policies: YAML or JSON, a list of rules with the keys of Rule and no others. Each is compiled, so that
// what it returns compiles. The error is FileErrors, or that the file cannot be read.
func ReadFile(path string) ([]Rule, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // which was only read
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	return ParseFile(path, b)
}

// ParseFile reads the text of a file of policies; name is what errors call it.
func ParseFile(name string, b []byte) ([]Rule, error) {
	r := fileReader{file: name}
	rules := r.rules(b)
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return rules, nil
}

// A fileReader collects what is wrong.
type fileReader struct {
	file string
	rule string // that is read
	errs FileErrors
}

func (r *fileReader) errorf(at plainyaml.Place, format string, args ...any) {
	const most = 100 // who has more wrong than that has another file in mind
	if len(r.errs) < most {
		r.errs = append(r.errs, &FileError{r.file, at.Line, at.Column, r.rule, fmt.Sprintf(format, args...)})
	}
}

func (r *fileReader) rules(b []byte) []Rule {
	top := r.tree(b)
	switch {
	case len(r.errs) > 0:
		return nil
	case top == nil || top.Kind == plainyaml.Null:
		r.errorf(plainyaml.Place{Line: 1, Column: 1}, "expected a list of rules, got nothing; an empty list is []")
		return nil
	case top.Kind != plainyaml.List:
		r.errorf(top.Place, "expected a list of rules, got %s", top.Got(quote))
		return nil
	case len(top.Items) > MaxRules:
		r.errorf(top.Items[MaxRules].Place, "more than %d rules", MaxRules)
		return nil
	}
	rules := make([]Rule, 0, len(top.Items))
	for i, item := range top.Items {
		r.rule = fmt.Sprintf("policy %d", i+1)
		if rule, ok := r.oneRule(item); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

// tree reads YAML, of which JSON is a part; nil is an empty file, or one with an error.
func (r *fileReader) tree(b []byte) *plainyaml.Node {
	n, err := plainyaml.Parse(b, MaxFile)
	var wrong *plainyaml.Error
	if errors.As(err, &wrong) {
		r.errorf(wrong.Place, "%s", shorten(wrong.Problem))
	}
	return n
}

// finite refuses numbers that JSON does not have.
func (r *fileReader) finite(n *plainyaml.Node) {
	if n.IsNumber() && (math.IsInf(n.Number, 0) || math.IsNaN(n.Number)) {
		r.errorf(n.Place, "expected a number that JSON has, got %s", shorten(n.Text))
	}
	for _, item := range n.Items {
		r.finite(item)
	}
	for _, f := range n.Fields {
		r.finite(f.Value)
	}
}

// quote puts a text of a file into a message.
func quote(s string) string { return strconv.Quote(shorten(s)) }

// oneRule reads a rule and tries whether it compiles.
func (r *fileReader) oneRule(n *plainyaml.Node) (rule Rule, ok bool) {
	if n.Kind != plainyaml.Object {
		r.errorf(n.Place, "expected a rule with name, rule, …, got %s", n.Got(quote))
		return rule, false
	}
	if name := n.Field("name"); name != nil && name.Kind == plainyaml.Text && name.Text != "" {
		r.rule = fmt.Sprintf("policy %q", shorten(name.Text))
	}
	before := len(r.errs)
	texts := map[string]*string{"name": &rule.Name, "rule": &rule.Rule, "target": &rule.Target, "key": &rule.Key, "pattern": &rule.Pattern}
	for i := range n.Fields {
		f := &n.Fields[i]
		switch to := texts[f.Key]; {
		case f.Key == "value":
			r.finite(f.Value)
			rule.Value = f.Value.AppendJSON(nil)
		case to == nil:
			r.errorf(f.Place, "%s: expected name, rule, target, key, pattern or value", shorten(f.Key))
		case f.Value.Kind == plainyaml.Text:
			*to = f.Value.Text
		case f.Value.Kind != plainyaml.Null:
			r.errorf(f.Value.Place, "%s: expected a text, got %s: put it in quotes", f.Key, f.Value.Got(quote))
		}
	}
	if len(r.errs) > before {
		return rule, false
	}
	if _, err := compile(&rule); err != nil {
		at := n.Place
		if f := n.Field(err.Field); f != nil {
			at = f.Place
		}
		if err.Field != "" {
			err.Problem = err.Field + ": " + err.Problem
		}
		r.errorf(at, "%s", err.Problem)
		return rule, false
	}
	return rule, true
}
