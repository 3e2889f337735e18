package script

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"go.starlark.net/syntax"
)

// What a script may be before it runs.
const (
	maxSource = 1 << 20 // bytes of one file
	maxTree   = 5000    // nodes of the syntax tree within each other
)

// hidden marks names that no script can spell: operators and methods that look at what they are about to allocate.
const hidden = "$"

// dialect is Starlark with what people who write agents know from Python.
var dialect = syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}

// parse reads a file and puts the checked operators in place.
func parse(name string, src []byte) (*syntax.File, error) {
	f, err := parseForNames(name, src)
	if err != nil {
		return nil, err
	}
	w := &rewriter{}
	f.Stmts = w.block(f.Stmts)
	if w.err != nil {
		return nil, w.err
	}
	return f, nil
}

// parseForNames reads a file as it stands, such as one of which only the names matter.
func parseForNames(name string, src []byte) (*syntax.File, error) {
	if err := checkSource(name, src); err != nil {
		return nil, err
	}
	return dialect.Parse(name, bytes.TrimPrefix(src, byteOrderMark), 0)
}

var (
	byteOrderMark = []byte("\uFEFF") // which editors on Windows put before a text
	wasmMagic     = []byte("\x00asm")
)

// checkSource refuses what is too long, and what is no text: the parser takes a NUL for the end. It bounds by itself how deep it
// descends.
func checkSource(name string, src []byte) error {
	at := Position{File: name}
	var refuse string
	switch nul := bytes.IndexByte(src, 0); {
	case bytes.HasPrefix(src, wasmMagic):
		refuse = "this is WebAssembly: a module is called FILE.wasm"
	case len(src) > maxSource:
		refuse = fmt.Sprintf("a script has at most %d bytes, this one has more", maxSource)
	case nul >= 0:
		before := src[:nul]
		at.Line = 1 + bytes.Count(before, []byte("\n"))
		at.Col = 1 + utf8.RuneCount(before[1+bytes.LastIndexByte(before, '\n'):])
		refuse = "a NUL: a script is text"
	default:
		return nil
	}
	return &Error{Position: at, Message: refuse}
}

// rewriter puts calls of hidden functions in place of operators, methods and slices that may allocate much, and keeps every
// position, so that errors read as if it had not been there.
type rewriter struct {
	depth int
	temps int
	err   error
}

func (w *rewriter) down(n syntax.Node) (up func(), ok bool) {
	if w.depth >= maxTree && w.err == nil {
		at, _ := n.Span()
		w.err = &Error{Position: position(at), Message: fmt.Sprintf("more than %d expressions within each other", maxTree)}
	}
	if w.err != nil {
		return nil, false
	}
	w.depth++
	return func() { w.depth-- }, true
}

func (w *rewriter) block(list []syntax.Stmt) []syntax.Stmt {
	if len(list) == 0 {
		return list // an else that is not there is nil
	}
	out := make([]syntax.Stmt, 0, len(list))
	for _, s := range list {
		up, ok := w.down(s)
		if !ok {
			return out
		}
		out = append(out, w.stmt(s)...)
		up()
	}
	return out
}

func (w *rewriter) stmt(s syntax.Stmt) []syntax.Stmt {
	switch s := s.(type) {
	case *syntax.AssignStmt:
		return w.assign(s)
	case *syntax.DefStmt:
		w.params(s.Params)
		s.Body = w.block(s.Body)
	case *syntax.ExprStmt:
		s.X = w.expr(s.X)
	case *syntax.IfStmt:
		s.Cond = w.expr(s.Cond)
		s.True = w.block(s.True)
		s.False = w.block(s.False)
	case *syntax.ForStmt:
		s.Vars, s.X = w.target(s.Vars), w.expr(s.X)
		s.Body = w.block(s.Body)
	case *syntax.WhileStmt:
		s.Cond = w.expr(withPlace(s.Cond))
		s.Body = w.block(s.Body)
	case *syntax.ReturnStmt:
		s.Result = w.expr(s.Result)
	}
	return []syntax.Stmt{s}
}

// withPlace is a condition that has a place when it runs: that of `while 1:` would be the line above it.
func withPlace(cond syntax.Expr) syntax.Expr {
	if lit, ok := unparen(cond).(*syntax.Literal); ok && lit.Value == int64(1) {
		return &syntax.Ident{NamePos: lit.TokenPos, Name: "True"}
	}
	return cond
}

