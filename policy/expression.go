package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/tapedeck-dev/tapedeck/internal/boundedregexp"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
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

// allowedBuiltins are the functions that an expression may call: those of equal results for equal arguments, in time and memory
// in proportion to them. The value says how many arguments, from the first, are charged for.
var allowedBuiltins = map[string]int{
	"all": 1, "any": 1, "one": 1, "none": 1, "filter": 1, "map": 1, "find": 1, "findIndex": 1, "findLast": 1, "findLastIndex": 1,
	"count": 1, "sum": 1,
	"len": 1, "type": 0, "string": 1, "int": 1, "float": 1, "abs": 0, "ceil": 0, "floor": 0, "round": 0, "max": 2, "min": 2,
	"trim": 1, "trimPrefix": 2, "trimSuffix": 2, "upper": 1, "lower": 1, "split": 2, "indexOf": 2, "lastIndexOf": 2,
	"hasPrefix": 2, "hasSuffix": 2, "first": 0, "last": 0, "get": 0,
}

// An inspector looks at a tree before it is compiled: what an expression may not have, and what it looks at.
type inspector struct {
	problem  string
	uses     map[string]bool
	states   int                              // how often the state is named
	keys     []string                         // of the state, once for each time that it is named with one
	matchers map[string]*boundedregexp.Regexp // by their patterns
}

func (v *inspector) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		v.uses[n.Value] = true
		if n.Value == "state" {
			v.states++
		}
	case *ast.MemberNode:
		of, isState := n.Node.(*ast.IdentifierNode)
		if key, ok := n.Property.(*ast.StringNode); ok && isState && of.Value == "state" {
			v.keys = append(v.keys, key.Value)
		}
	case *ast.BuiltinNode:
		if _, ok := allowedBuiltins[n.Name]; !ok {
			v.fail(*node, "%s is not to be had here, for a verdict must be the same at any time and cost little", n.Name)
		}
	case *ast.CallNode:
		v.fail(*node, "expected one of the functions in docs/reference/policy.md, got %s", shorten(n.Callee.String()))
	case *ast.BinaryNode:
		if n.Operator == ".." {
			v.fail(*node, "ranges are not to be had here: compare with < and >")
		}
		if n.Operator == "matches" {
			v.pattern(n)
		}
	}
}

func (v *inspector) pattern(n *ast.BinaryNode) {
	text, ok := n.Right.(*ast.StringNode)
	if !ok {
		v.fail(n, "expected a text in quotes behind matches: a pattern that comes with the action would be another's")
		return
	}
	m, err := boundedregexp.Compile(text.Value)
	if err != nil {
		v.fail(n, "%v", err)
		return
	}
	v.matchers[text.Value] = m
}

func (v *inspector) fail(n ast.Node, format string, args ...any) {
	if v.problem == "" {
		v.problem = fmt.Sprintf("column %d: ", n.Location().From+1) + fmt.Sprintf(format, args...)
	}
}

// A bounder puts charges into a tree: for what functions and loops are given, for texts that + joins (a dozen lets could double
// one to any length), and in the bodies of loops for what is compared. Elsewhere a comparison is made once, and costs no more
// than what it is given.
type bounder struct {
	done map[ast.Node]bool
}

func (b *bounder) Visit(node *ast.Node) {
	if b.done == nil {
		b.done = make(map[ast.Node]bool)
	}
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		ast.Walk(&n.Node, &loopBounder{b})
	case *ast.BuiltinNode:
		b.function(n)
	case *ast.BinaryNode:
		switch n.Operator {
		case "+":
			if !b.done[n] {
				b.done[n] = true
				ast.Patch(node, call("__charge", n))
			}
		case "matches":
			ast.Patch(node, call("__matches", n.Left, n.Right))
		}
	}
}

