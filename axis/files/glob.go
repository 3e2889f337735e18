package files

import "strings"

// A glob is a pattern of .gitignore, compiled. It runs as a non-deterministic automaton: time is at most the product of
// the lengths of pattern and name, whatever the pattern.
type glob struct {
	toks  []token
	never bool // the pattern is broken and matches nothing
}

// A token matches one byte, or, where it loops, any number of them.
type token struct {
	class *[4]uint64 // the bytes that it takes
	loop  bool       // "*" and "**": stays as long as it likes, may take nothing
	skip  int        // where not 0: takes nothing, and may jump over as many tokens in all
}

func (t *token) takes(c byte) bool { return t.class[c>>6]&(1<<(c&63)) != 0 }

// The classes of a jump, of "**", and of "*" and "?".
var (
	noByte  = &[4]uint64{}
	anyByte = func() *[4]uint64 { c := &[4]uint64{}; invert(c); return c }()
	noSlash = func() *[4]uint64 { c := *anyByte; c['/'>>6] &^= 1 << ('/' & 63); return &c }()
)

func invert(c *[4]uint64) {
	for i := range c {
		c[i] = ^c[i]
	}
}

func set(c *[4]uint64, b byte) { c[b>>6] |= 1 << (b & 63) }

// compileGlob compiles a pattern as Git's wildmatch reads it with WM_PATHNAME: "*", "?" and classes never match "/",
// "**" does between slashes, "\" takes the next byte as it stands.
func compileGlob(p string) *glob {
	g := &glob{}
	for i := 0; i < len(p); {
		switch p[i] {
		case '*':
			i = g.stars(p, i)
		case '?':
			g.toks = append(g.toks, token{class: noSlash})
			i++
		case '[':
			class, next := parseClass(p, i+1)
			if class == nil {
				return &glob{never: true}
			}
			g.toks = append(g.toks, token{class: class})
			i = next
		case '\\':
			if i++; i == len(p) {
				return &glob{never: true}
			}
			fallthrough
		default:
			g.literal(p[i])
			i++
		}
	}
	return g
}

func (g *glob) literal(b byte) {
	c := &[4]uint64{}
	set(c, b)
	g.toks = append(g.toks, token{class: c})
}

// stars compiles the run of "*" at i and returns the index behind it.
func (g *glob) stars(p string, i int) int {
	end := i
	for end < len(p) && p[end] == '*' {
		end++
	}
	rest := p[end:]
	// Git compares the literal beginning of a pattern first and compiles the rest alone, so that "x**/y" is bounded too.
	begins := i == strings.IndexAny(p, `*?[\`) || p[i-1] == '/'
	bounded := begins && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
	if end-i < 2 || !bounded {
		g.toks = append(g.toks, token{class: noSlash, loop: true})
		return end
	}
	if rest != "" && rest[0] == '/' {
		// "**/" may stand for nothing at all, neither directories nor the slash: the jump is over itself and both.
		g.toks = append(g.toks, token{class: noByte, skip: 3})
	}
	g.toks = append(g.toks, token{class: anyByte, loop: true})
	return end
}

// match reports whether g matches the whole of name.
func (g *glob) match(name string) bool {
	if g.never {
		return false
	}
	n := len(g.toks)
	cur, next := make([]bool, n+1), make([]bool, n+1)
	g.reach(cur, 0)
	for i := 0; i < len(name); i++ {
		clear(next)
		live := false
		for s := range n {
			if !cur[s] || !g.toks[s].takes(name[i]) {
				continue
			}
			live = true
			if g.toks[s].loop {
				g.reach(next, s)
			} else {
				g.reach(next, s+1)
			}
		}
		if !live {
			return false
		}
		cur, next = next, cur
	}
	return cur[n]
}

// reach marks state s and every state that follows it without taking a byte.
func (g *glob) reach(states []bool, s int) {
	if states[s] {
		return
	}
	states[s] = true
	if s == len(g.toks) {
		return
	}
	switch t := &g.toks[s]; {
	case t.skip > 0:
		g.reach(states, s+1)
		g.reach(states, s+t.skip)
	case t.loop:
		g.reach(states, s+1)
	}
}
