package fidelity

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/fidelity/internal/align"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A place says whether a file gates, and which note names it where it does not.
type place uint8

const (
	workTree   place = iota // gates
	gitOwn                  // Git's bookkeeping
	javaOwn                 // what a Java VM counts of itself, in moments of a clock that no replay gives it again
	agentOwn                // what an agent logs of itself (LaneOptions.AgentFiles)
	compiled                // what a runtime keeps of sources that it compiled: their times, which another checkout has not; memory that nobody set
	gitIgnored              // by Git, inside the work tree
	outside                 // of the work tree
)

// placeOf returns the place of a path of the tape. One that is watched, or below a watched one, gates wherever it lies.
func placeOf(p string, watch []string) place {
	switch {
	case watched(p, watch):
		return workTree
	case bookkeeping(p):
		return gitOwn
	case javaCounters(p):
		return javaOwn
	case compiledSource(p):
		return compiled
	case p == "~", p == "$TMP", strings.HasPrefix(p, "~/"), strings.HasPrefix(p, "$TMP/"), strings.HasPrefix(p, "/"):
		return outside
	}
	return workTree
}

// compiledSource reports whether a path is that of a module that Python compiled, with a number behind it while it is written, or of what Node
// compiled (module.enableCompileCache, NODE_COMPILE_CACHE): node-compile-cache/v22.23.3-x64-9de703df-0/0097c7bb.
func compiledSource(p string) bool {
	dir, base := path.Split(p)
	switch dir = path.Base(dir); {
	case strings.Contains(base, ".pyc"):
		return dir == "__pycache__"
	case len(base) == 8:
		return strings.HasPrefix(dir, "v") && nodeCompiled.MatchString(dir+"/"+base)
	}
	return false
}

var nodeCompiled = lazyregexp.New(`^v\d+\.\d+\.\d+[^/]*-\w+-[0-9a-f]{8}-\d+/[0-9a-f]{8}$`)

// bookkeeping reports whether a path is one that Git writes by itself below a .git. Its index holds the times of files and
// its commits those of their making, and so what names commits differs from run to run too: HEAD, refs, logs. What people
// and programs write there to change what Git does is none: hooks, config, info; of a submodule or worktree as well.
func bookkeeping(p string) bool {
	if !strings.Contains(p, ".git/") {
		return false
	}
	parts := strings.Split(p, "/")
	git := slices.Index(parts, ".git")
	if git < 0 || git == len(parts)-1 { // the last one is a file that names a directory elsewhere
		return false
	}
	for i, part := range parts[git+1:] {
		switch part {
		case "hooks", "config", "config.worktree":
			return false
		case "info":
			return slices.Equal(parts[git+2+i:], []string{"refs"}) // names commits
		case "index", "logs", "objects", "refs":
			return true
		}
	}
	return true
}

// javaCounters reports whether a path is that of the memory which a Java VM shares with jstat, below /tmp whatever TMPDIR says.
func javaCounters(p string) bool {
	if !strings.Contains(p, "hsperfdata_") {
		return false
	}
	for _, pattern := range []string{"$TMP/hsperfdata_*/*", "/tmp/hsperfdata_*/*"} {
		if matched, _ := path.Match(pattern, p); matched {
			return true
		}
	}
	return false
}

// watched reports whether the path is one of those watched, or below one.
func watched(p string, watch []string) bool {
	for _, w := range watch {
		w = strings.TrimSuffix(w, "/")
		if matched, err := path.Match(w, p); p == w || strings.HasPrefix(p, w+"/") || err == nil && matched {
			return true
		}
	}
	return false
}

func (o *LaneOptions) placeOfPath(path string) place {
	p := placeOf(path, o.Watch)
	if p == outside && watched(path, o.AgentFiles) {
		return agentOwn
	}
	return p
}