// function charges for the arguments of a function.
func (b *bounder) function(n *ast.BuiltinNode) {
	if n.Name == "split" && !b.done[n] {
		ast.Patch(&n.Arguments[0], call("__chars", n.Arguments[0]))
	}
	var args []*ast.Node
	for i := range min(allowedBuiltins[n.Name], len(n.Arguments)) {
		args = append(args, &n.Arguments[i])
	}
	b.charge(n, args...)
}

// charge puts a charge around *arg, an argument of n, once.
func (b *bounder) charge(n ast.Node, args ...*ast.Node) {
	if b.done[n] {
		return
	}
	b.done[n] = true
	for _, arg := range args {
		switch (*arg).(type) {
		case *ast.PredicateNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode:
			continue
		}
		ast.Patch(arg, call("__charge", *arg))
	}
}

func call(name string, args ...ast.Node) ast.Node {
	callee := &ast.IdentifierNode{Value: name}
	callee.SetLocation(args[0].Location())
	return &ast.CallNode{Callee: callee, Arguments: args}
}

// A loopBounder charges for what is compared in the body of a loop.
type loopBounder struct{ *bounder }

func (b *loopBounder) Visit(node *ast.Node) {
	if n, ok := (*node).(*ast.BinaryNode); ok && slices.Contains(linear, n.Operator) {
		b.charge(n, &n.Left, &n.Right)
	}
}

// linear are the operators that look at the whole of what they are given.
var linear = []string{"==", "!=", "in", "contains", "startsWith", "endsWith", "<", ">", "<=", ">="}

// environmentTypes tell the compiler what an expression has: variables, and the functions that the bounder puts in.
var environmentTypes = map[string]any{
	"tool": "", "type": "", "agent": "", "parameters": map[string]any{}, "state": map[string]any{},
	"__charge":  func(...any) any { return nil },
	"__chars":   func(...any) any { return nil },
	"__matches": func(any, string) bool { return false },
}

// environment returns the variables of one evaluation.
func (d *denyExpr) environment(s *subject) map[string]any {
	shared := s.scratch()
	if shared.plain == nil {
		shared.plain = s.action.Parameters.Map()
	}
	return map[string]any{
		"tool": s.action.Tool, "type": s.action.Type, "agent": s.agent, "parameters": shared.plain, "state": d.state(s.state),
		"__charge": shared.charge, "__chars": shared.chars,
		"__matches": func(v any, pattern string) bool { return shared.matches(v, d.matchers[pattern]) },
	}
}

// state is as much of the state as the expression names.
func (d *denyExpr) state(from State) map[string]any {
	out := map[string]any{}
	if from == nil || !d.uses["state"] {
		return out
	}
	keys := d.keys
	if d.whole {
		keys = from.Keys()
	}
	for _, key := range keys {
		if v, ok := from.Lookup(key); ok {
			tree, _ := canonjson.Parse(v.Canonical()) // which was JSON when it became a Value
			out[key] = plain(&tree)
		}
	}
	return out
}

// plain is a value as expressions have it: whole numbers are int, others float64.
func plain(v *canonjson.Value) any {
	switch v.Kind {
	case canonjson.Bool:
		return v.Bool
	case canonjson.String:
		return v.Str
	case canonjson.Number:
		return number(v)
	case canonjson.Array:
		out := make([]any, len(v.Elems))
		for i := range v.Elems {
			out[i] = plain(&v.Elems[i])
		}
		return out
	case canonjson.Object:
		out := make(map[string]any, len(v.Members))
		for i := range v.Members {
			out[v.Members[i].Key] = plain(&v.Members[i].Value)
		}
		return out
	}
	return nil
}

// number is an int where it is whole and fits, so that ids of 19 digits stay apart; else the nearest double.
func number(v *canonjson.Value) any {
	if v.Str != "" {
		if n, err := strconv.Atoi(v.Str); err == nil {
			return n
		}
		return v.Num
	}
	if math.Abs(v.Num) < 1<<53 {
		if n := int(v.Num); float64(n) == v.Num {
			return n
		}
	}
	return v.Num
}
