package truth

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A mode is a way of recording and replaying.
type mode string

const (
	jailed  mode = "jail"
	proxied mode = "--proxy"
)

// A program is what the generator makes of a seed, an index and a mode: always the same.
type program struct {
	seed, index uint64
	mode        mode
	language    *language
	tolerant    bool // goes on when a call fails
	acts        []*act
	exit        int
	comment     string
	arguments   []*fact // its own, by slot
	environment []*fact
	settings    []*fact
	found       []string // files of the work tree that it finds beside those that every program does
	varies      []string // "what / where", of what differs in every run
	changes     []change
}

// A want is what the documents say of a change.
type want string

const (
	caught   want = "caught"   // status 2
	noted    want = "noted"    // status 2, or a note that names it: a mask may hide it
	unseen   want = "unseen"   // nothing compares it; status 2 is no mistake
	harmless want = "harmless" // the documents call it the same: status 0
)

// A change is the one thing that another version of a program does otherwise, with its label.
type change struct {
	kind, place string
	origin      string   // where the program has what changes from
	want        want     //
	why         string   // of unseen and harmless ones
	words       []string // any of them names the change
	apply       func()
}

// A generator holds what is being made.
type generator struct {
	*program
	r     *rand.Rand
	vary  *source
	count int
}

// generate makes a program. Of three, two say the same in every run; the third has something that differs.
func generate(seed, index uint64, m mode, with []*language) *program {
	r := rand.New(rand.NewPCG(seed, index))
	p := &program{seed: seed, index: index, mode: m, language: pick(r, with), tolerant: r.IntN(2) == 0}
	g := &generator{program: p, r: r}
	if index%3 == 2 {
		g.chooseSource()
	}
	builders := g.builders()
	if m == proxied { // a replay of a program that asks nothing through the proxy compares nothing
		pick(r, []func(){g.ask, g.http})()
	}
	for range 3 + r.IntN(3) {
		pick(r, builders)()
	}
	g.closeProgram()
	return p
}

// chooseSource takes one that the program's language has; the index decides, so that all have their turn.
func (g *generator) chooseSource() {
	var have []source
	for _, s := range sources {
		if (s.in == nil || s.in == g.language) && (g.mode == jailed || !strings.HasPrefix(s.kind, "child")) {
			have = append(have, s)
		}
	}
	g.vary = &have[int(g.index/3)%len(have)]
}

func (g *generator) builders() []func() {
	all := []func(){g.ask, g.ask, g.ask, g.http, g.http, g.say, g.complain, g.writeFile, g.writeFile, g.treeAct, g.together, g.twoHosts, g.twoModels, g.embed, g.rareFile}
	if g.mode == jailed {
		all = append(all, g.child, g.child, g.mcp, g.mcp, g.netAct, g.interpreter, g.daemon, g.threads, g.twoChildren)
	}
	return all
}

// closeProgram adds what every program has: a line that may hold what differs, changes that change nothing, an exit status.
func (g *generator) closeProgram() {
	if g.vary != nil && len(g.varies) == 0 {
		places := []func(){g.say, g.ask, g.writeFile}
		for len(g.varies) == 0 {
			pick(g.r, places)()
		}
	}
	g.same("comment in the source", "program", "the program does the same", func() { g.comment = "another comment" })
	g.unseen("sleep", "program", "how long a program waits is no input of it", func() {
		g.acts = append([]*act{{name: "rest", in: object{{"ms", 3}}}}, g.acts...)
	})
	g.unseen("file that is read without a use", "program", "reads are not recorded", func() {
		g.acts = append([]*act{{name: "look", in: object{{"root", "tree"}, {"name", "a.txt"}}}}, g.acts...)
	})
	if g.r.IntN(3) == 0 {
		g.exit = 3 + g.r.IntN(4)
	}
	end := g.add("finish", object{{"code", g.exit}})
	g.structural("exit status of the program", "exit", caught, func() { g.exit += 10; end.in.set("code", g.exit) }, "exit", fmt.Sprint(g.exit+10))
}

// add puts an act behind the others.
func (g *generator) add(name string, in object) *act {
	a := &act{name: name, in: in}
	g.acts = append(g.acts, a)
	return a
}

// bind has a later line say what a came to, so that answers matter.
func (g *generator) bind(a *act) {
	g.count++
	a.bind = variable(fmt.Sprintf("v%d", g.count))
	g.add("say", object{{"text", text{"got: ", a.bind}}})
}

// fresh is base with a number that no other has.
func (g *generator) fresh(base string) string {
	g.count++
	return fmt.Sprintf("%s%d", base, g.count)
}

// structural is a change of another thing than a constant; words name it. What is unseen so is outside the jail.
func (g *generator) structural(kind, place string, w want, apply func(), words ...string) {
	c := change{kind: kind, place: place, origin: inSource, want: w, words: words, apply: apply}
	if w == unseen {
		c.why = unwatched
	}
	g.changes = append(g.changes, c)
}