// placeOf returns the place of the file that a record is about. What is about none stands in the work tree, and so does what is
// no bookkeeping of Git's where both runs were given the same time and randomness.
func (o *LaneOptions) placeOf(k tape.Kind) place {
	f := tape.FileOf(k)
	if f == nil {
		return workTree
	}
	p := o.placeOfPath(f.Path)
	if o.Exact && o.OwnTimes.IsZero() && p == outside {
		return workTree
	}
	if !o.Exact && p == workTree && tape.FieldValue(f.Extra, "ignored") != nil && !watched(f.Path, o.Watch) {
		return gitIgnored
	}
	return p
}

// notedPaths is how many paths a note names.
const notedPaths = 5

// A fileLane is the files of the work tree, and those watched.
type fileLane struct {
	*laneCompare
	lane  lanePair
	pairs []pair // that are not alike
	now   differ
}

// pairUp finds what differs between both sides, path by path. It reads what is compared and may go on beside other lanes. What came in one
// order on both sides is paired as it came: sorting all paths of a long tape takes longer than to load it. A path of which that leaves
// a record over is looked at by itself, with all of its records.
func (c *fileLane) pairUp(p lanePair) {
	c.lane = p
	sides := [2][]*entry{p.a, p.b}
	atOnce(func(s Side) { identifyFiles(sides[s]) })
	ms := align.ByOrder(p.a, p.b, func(e *entry) uint64 { return e.id })
	var rest [2][]*entry
	open := unpairedPaths(p, ms)
	if len(open) > 0 {
		atOnce(func(s Side) { rest[s] = ofPaths(sides[s], open) })
	}
	for _, m := range ms {
		if pr := (pair{a: p.a[m.I], b: p.b[m.J]}); !c.alike(pr) && !open[pr.path()] {
			c.pairs = append(c.pairs, pr)
		}
	}
	pairs, _ := pairUp(rest[Recorded], rest[Replay], &pairRules{likely: []func(tape.Kind) string{likelyFile}})
	c.pairs = append(c.pairs, slices.DeleteFunc(pairs, c.alike)...)
}

// unpairedPaths are the paths of the records that are in no match.
func unpairedPaths(p lanePair, ms []align.Match) map[string]bool {
	paths := make(map[string]bool)
	i, j := 0, 0
	for _, m := range append(ms, align.Match{I: len(p.a), J: len(p.b)}) {
		for ; i < m.I; i++ {
			paths[tape.FileOf(p.a[i].rec.Kind).Path] = true
		}
		for ; j < m.J; j++ {
			paths[tape.FileOf(p.b[j].rec.Kind).Path] = true
		}
		i, j = m.I+1, m.J+1
	}
	return paths
}

// ofPaths are the records of some paths, sorted by path, those of one as they came.
func ofPaths(es []*entry, paths map[string]bool) (out []*entry) {
	for _, e := range es {
		if paths[tape.FileOf(e.rec.Kind).Path] {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b *entry) int {
		return cmp.Compare(tape.FileOf(a.rec.Kind).Path, tape.FileOf(b.rec.Kind).Path)
	})
	return out
}

// compare compares what pairUp found, sorted by path.
func (c *fileLane) compare() {
	slices.SortStableFunc(c.pairs, func(a, b pair) int { return cmp.Compare(a.place(), b.place()) })
	var before string
	var at int
	for _, pr := range c.withoutPassing() {
		behind := at + 1
		if at = c.end(); pr.b != nil {
			at = pr.b.at
		}
		if pr.place() == before+indexOfLog {
			at = behind
		}
		before = pr.place()
		c.pair(laneFiles, pr, at)
	}
}

// identifyFiles gives records ids that hold for one content only, and a hash of all that compares of them but for times: two that share it
// are alike, and need not be looked at again, far away in memory.
func identifyFiles(es []*entry) {
	type stated struct {
		id    uint64
		state cas.Digest
	}
	type whole struct {
		id                    uint64
		mode, attrs           string
		hash, digest, content cas.Digest
	}
	for _, e := range es {
		f := tape.FileOf(e.rec.Kind)
		e.id = maphash.Comparable(seed, stated{e.id, stateOf(f)})
		if len(e.rec.Raw) == 0 {
			attrs := string(tape.FieldValue(f.Extra, attrsKey))
			e.whole = maphash.Comparable(seed, whole{e.id, f.Mode, attrs, f.ContentHash, f.ContentDigest, hashOf(f.Content)})
		}
	}
}

