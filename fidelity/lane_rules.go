package fidelity

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// notedPaths is how many paths a note names.
const notedPaths = 5

// setAside takes out of both sides what never gates, and notes it: requests that no upstream answered while recording,
// upgrades that were refused, side traffic, verdicts that one side alone asked for, Git's own files, and, unless both runs were given
// the same time and randomness, files that Git ignores and those outside the work tree.
func (c *laneCompare) setAside() {
	if c.o.Format1 {
		c.asFormat1()
	}
	c.setServersAside()
	dead := c.deadHosts()
	c.alive = dead.alive
	c.setHeldAside()
	c.setCarriersAside()
	c.setStderrAside()
	c.setUpgradesAside()
	c.setSideAside()
	c.setVerdictsAside()
	asked := make(map[string]*[2]int) // requests without an answer, by host and side
	var aside [outside + 1][2]outcome // files that do not gate, by place and side
	for s := range c.sides {
		for i := range c.sides[s].entries {
			e := &c.sides[s].entries[i]
			if e.rec == nil {
				continue
			}
			if host, ok := dead.unanswered(Side(s), e, &c.differ); ok {
				if asked[host] == nil {
					asked[host] = new([2]int)
				}
				asked[host][s]++
				e.rec = nil
			} else if p := c.placeOfKind(e.rec.Kind); p != workTree {
				aside[p][s].addMasked(e.rec.Kind)
				e.rec = nil
			}
		}
	}
	for _, host := range slices.Sorted(maps.Keys(asked)) {
		n := asked[host]
		c.note("%s: requests that no upstream answered do not gate (%d recorded, %d on replay)", host, n[0], n[1])
	}
	c.noteFiles("Git's own files", &aside[gitOwn])
	c.noteFiles("files that Git ignores", &aside[ignored])
	c.noteFiles("files outside the work tree", &aside[outside])
}

// setHeldAside takes out the recorded writes that could change nothing on the replay, and notes them.
func (c *laneCompare) setHeldAside() {
	if c.o.Held == nil {
		return
	}
	changed := make(map[string]bool) // on the replay, by path
	for _, e := range c.sides[Replay].entries {
		if e.rec == nil {
			continue
		}
		if f := tape.FileOf(e.rec.Kind); f != nil {
			changed[f.Path] = true
		}
	}
	var held []string
	for i := range c.sides[Recorded].entries {
		e := &c.sides[Recorded].entries[i]
		if e.rec == nil {
			continue
		}
		if f := tape.FileOf(e.rec.Kind); f != nil && !changed[f.Path] && c.o.Held(e.rec) {
			held = append(held, f.Path)
			e.rec = nil
		}
	}
	if len(held) > 0 {
		c.note("%s held these very bytes before the replay: writing them again changes nothing, and does not gate", list(held, notedPaths))
	}
}

// hosts says which hosts and which requests got no answer while recording.
type hosts struct {
	alive    map[string]bool // hosts that answered once
	dead     map[string]bool // hosts of plain requests that none answered
	answered map[uint64]bool // identities
	silent   map[uint64]int  // plain requests that none answered, by identity, less those that the replay has
}

func (c *laneCompare) deadHosts() *hosts {
	h := &hosts{make(map[string]bool), make(map[string]bool), make(map[uint64]bool), make(map[uint64]int)}
	for _, e := range c.sides[Recorded].entries {
		if e.rec == nil {
			continue
		}
		ex := tape.ExchangeOf(e.rec.Kind)
		if ex == nil || ex.UpgradeRefused() {
			continue
		}
		if _, plain := e.rec.Kind.(*tape.HTTPExchange); plain && ex.Status == 0 {
			h.dead[tape.HostOf(ex.URL)] = true
			h.silent[c.differ.identity(e.rec.Kind)]++
			continue
		}
		h.alive[tape.HostOf(ex.URL)] = true
		h.answered[c.differ.identity(e.rec.Kind)] = true
	}
	return h
}