// updates are the operators that an assignment may carry, of those that are checked.
var updates = map[syntax.Token]string{
	syntax.PLUS_EQ: "+=", syntax.STAR_EQ: "*", syntax.PERCENT_EQ: "%", syntax.PIPE_EQ: "|=", syntax.AMP_EQ: "&", syntax.CIRCUMFLEX_EQ: "^",
}

// operators are those that are checked.
var operators = map[syntax.Token]string{
	syntax.PLUS: "+", syntax.STAR: "*", syntax.PERCENT: "%", syntax.PIPE: "|", syntax.AMP: "&", syntax.CIRCUMFLEX: "^",
}

// assign turns `x op= y` into `x = op(x, y)`, and `a[i] op= y` into `t = a; u = i; t[u] = op(t[u], y)`.
func (w *rewriter) assign(s *syntax.AssignStmt) []syntax.Stmt {
	s.RHS = w.expr(s.RHS)
	op, checked := updates[s.Op]
	if !checked {
		s.LHS = w.target(s.LHS)
		return []syntax.Stmt{s}
	}
	switch lhs := unparen(s.LHS).(type) {
	case *syntax.Ident:
		old := &syntax.Ident{NamePos: lhs.NamePos, Name: lhs.Name}
		s.Op, s.RHS = syntax.EQ, call(op, s.OpPos, old, s.RHS)
	case *syntax.IndexExpr:
		of, at := w.temp(s.OpPos), w.temp(s.OpPos)
		keep := []syntax.Stmt{
			&syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: of(), RHS: w.expr(lhs.X)},
			&syntax.AssignStmt{OpPos: s.OpPos, Op: syntax.EQ, LHS: at(), RHS: w.key(lhs.Y, lhs.Lbrack)},
		}
		old := &syntax.IndexExpr{X: of(), Lbrack: lhs.Lbrack, Y: at(), Rbrack: lhs.Rbrack}
		s.Op, s.RHS = syntax.EQ, call(op, s.OpPos, old, s.RHS)
		s.LHS = &syntax.IndexExpr{X: of(), Lbrack: lhs.Lbrack, Y: at(), Rbrack: lhs.Rbrack}
		return append(keep, s)
	default:
		s.LHS = w.target(s.LHS)
	}
	return []syntax.Stmt{s}
}

// temp is a variable that no script can spell; each call gives another node, as the resolver wants it.
func (w *rewriter) temp(at syntax.Position) func() syntax.Expr {
	w.temps++
	name := hidden + strconv.Itoa(w.temps)
	return func() syntax.Expr { return &syntax.Ident{NamePos: at, Name: name} }
}

// target rewrites what stands within the places that an assignment goes to, and not those themselves.
func (w *rewriter) target(x syntax.Expr) syntax.Expr {
	up, ok := w.down(x)
	if !ok {
		return x
	}
	defer up()
	switch x := x.(type) {
	case *syntax.ParenExpr:
		x.X = w.target(x.X)
	case *syntax.TupleExpr:
		w.targets(x.List)
	case *syntax.ListExpr:
		w.targets(x.List)
	case *syntax.IndexExpr:
		x.X, x.Y = w.expr(x.X), w.key(x.Y, x.Lbrack)
	case *syntax.DotExpr:
		x.X = w.expr(x.X)
	}
	return x
}

func (w *rewriter) targets(list []syntax.Expr) {
	for i := range list {
		list[i] = w.target(list[i])
	}
}

func (w *rewriter) params(list []syntax.Expr) {
	for _, p := range list {
		if p, ok := p.(*syntax.BinaryExpr); ok {
			p.Y = w.expr(p.Y)
		}
	}
}

func (w *rewriter) exprs(list []syntax.Expr) {
	for i := range list {
		list[i] = w.expr(list[i])
	}
}

// expr rewrites x and everything within; nil stays.
func (w *rewriter) expr(x syntax.Expr) syntax.Expr {
	if x == nil {
		return nil
	}
	up, ok := w.down(x)
	if !ok {
		return x
	}
	defer up()
	switch x := x.(type) {
	case *syntax.BinaryExpr:
		return w.binary(x)
	case *syntax.DotExpr:
		x.X = w.expr(x.X)
		if _, checked := methods[x.Name.Name]; checked {
			return call("."+x.Name.Name, x.Dot, x.X)
		}
	case *syntax.SliceExpr:
		x.X = call("[:]", x.Lbrack, w.expr(x.X))
		x.Lo, x.Hi, x.Step = w.expr(x.Lo), w.expr(x.Hi), w.expr(x.Step)
	case *syntax.CallExpr:
		w.callExpr(x)
	case *syntax.Comprehension:
		w.comprehension(x)
	case *syntax.LambdaExpr:
		w.params(x.Params)
		x.Body = w.expr(x.Body)
	default:
		w.inner(x)
	}
	return x
}