// alike reports whether nothing differs in a pair, and nothing is hidden by a mask.
func (c *fileLane) alike(p pair) bool {
	if p.a == nil || p.b == nil {
		return false
	}
	if c.mode == Semantic && p.a.whole == p.b.whole && p.a.whole != 0 {
		return true
	}
	if c.skipped(p) {
		return true
	}
	c.begin(&c.now, p)
	return len(c.now.record(p.a.rec, p.b.rec)) == 0 && len(c.now.facets) == 0
}

// path is that of the file that a pair is about.
func (p pair) path() string { return tape.FileOf(cmp.Or(p.a, p.b).rec.Kind).Path }

// indexOfLog is how the name of the index ends that SQLite keeps of a log of changes (DATABASE-wal), and makes again out of that.
const indexOfLog = "-shm"

// place is the path by which it is told of: the index of a log comes behind it.
func (p pair) place() string {
	path := p.path()
	if database, ok := strings.CutSuffix(path, indexOfLog); ok {
		return database + "-wal" + indexOfLog
	}
	return path
}

// Files are looked at when a model is asked and at the end. A program that writes on its own while a model answers may have
// come to another of its steps by then: what one run shows between two looks the other may not. So a state of a file that
// only one side shows, and that in the end made no difference, is a note. Two sides that show different states are not alike, nor
// are two that were given the same time and randomness, where one shows a state that a call ended: no chance decided that it did.

// A filePath is what both sides say of one path.
type filePath struct {
	sides [2]fileTrace
	alone [2]int // records without a counterpart
	whole bool   // chance did not decide that one of those is there
}

// A fileTrace is what the records of one side make of a path.
type fileTrace struct {
	found, left fileEnd
	seen        bool
}

// A fileEnd is what stands at a path, before or after records.
type fileEnd struct {
	state cas.Digest // zero for nothing
	mode  string     // of what was written, or of a directory or FIFO that is gone
}

func (t *fileTrace) add(k tape.Kind) {
	f := tape.FileOf(k)
	_, gone := k.(*tape.FileDelete)
	if !t.seen {
		t.seen = true
		if f.Before != nil {
			t.found.state = f.Before.Hash
		} else if gone {
			t.found.mode = f.Mode // of a directory or FIFO, which has no content
		}
	}
	t.left = fileEnd{}
	if !gone {
		t.left = fileEnd{stateOf(f), f.Mode}
	}
}

// nothing reports whether a path that was not there is not there in the end either.
func (t *fileTrace) nothing() bool { return t.found == fileEnd{} && t.left == fileEnd{} }

// passing reports whether the records that stand alone are steps on the way that one side alone shows.
func (p *filePath) passing() bool {
	return (p.alone[Recorded] == 0) != (p.alone[Replay] == 0) && p.sides[Recorded].left == p.sides[Replay].left &&
		(p.sides[Recorded].seen && p.sides[Replay].seen || p.sides[Recorded].nothing() && p.sides[Replay].nothing())
}

// withoutPassing takes out of the pairs the steps that one side alone shows, and notes their paths.
func (c *fileLane) withoutPassing() []pair {
	paths := make(map[string]*filePath)
	for _, p := range c.pairs {
		for s, e := range []*entry{p.a, p.b} {
			if other := []*entry{p.b, p.a}[s]; e != nil && other == nil {
				path := tape.FileOf(e.rec.Kind).Path
				paths[path] = cmp.Or(paths[path], new(filePath))
				paths[path].alone[s]++
				paths[path].whole = paths[path].whole || tape.FieldValue(tape.FileOf(e.rec.Kind).Extra, wholeKey) != nil
			}
		}
	}
	if len(paths) == 0 {
		return c.pairs
	}
	for s, es := range [][]*entry{c.lane.a, c.lane.b} {
		for _, e := range es {
			if p := paths[tape.FileOf(e.rec.Kind).Path]; p != nil {
				p.sides[s].add(e.rec.Kind)
			}
		}
	}
	maps.DeleteFunc(paths, func(_ string, p *filePath) bool { return !p.passing() || c.o.Exact && p.whole })
	for _, s := range []Side{Recorded, Replay} {
		var on []string
		for path, p := range paths {
			if p.alone[s] > 0 {
				on = append(on, path)
			}
		}
		if slices.Sort(on); len(on) > 0 {
			c.note("on the way, between two model calls, files stood otherwise in the %s alone, with the same end in both: %s",
				c.differ.names.of(s), list(on, notedPaths))
		}
	}
	return slices.DeleteFunc(c.pairs, func(p pair) bool {
		return (p.a == nil || p.b == nil) && paths[p.path()] != nil
	})
}