func (g *generator) unseen(kind, place, why string, apply func()) {
	g.changes = append(g.changes, change{kind: kind, place: place, origin: inSource, want: unseen, why: why, apply: apply})
}

func (g *generator) same(kind, place, why string, apply func()) {
	g.changes = append(g.changes, change{kind: kind, place: place, origin: inSource, want: harmless, why: why, apply: apply})
}

// dropped and added are the two changes that every act can have as a whole.
func (g *generator) dropped(a *act, kind, place string, w want, words ...string) {
	g.structural(kind+" dropped", place, w, func() { g.acts = without(g.acts, a) }, words...)
}

func (g *generator) twice(a *act, kind, place string, w want, words ...string) {
	g.structural(kind+" added", place, w, func() {
		g.acts = slices.Insert(g.acts, slices.Index(g.acts, a), &act{name: a.name, in: a.in})
	}, words...)
}

func (g *generator) swapped(a, b *act, kind, place string, w want, words ...string) {
	g.structural(kind, place, w, func() {
		i, j := slices.Index(g.acts, a), slices.Index(g.acts, b)
		g.acts[i], g.acts[j] = b, a
	}, words...)
}

func without(all []*act, a *act) []*act {
	return slices.DeleteFunc(slices.Clone(all), func(b *act) bool { return a == b })
}

// sentence is a text for a place, with a constant in it and, in a program that has something that differs, sometimes that.
// words name the place in a verdict.
func (g *generator) sentence(place string, words ...string) text {
	f := g.formFor(place)
	c := g.constant(f, place, words)
	before, after, _ := strings.Cut(f.around, "%s")
	t := text{pick(g.r, []string{"the report ", "a list ", "all orders ", "tidy up "}) + before, c, after}
	if !inBodies[f.kind] && g.varied(place, true) {
		t = append(t, ", run of ", &fact{call: g.vary.call})
	}
	return t
}

// name is a constant that can stand in a path or a host's name.
func (g *generator) name(before, place, after string, words ...string) text {
	var can []form
	for _, f := range forms {
		if f.plain && (place != "DNS name" || f.kind == "number" || f.kind == "word" || f.kind == "hex digest") {
			can = append(can, f)
		}
	}
	t := text{before, g.constant(pick(g.r, can), place, words)}
	if strings.HasPrefix(place, "name of") && g.varied(place, false) {
		t = append(t, "-", &fact{call: g.vary.call})
	}
	return append(t, after)
}

// formFor picks a form that place can hold.
func (g *generator) formFor(place string) form {
	for {
		f := pick(g.r, forms)
		if !strings.Contains(place, "header") || !inBodies[f.kind] {
			return f
		}
	}
}

// inBodies are the kinds of constants that a header cannot hold, or loses.
var inBodies = map[string]bool{"letter beyond ASCII": true, "space": true, "line end": true, "tab": true, "byte order mark": true, "trailing blank": true}

// constant is one of form f with the change of it.
func (g *generator) constant(f form, place string, words []string) *fact {
	was, now := f.pair(g.r)
	c := &fact{value: was, origin: inSource}
	if g.r.IntN(4) == 0 {
		g.giveOrigin(c)
	}
	ch := change{kind: f.kind, place: place, origin: c.origin, words: words, apply: func() { c.value = now }}
	ch.want, ch.why = labelOf(g.mode, place, f)
	if len(now) > 3 {
		ch.words = append([]string{now}, words...)
	}
	g.changes = append(g.changes, ch)
	return c
}

func (g *generator) giveOrigin(c *fact) {
	c.origin = pick(g.r, []string{inArguments, inEnvironment, inSettings})
	slots := map[string]*[]*fact{inArguments: &g.arguments, inEnvironment: &g.environment, inSettings: &g.settings}[c.origin]
	c.slot = len(*slots)
	*slots = append(*slots, c)
}

// varied reports whether what differs in every run comes here too. Names take only what can be one.
func (g *generator) varied(place string, any bool) bool {
	if g.vary == nil || g.vary.call == "" || len(g.varies) == 2 || g.r.IntN(2) == 0 || !varying[strings.Split(place, " in ")[0]] {
		return false
	}
	if !any && !slices.Contains([]string{"UUID 4", "UUID 1", "PID", "random integer", "random hex", "temporary name", "child: mktemp -u", "time, Unix ms"}, g.vary.kind) {
		return false
	}
	g.varies = append(g.varies, g.vary.kind+" / "+place)
	return true
}

// varying are the places that get what differs in every run.
var varying = map[string]bool{"prompt": true, "tool result": true, "header": true, "header of a model call": true, "URL query": true, "JSON body": true,
	"stdout": true, "stderr": true, "file": true, "name of a file": true, "child's argument": true, "MCP argument": true}
