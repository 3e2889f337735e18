package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
)

// Limits of expressions.
const (
	maxNodes  = 500     // of the tree of one expression
	maxMemory = 1 << 17 // elements that one evaluation makes
)

// A denyExpr denies what an expression is true of, and what it fails on.
type denyExpr struct {
	program  *vm.Program
	keys     []string // of the state that are looked at; all where whole
	whole    bool
	uses     map[string]bool // the variables
	matchers map[string]*boundedregexp.Regexp
	reason   string
}

func compileExpr(r *Rule) (judge, *RuleError) {
	field, text := "pattern", r.expression()
	if r.Pattern == "" && len(r.Value) > 0 {
		field = "value"
	}
	if text == "" {
		return nil, wrong(r, field, "expr needs its expression as a text in pattern or in value, and there is none")
	}
	if len(text) > MaxPattern {
		return nil, wrong(r, field, "%d bytes, more than %d: shorten it", len(text), MaxPattern)
	}
	config := conf.CreateNew()
	config.MaxNodes = maxNodes
	tree, err := parser.ParseWithConfig(text, config)
	if err != nil {
		return nil, wrong(r, field, "expected an expression: %s", exprProblem(err))
	}
	look := inspector{uses: make(map[string]bool), matchers: make(map[string]*boundedregexp.Regexp)}
	ast.Walk(&tree.Node, &look)
	if look.problem != "" {
		return nil, wrong(r, field, "%s", look.problem)
	}
	program, err := expr.Compile(text, exprOptions()...)
	if err != nil {
		return nil, wrong(r, field, "expected an expression that is true or false: %s", exprProblem(err))
	}
	whole := look.states > len(look.keys)
	return &denyExpr{program, look.keys, whole, look.uses, look.matchers, "denied where " + shorten(text)}, nil
}

func exprOptions() []expr.Option {
	options := []expr.Option{
		expr.Env(environmentTypes), expr.AsBool(), expr.MaxNodes(2 * maxNodes), expr.DisableAllBuiltins(), expr.Patch(&bounder{}),
	}
	for name := range allowedBuiltins {
		options = append(options, expr.EnableBuiltin(name))
	}
	return options
}

// exprProblem is the first line of an error of expr, and where it is.
func exprProblem(err error) string {
	var fe *file.Error
	if errors.As(err, &fe) {
		return fmt.Sprintf("column %d: %s", fe.Column+1, shorten(firstLine(fe.Message)))
	}
	return shorten(firstLine(err.Error()))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func (d *denyExpr) against(s *subject) string {
	machine := vm.VM{MemoryBudget: maxMemory}
	got, err := machine.Run(d.program, d.environment(s))
	if err != nil {
		return "the expression failed, which denies: " + exprProblem(err)
	}
	if yes, ok := got.(bool); ok && !yes {
		return ""
	}
	return d.reason
}