// compareLong compares what the runs left in files that are too large for a tape.
func (c *fileLane) compareLong() {
	was, now := c.o.LongFiles[Recorded], c.o.LongFiles[Replay]
	for _, path := range sortedKeys(was, now) {
		if was[path] == now[path] {
			continue
		}
		if p := c.o.placeOfPath(path); p != workTree && (!c.o.Exact || p == agentOwn) {
			c.note("files outside the work tree that are too large to keep differ, which does not gate: %s", path)
			continue
		}
		d := Divergence{
			Category: FileWriteHash, Lane: laneFiles, Recorded: cmp.Or(was[path], "nothing"), Replay: cmp.Or(now[path], "nothing"),
			Message: titleOf(FileWriteHash) + " (" + path + ", which is too large to keep)",
		}
		c.place(placed{at: c.end(), Divergence: d})
	}
}

// maxPaths is how many paths a message names.
const maxPaths = 50

// outcome is what can be seen of a run from outside.
type outcome struct {
	files map[string]fileState // by path
	fresh map[string]bool      // paths at which nothing was found
	exit  *int                 // of the last process; nil without one
	calls int
}

// fileState is what became of a file.
type fileState struct {
	deleted bool
	hash    cas.Digest // of a written one
}

func compareOutcome(recorded, replay Records, names sideNames) (*Report, error) {
	r := newReport(Outcome)
	r.names = names
	seen := [2]*outcome{newOutcome(), newOutcome()}
	err := readBoth(names, recorded, replay, func(s Side, rec *tape.Record) {
		r.count(s)
		seen[s].add(rec.Kind)
	})
	if err != nil {
		return nil, err
	}
	r.add(seen[Recorded].diff(seen[Replay], names)...)
	r.rateOutcome()
	return r, nil
}

func newOutcome() *outcome {
	return &outcome{files: make(map[string]fileState), fresh: make(map[string]bool)}
}

func (o *outcome) add(k tape.Kind) {
	switch k := k.(type) {
	case *tape.FileWrite:
		o.files[k.Path] = fileState{hash: k.ContentHash}
	case *tape.FileDelete:
		o.files[k.Path] = fileState{deleted: true}
	case *tape.ProcessSpawn:
		o.exit = &k.ExitCode
	case *tape.LLMCall:
		o.calls++
	}
}

// diff returns a divergence for each facet that differs.
func (o *outcome) diff(replay *outcome, names sideNames) []Divergence {
	var out []Divergence
	if paths := o.differingPaths(replay, names); len(paths) > 0 {
		out = append(out, Divergence{Category: OutcomeFSDiff, Message: "files differ: " + list(paths, maxPaths)})
	}
	if was, now := showExit(o.exit), showExit(replay.exit); was != now {
		out = append(out, Divergence{Category: OutcomeExitCode, Message: "exit code" + names.versus(was, now)})
	}
	if o.calls != replay.calls {
		message := "model calls" + names.versus(show(o.calls), show(replay.calls))
		out = append(out, Divergence{Category: OutcomeLLMCallCount, Message: message})
	}
	return out
}

func showExit(code *int) string {
	if code == nil {
		return "no process"
	}
	return show(*code)
}

// differingPaths returns the paths whose final states differ, sorted, each with what became of it.
func (o *outcome) differingPaths(replay *outcome, names sideNames) []string {
	var out []string
	for _, path := range sortedKeys(o.files, replay.files) {
		was, inA := o.files[path]
		now, inB := replay.files[path]
		if inA != inB || was != now {
			out = append(out, fmt.Sprintf("%s (%s %s, %s %s)", path, names.of(Recorded), was.show(inA), names.of(Replay), now.show(inB)))
		}
	}
	return out
}