// unanswered reports whether a record is a request that got no answer and so does not gate, and its host. On replay a
// request to a host that never answered fails the same way, whatever it asks; one that nothing on the tape answers gates. One
// that the program ended before it had an answer which is on the tape is the counterpart of that answer.
func (h *hosts) unanswered(s Side, e *entry, d *differ) (host string, ok bool) {
	ex := tape.ExchangeOf(e.rec.Kind)
	if ex == nil || ex.Status != 0 || s == Replay && ex.Lane == laneUnmatched {
		return "", false
	}
	host = tape.HostOf(ex.URL)
	_, plain := e.rec.Kind.(*tape.HTTPExchange)
	if s == Recorded {
		return host, plain
	}
	if !plain || h.dead[host] && !h.alive[host] {
		return host, h.dead[host] && !h.alive[host]
	}
	id := d.identity(e.rec.Kind)
	h.silent[id]--
	return host, !h.answered[id] || withdrawn(ex) && h.silent[id] >= 0
}

// files compares the files of the work tree, path by path.
func (c *laneCompare) files(p lanePair) {
	for _, es := range [][]entry{p.a, p.b} {
		for i := range es {
			es[i].id = withState(es[i].id, stateOf(tape.FileOf(es[i].rec.Kind)))
		}
	}
	all := p
	same := func(a, b *entry) { c.filePair(pair{a: a, b: b}) }
	for len(p.a) > 0 && len(p.b) > 0 && p.a[0].id == p.b[0].id { // what changed alike need not be sorted
		same(&p.a[0], &p.b[0])
		p.a, p.b = p.a[1:], p.b[1:]
	}
	for na, nb := len(p.a)-1, len(p.b)-1; na >= 0 && nb >= 0 && p.a[na].id == p.b[nb].id; na, nb = na-1, nb-1 {
		same(&p.a[na], &p.b[nb])
		p.a, p.b = p.a[:na], p.b[:nb]
	}
	sortByPath(p.a)
	sortByPath(p.b)
	pairs, _ := pairUp(p.a, p.b, &pairRules{likely: []func(tape.Kind) string{likelyFile}})
	for _, pr := range c.setPassingAside(pairs, &all) {
		c.filePair(pr)
	}
}

func (c *laneCompare) filePair(p pair) {
	at := len(c.sides[Replay].entries)
	if p.b != nil {
		at = p.b.at
	}
	c.pair(laneFiles, p, at)
	if p.a != nil && p.b != nil {
		c.barrier(p)
	}
}

// sortByPath sorts records about files by path, those of one path as they came.
func sortByPath(es []entry) {
	type keyed struct {
		path string
		entry
	}
	all := make([]keyed, len(es))
	for i := range es {
		all[i] = keyed{tape.FileOf(es[i].rec.Kind).Path, es[i]}
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.path, b.path), a.at-b.at) })
	for i := range all {
		es[i] = all[i].entry
	}
}

// withState is an identity that holds for one content only.
func withState(id uint64, state cas.Digest) uint64 {
	var h hasher
	h.SetSeed(seed)
	h.number(id)
	h.digest(state)
	return h.Sum64()
}

// barrier notes a file that changed at another place between the model calls. Where a call is missing or new that says
// nothing.
func (c *laneCompare) barrier(p pair) {
	if p.a.calls != p.b.calls && c.sides[Recorded].calls == c.sides[Replay].calls {
		c.note("%s: recorded after %d model calls, replay after %d", describe(p.a.rec.Kind), p.a.calls, p.b.calls)
	}
}

// likelyFile pairs a write with a delete of the same path, so that they read as one divergence.
func likelyFile(k tape.Kind) string {
	if _, read := k.(*tape.FileRead); read {
		return "read " + tape.FileOf(k).Path
	}
	return "change " + tape.FileOf(k).Path
}

// stateOf is what stands for the bytes of a file in lane mode.
func stateOf(f *tape.File) cas.Digest {
	if f.ContentDigest.IsZero() {
		return f.ContentHash
	}
	return f.ContentDigest
}

// addMasked is add with the digest after masking, where a file has one. What a run made and deleted again is untouched.
func (o *outcome) addMasked(k tape.Kind) {
	switch k := k.(type) {
	case *tape.FileWrite:
		_, known := o.files[k.Path]
		o.file(k.Path, fileState{hash: stateOf(&k.File)})
		if !known && k.Before == nil {
			o.fresh = append(o.fresh, k.Path)
		}
	default:
		o.add(k)
	}
}