// inner are the expressions of which only the parts change.
func (w *rewriter) inner(x syntax.Expr) {
	switch x := x.(type) {
	case *syntax.ParenExpr:
		x.X = w.expr(x.X)
	case *syntax.DictExpr:
		w.exprs(x.List)
	case *syntax.DictEntry:
		x.Key, x.Value = w.key(x.Key, x.Colon), w.expr(x.Value)
	case *syntax.ListExpr:
		w.exprs(x.List)
	case *syntax.TupleExpr:
		w.exprs(x.List)
	case *syntax.CondExpr:
		x.Cond, x.True, x.False = w.expr(x.Cond), w.expr(x.True), w.expr(x.False)
	case *syntax.UnaryExpr:
		x.X = w.expr(x.X)
	case *syntax.IndexExpr:
		x.X, x.Y = w.expr(x.X), w.key(x.Y, x.Lbrack)
	}
}

// key is an expression whose value may be hashed, which descends as far as the value does.
func (w *rewriter) key(x syntax.Expr, at syntax.Position) syntax.Expr {
	x = w.expr(x)
	if literal(x) {
		return x
	}
	return call("key", at, x)
}

func (w *rewriter) binary(x *syntax.BinaryExpr) syntax.Expr {
	if x.Op == syntax.IN || x.Op == syntax.NOT_IN {
		x.X, x.Y = w.key(x.X, x.OpPos), w.expr(x.Y)
		return x
	}
	x.X, x.Y = w.expr(x.X), w.expr(x.Y)
	op, checked := operators[x.Op]
	if !checked || x.Op == syntax.PLUS && (number(x.X) || number(x.Y)) || literal(x.X) && literal(x.Y) && x.Op == syntax.PLUS {
		return x
	}
	return call(op, x.OpPos, x.X, x.Y)
}

// callExpr rewrites arguments; `name=value` keeps its name, `*list` is looked at before it is copied.
func (w *rewriter) callExpr(x *syntax.CallExpr) {
	x.Fn = w.expr(x.Fn)
	for i, arg := range x.Args {
		switch arg := arg.(type) {
		case *syntax.BinaryExpr:
			if arg.Op == syntax.EQ {
				arg.Y = w.expr(arg.Y)
				continue
			}
		case *syntax.UnaryExpr:
			if arg.Op == syntax.STAR || arg.Op == syntax.STARSTAR {
				arg.X = call("[:]", arg.OpPos, w.expr(arg.X))
				continue
			}
		}
		x.Args[i] = w.expr(arg)
	}
}

func (w *rewriter) comprehension(x *syntax.Comprehension) {
	if _, entry := x.Body.(*syntax.DictEntry); x.Curly && !entry {
		x.Body = w.key(x.Body, x.Lbrack)
	} else {
		x.Body = w.expr(x.Body)
	}
	for _, c := range x.Clauses {
		switch c := c.(type) {
		case *syntax.ForClause:
			c.Vars, c.X = w.target(c.Vars), w.expr(c.X)
		case *syntax.IfClause:
			c.Cond = w.expr(c.Cond)
		}
	}
}

func call(name string, at syntax.Position, args ...syntax.Expr) syntax.Expr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: hidden + name}, Lparen: at, Args: args, Rparen: at}
}

func unparen(x syntax.Expr) syntax.Expr {
	for {
		p, ok := x.(*syntax.ParenExpr)
		if !ok {
			return x
		}
		x = p.X
	}
}

func literal(x syntax.Expr) bool {
	_, ok := unparen(x).(*syntax.Literal)
	return ok
}

// number says that x is a number as it stands: what is added to one stays small.
func number(x syntax.Expr) bool {
	l, ok := unparen(x).(*syntax.Literal)
	return ok && (l.Token == syntax.INT || l.Token == syntax.FLOAT)
}

func position(p syntax.Position) Position {
	return Position{File: p.Filename(), Line: int(p.Line), Col: int(p.Col)}
}