// sortedKeys are the keys of either map.
func sortedKeys[V any](a, b map[string]V) []string {
	keys := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (s fileState) show(there bool) string {
	switch {
	case !there:
		return "untouched"
	case s.deleted:
		return "deleted"
	}
	return show(s.hash)
}

// list joins up to limit items and counts the rest.
func list(items []string, limit int) string {
	if len(items) <= limit {
		return strings.Join(items, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(items[:limit], ", "), len(items)-limit)
}

// addMasked is add with the digest after masking, where a file has one. What a run made and deleted again is untouched.
func (o *outcome) addMasked(k tape.Kind) {
	switch k := k.(type) {
	case *tape.FileWrite:
		if _, known := o.files[k.Path]; !known && k.Before == nil {
			o.fresh[k.Path] = true
		}
		o.files[k.Path] = fileState{hash: stateOf(&k.File)}
	case *tape.FileDelete:
		if o.add(k); o.fresh[k.Path] {
			delete(o.files, k.Path)
		}
	default:
		o.add(k)
	}
}

// maskFiles gives the files that differ the digests by which they compare: of their bytes with volatile facts masked and placeholders
// renumbered. A recording has none of them, for of two runs most files are the same to the byte. Where both sides have one, of another
// producer or an older recording, it stands.
func (c *comparison) maskFiles() {
	var states [2]map[uint64]bool
	atOnce(func(s Side) {
		states[s] = make(map[uint64]bool)
		for e := range c.sides[s].records(ofFile) {
			states[s][e.state] = true
		}
	})
	type held struct {
		by   [2]bool
		bare bool // a record has no digest
	}
	unlike := make(map[string]held) // paths of which one side alone has a state
	for s, e := range c.records(ofFile) {
		if !states[1-s][e.state] {
			unlike[tape.FileOf(e.rec.Kind).Path] = held{}
		}
	}
	if len(unlike) == 0 {
		return
	}
	for s, e := range c.records(ofFile) {
		f := tape.FileOf(e.rec.Kind)
		if is, ok := unlike[f.Path]; ok {
			is.by[s], is.bare = true, is.bare || f.ContentDigest.IsZero() && f.Content != nil
			unlike[f.Path] = is
		}
	}
	maps.DeleteFunc(unlike, func(_ string, is held) bool { return is != held{[2]bool{true, true}, true} })
	atOnce(func(s Side) {
		for e := range c.sides[s].records(ofFile) {
			if f := tape.FileOf(e.rec.Kind); unlike[f.Path].bare && f.Content != nil {
				x := explainer{o: c.o}                           // which counts what is read, of one side
				if b, err := x.bytes(f.Content, s); err == nil { // else the hash tells
					e.become(withDigest(e.rec.Kind, c.o.digest(b, s)))
				}
			}
		}
	})
}

// digest is that by which the bytes of a file compare.
func (o *LaneOptions) digest(b []byte, s Side) cas.Digest {
	masked, _ := o.Masks[s].Trace(scrub.Renumber(b))
	return cas.Sum(masked)
}

// withDigest is a kind that is about a file with another digest of its content.
func withDigest(k tape.Kind, d cas.Digest) tape.Kind {
	switch k := k.(type) {
	case *tape.FileRead:
		out := *k
		out.ContentDigest = d
		return &out
	case *tape.FileWrite:
		out := *k
		out.ContentDigest = d
		return &out
	}
	return k
}

// stateOf is what stands for the bytes of a file in lane mode.
func stateOf(f *tape.File) cas.Digest {
	if f.ContentDigest.IsZero() {
		return f.ContentHash
	}
	return f.ContentDigest
}

// stateHash tells apart the states of all files: maps of their paths themselves take as long as loading a long tape.
func stateHash(f *tape.File) uint64 {
	return maphash.Comparable(seed, struct {
		path  string
		state cas.Digest
	}{f.Path, stateOf(f)})
}
