package scrub

import (
	"regexp/syntax"
	"sync"
)

// A machine matches one expression at one place of a text that may still grow. Package regexp cannot tell whether more
// bytes would change what it found, and a stream must know: hence this simulation of the program that regexp/syntax
// compiles, byte by byte, leftmost-first as regexp does it. Its cost is bounded: the bytes that it looks at times the
// length of the program, and it looks at no more than its caller allows.
type machine struct {
	prog    *syntax.Prog
	scratch sync.Pool // of *threads
}

// threads are what a machine may be doing: positions in the program, the preferred first.
type threads struct {
	now, next []uint32
	seen      []uint32 // by position: the step in which it was added
	step      uint32
}

// newMachine compiles an expression of gitleaks.go, whose tests compile them all: one that does not is a mistake there.
func newMachine(expr string) *machine {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		panic(err)
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		panic(err)
	}
	m := &machine{prog: prog}
	m.scratch.New = func() any { return &threads{seen: make([]uint32, len(prog.Inst))} }
	return m
}

// match returns the end of the match at i. The outcome is a miss where it would be longer than limit bytes.
func (m *machine) match(t text, i, limit int) (end int, o outcome) {
	th := m.scratch.Get().(*threads)
	defer m.scratch.Put(th)
	th.now = th.now[:0]
	th.step++
	th.add(m.prog, uint32(m.prog.Start), &th.now)
	found := -1
	for at := i; ; at++ {
		if k := m.accepts(th.now); k >= 0 {
			found = at
			th.now = th.now[:k] // what is preferred less
		}
		switch {
		case len(th.now) == 0:
			if found < 0 {
				return 0, miss
			}
			return found, hit
		case at-i >= limit:
			return 0, miss
		case at == len(t.b):
			if !t.final {
				return 0, more
			}
			if found < 0 {
				return 0, miss
			}
			return found, hit
		}
		th.advance(m.prog, t.b[at])
	}
}

// accepts returns the place of the first thread that has matched, and -1 where none has.
func (m *machine) accepts(list []uint32) int {
	for k, pc := range list {
		if m.prog.Inst[pc].Op == syntax.InstMatch {
			return k
		}
	}
	return -1
}

func (th *threads) advance(prog *syntax.Prog, c byte) {
	th.next = th.next[:0]
	th.step++
	for _, pc := range th.now {
		if inst := &prog.Inst[pc]; inst.MatchRune(rune(c)) {
			th.add(prog, inst.Out, &th.next)
		}
	}
	th.now, th.next = th.next, th.now
}

// add adds the threads that pc leads to without taking a byte.
func (th *threads) add(prog *syntax.Prog, pc uint32, list *[]uint32) {
	for th.seen[pc] != th.step {
		th.seen[pc] = th.step
		switch inst := &prog.Inst[pc]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			th.add(prog, inst.Out, list)
			pc = inst.Arg
		case syntax.InstCapture, syntax.InstNop:
			pc = inst.Out
		case syntax.InstFail, syntax.InstEmptyWidth: // the generator lets no assertion through
			return
		default:
			*list = append(*list, pc)
			return
		}
	}
}