// settle forgets what was made and deleted again. It ends the adding.
func (o *outcome) settle() {
	for _, path := range o.fresh {
		if o.files[path].deleted {
			delete(o.files, path)
		}
	}
}

// outcome folds what gates on one side.
func (c *laneCompare) outcome(s Side) *outcome {
	o := new(outcome)
	for _, e := range c.sides[s].entries {
		if e.rec != nil {
			o.addMasked(e.rec.Kind)
		}
	}
	o.settle()
	return o
}

// network compares the names that were looked up and the connections that were refused. Order and repeats do not count. What one
// side alone tried gates where both were given the same time and randomness; else a name that was looked up is a note, and so are
// a Unix socket and a connection that the replay no longer tries. So is, always, a TLS connection that was closed before a request, to a host that
// answered others: a pool opens them to spare, and has no use for them when answers come at once. A client that trusts nobody any
// more leaves requests that were never asked for.
func (c *laneCompare) network(p lanePair) {
	was, now := c.attempts(p.a), c.attempts(p.b)
	for i := range p.b {
		e := &p.b[i]
		key := c.attempt(e.rec.Kind)
		if was[key] != nil || now[key] != e {
			continue
		}
		if host := tlsHost(e.rec.Kind); c.alive[host] {
			c.note("closed on replay before a request: a TLS connection to %s, which answered others", host)
			continue
		}
		if !c.o.Exact && !isConnection(e.rec.Kind) {
			c.note("tried on replay alone: %s", describe(e.rec.Kind))
			continue
		}
		c.alone(Replay, laneNetwork, e, e.at)
	}
	for i := range p.a {
		e := &p.a[i]
		key := c.attempt(e.rec.Kind)
		if now[key] != nil || was[key] != e {
			continue
		}
		if c.o.Exact && mustTry(e.rec.Kind) {
			c.alone(Recorded, laneNetwork, e, len(c.sides[Replay].entries))
			continue
		}
		c.note("tried while recording and not on replay: %s", describe(e.rec.Kind))
	}
}

// mustTry reports whether a program that was given the same time and randomness tries the same again: it looks up the same names and
// asks for the same ports and sockets. But a pool opens connections to spare.
func mustTry(k tape.Kind) bool {
	_, spare := k.(*tape.TLSRefused)
	return !spare
}

// isConnection reports whether a program tried to reach another machine, or a port of this one.
func isConnection(k tape.Kind) bool {
	r, ok := k.(*tape.NetRefused)
	_, lookup := k.(*tape.NameLookup)
	return !lookup && (!ok || !isSocket(r))
}

// isSocket reports whether what was asked for is a Unix socket of the host's.
func isSocket(r *tape.NetRefused) bool { return strings.HasPrefix(r.Addr, "/") }

// tlsHost is the host of a refused TLS connection as it stands in URLs; "" for any other kind.
func tlsHost(k tape.Kind) string {
	t, ok := k.(*tape.TLSRefused)
	switch {
	case !ok:
		return ""
	case t.Port == 443:
		return t.Host
	}
	return net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// attempts returns the first entry of every attempt.
func (c *laneCompare) attempts(es []entry) map[string]*entry {
	out := make(map[string]*entry)
	for i := range es {
		key := c.attempt(es[i].rec.Kind)
		if out[key] == nil {
			out[key] = &es[i]
		}
	}
	return out
}

// attempt says which name was looked up or where a refused connection went, ports of the loopback masked.
func (c *laneCompare) attempt(k tape.Kind) string {
	masked := c.o.masked
	if c.o.Exact { // nothing of it differs by itself
		masked = func(s string) string { return s }
	}
	switch k := k.(type) {
	case *tape.TLSRefused:
		return "tls " + masked(net.JoinHostPort(k.Host, strconv.Itoa(k.Port)))
	case *tape.NameLookup:
		return "name " + masked(k.Host) + " " + k.Type + " " + k.Result
	case *tape.NetRefused:
		return "net " + masked(net.JoinHostPort(k.Addr, strconv.Itoa(k.Port)))
	}
	return fmt.Sprintf("%T", k)
}
