package files

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A rule is one line of a .gitignore file.
type rule struct {
	negated  bool   // "!": what it matches is not ignored
	dirOnly  bool   // a "/" behind: matches directories alone
	baseOnly bool   // no "/" elsewhere: matches the name, at any depth
	literal  string // the only name, or path below the directory of the file, that it matches; "" where it has a glob
	glob     *regexp.Regexp
}

// A ruleSet is one file of rules. Git asks the last rule first.
type ruleSet struct {
	dir   string // the directory whose contents it rules
	rules []rule
}

// maxRulesLen is the longest file of rules that is read, in bytes.
const maxRulesLen = 1 << 20

// parseRules reads the text of a .gitignore file that lies in dir.
func parseRules(dir string, b []byte) *ruleSet {
	set := &ruleSet{dir: dir}
	text := strings.TrimPrefix(string(b), "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if r, ok := parseRule(strings.TrimSuffix(line, "\r")); ok {
			set.rules = append(set.rules, r)
		}
	}
	return set
}

// parseRule reads one line; ok is false where it is empty, a comment, or can match nothing.
func parseRule(line string) (r rule, ok bool) {
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	p := trimSpaces(line)
	p, r.negated = strings.CutPrefix(p, "!")
	p, r.dirOnly = strings.CutSuffix(p, "/")
	r.baseOnly = !strings.Contains(p, "/")
	p = strings.TrimPrefix(p, "/")
	if p == "" {
		return rule{}, false
	}
	if !strings.ContainsAny(p, `*?[\`) {
		r.literal = p
		return r, true
	}
	r.glob, ok = compileGlob(p)
	return r, ok
}

// trimSpaces drops the spaces at the end of a line, but not one behind a "\".
func trimSpaces(s string) string {
	end := len(strings.TrimRight(s, " "))
	slashes := end - len(strings.TrimRight(s[:end], `\`))
	if slashes%2 == 1 && end < len(s) {
		end++
	}
	return s[:end]
}

// matches reports whether r matches the whole of name.
func (r *rule) matches(name string) bool {
	if r.glob == nil {
		return name == r.literal
	}
	return r.glob.MatchString(latin(name))
}

// decide says whether a rule of s speaks about path, which lies below s.dir, and whether it is then ignored.
func (s *ruleSet) decide(path string, isDir bool) (ignored, decided bool) {
	rel := path
	if s.dir != "" {
		rel = path[len(s.dir)+1:]
	}
	base := baseOf(rel)
	for i := len(s.rules) - 1; i >= 0; i-- {
		r := &s.rules[i]
		if r.dirOnly && !isDir {
			continue
		}
		name := rel
		if r.baseOnly {
			name = base
		}
		if r.matches(name) {
			return !r.negated, true
		}
	}
	return false, false
}

// A rulesIn are the rules for what lies in a directory, the strongest last.
type rulesIn struct {
	sets    []*ruleSet
	ignored bool // the directory is ignored, and so is all in it: Git never looks into one
}

// ignores reports whether a path in the directory, or below one that Git does not look into, is ignored. A .git never is.
func (r rulesIn) ignores(path string, isDir bool) bool {
	if inGit(path) {
		return false
	}
	if r.ignored {
		return true
	}
	for i := len(r.sets) - 1; i >= 0; i-- {
		if ignored, decided := r.sets[i].decide(path, isDir); decided {
			return ignored
		}
	}
	return false
}

// below returns the rules for what lies in dir, which r holds for: r, and the rules of dir. Like Git it reads no rules through a
// symbolic link.
func (r rulesIn) below(root *os.Root, dir string) rulesIn {
	if r.ignored || inGit(dir) {
		return r
	}
	names := []string{".gitignore"}
	if dir == "" {
		names = []string{".git/info/exclude", ".gitignore"}
	}
	for _, name := range names {
		if b, err := ReadRegular(root, join(dir, name), maxRulesLen); err == nil {
			r.sets = append(r.sets[:len(r.sets):len(r.sets)], parseRules(dir, b))
		}
	}
	return r
}

// A rulesAbove tells what the rules of .gitignore files say of paths as they stand now, as a walk would.
type rulesAbove struct {
	root *os.Root
	dirs map[string]rulesIn
}

// ignores reports whether a path is ignored.
func (r *rulesAbove) ignores(path string, isDir bool) bool {
	return r.dir(parentOf(path)).ignores(path, isDir)
}

func (r *rulesAbove) dir(path string) rulesIn {
	d, ok := r.dirs[path]
	if ok {
		return d
	}
	if path != "" {
		d = r.dir(parentOf(path))
		d.ignored = d.ignores(path, true)
	}
	d = d.below(r.root, path)
	if r.dirs == nil {
		r.dirs = make(map[string]rulesIn)
	}
	r.dirs[path] = d
	return d
}

// forget is called where a path was touched: rules may have changed.
func (r *rulesAbove) forget(path string) {
	if base := baseOf(path); base == ".gitignore" || base == "exclude" {
		r.dirs = nil
	}
}

// latin is s with each byte as a character, for Git matches bytes, and expressions match characters.
func latin(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	out := make([]rune, len(s))
	for i := range out {
		out[i] = rune(s[i])
	}
	return string(out)
}

// compileGlob compiles a pattern as Git's wildmatch reads it with WM_PATHNAME: "*", "?" and classes never match "/",
// "**" does between slashes, "\" takes the next byte as it stands. ok is false for a pattern that is broken: it matches nothing.
func compileGlob(p string) (re *regexp.Regexp, ok bool) {
	g := &globber{p: p}
	g.out.WriteString(`(?s)\A`)
	for g.at < len(p) && !g.broken {
		g.next()
	}
	if g.out.WriteString(`\z`); g.broken {
		return nil, false
	}
	re, err := regexp.Compile(g.out.String())
	return re, err == nil // which no pattern that the size of a file allows is too long for
}

// A globber writes an expression for a pattern. All bytes in it are characters.
type globber struct {
	p      string
	at     int // what is next in p
	out    strings.Builder
	broken bool
}

// take returns the next byte; where there is none the pattern is broken.
func (g *globber) take() (c byte) {
	if g.at == len(g.p) {
		g.broken = true
		return 0
	}
	g.at++
	return g.p[g.at-1]
}

func (g *globber) next() {
	switch c := g.take(); c {
	case '*':
		g.at--
		g.stars()
	case '?':
		g.out.WriteString(`[^/]`)
	case '[':
		g.class()
	case '\\':
		g.literal(g.take())
	default:
		g.literal(c)
	}
}

func (g *globber) literal(c byte) { fmt.Fprintf(&g.out, `\x{%x}`, c) }

// stars takes a run of "*".
func (g *globber) stars() {
	from := g.at
	rest := strings.TrimLeft(g.p[from:], "*")
	g.at = len(g.p) - len(rest)
	// Git compares the literal beginning of a pattern first and compiles the rest alone, so that "x**/y" is bounded too.
	begins := from == strings.IndexAny(g.p, `*?[\`) || g.p[from-1] == '/'
	bounded := begins && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
	switch {
	case g.at-from < 2 || !bounded:
		g.out.WriteString(`[^/]*`)
	case rest != "" && rest[0] == '/': // which may stand for nothing at all, neither directories nor the slash
		g.at++
		g.out.WriteString(`(?:.*/)?`)
	default:
		g.out.WriteString(`.*`)
	}
}

// A byteSet is a bracket expression.
type byteSet [256]bool

// class takes the bracket expression behind its "[". One without an end, or with an unknown class, breaks the pattern.
func (g *globber) class() {
	var set byteSet
	negated := g.at < len(g.p) && (g.p[g.at] == '!' || g.p[g.at] == '^')
	if negated {
		g.at++
	}
	var prev byte // the byte before a "-", 0 where a range cannot begin there
	for first := true; ; first = false {
		c := g.take()
		if g.broken || c == ']' && !first {
			break
		}
		prev = g.classItem(&set, c, prev)
	}
	var members strings.Builder
	for b := range 256 {
		if set[b] != negated && b != '/' {
			fmt.Fprintf(&members, `\x{%x}`, b)
		}
	}
	if members.Len() == 0 {
		members.WriteString(`^\x{0}-\x{10ffff}`)
	}
	fmt.Fprintf(&g.out, "[%s]", members.String())
}

// classItem adds what begins with c: an escaped byte, a range, a named class or a byte. It returns the byte that a range may
// begin with.
func (g *globber) classItem(set *byteSet, c, prev byte) byte {
	rest := g.p[g.at:]
	switch {
	case c == '-' && prev != 0 && rest != "" && rest[0] != ']':
		last := g.take()
		if last == '\\' {
			last = g.take()
		}
		for b := int(prev); b <= int(last); b++ {
			set[b] = true
		}
		return 0
	case c == '[' && strings.HasPrefix(rest, ":"):
		name, _, ends := strings.Cut(rest[1:], "]")
		if name, isClass := strings.CutSuffix(name, ":"); isClass || !ends {
			g.namedClass(set, name, isClass && ends)
			return 0
		}
	case c == '\\':
		c = g.take()
	}
	set[c] = true
	return c
}

// gitClasses are the named classes that Git has, over ASCII.
var gitClasses = strings.Fields("alnum alpha blank cntrl digit graph lower print punct space upper xdigit")

// namedClass adds the class that stands at ":name:]".
func (g *globber) namedClass(set *byteSet, name string, isWhole bool) {
	if !isWhole || !slices.Contains(gitClasses, name) {
		g.broken = true
		return
	}
	g.at += len(name) + len("::]")
	class := regexp.MustCompile("[[:" + name + ":]]")
	for b := range 128 {
		set[b] = set[b] || class.MatchString(string(rune(b)))
	}
}
