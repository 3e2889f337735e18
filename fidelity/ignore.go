package fidelity

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/made"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// ignoring takes out of both sides what never gates.
type ignoring struct {
	*comparison
	seen int64 // bytes of bodies that were read to find side traffic
}

// ignore takes out of both sides what never gates, and notes it: requests that no upstream answered while recording,
// upgrades that were refused, side traffic, verdicts that one side alone asked for, Git's own files, and, unless both runs were given
// the same time and randomness, files that Git ignores and those outside the work tree. It returns the hosts that answered while recording.
func (c *ignoring) ignore() (alive map[string]bool) {
	c.noteUnwatched()
	if c.o.Format1 {
		c.asFormat1()
	}
	c.ignoreServers()
	dead := c.deadHosts()
	c.ignoreHeld()
	c.ignoreCarriers()
	c.ignoreStderr()
	c.ignoreUpgrades()
	c.ignoreSideTraffic()
	c.ignoreVerdicts()
	var asked [2]map[string]int          // requests without an answer, by side and host
	var ignored [outside + 1][2]*outcome // files that do not gate, by place and side
	for p := range ignored {
		ignored[p] = [2]*outcome{newOutcome(), newOutcome()}
	}
	may := c.made()
	atOnce(func(s Side) {
		asked[s] = make(map[string]int)
		for e := range c.sides[s].records(ofFile | ofExchange) {
			if host, ok := dead.unanswered(s, e); ok {
				asked[s][host]++
				e.rec = nil
			} else if p := c.o.placeOf(e.rec.Kind); p != workTree && (p != outside || may == nil || may[tape.FileOf(e.rec.Kind).Path]) {
				ignored[p][s].addMasked(e.rec.Kind)
				e.rec = nil
			}
		}
	})
	for _, host := range sortedKeys(asked[Recorded], asked[Replay]) {
		c.note("%s: requests that no upstream answered do not gate (%d recorded, %d on replay)", host, asked[Recorded][host], asked[Replay][host])
	}
	c.noteFiles("Git's own files", ignored[gitOwn])
	c.noteFiles("what a Java VM counts of itself", ignored[javaOwn])
	c.noteFiles("files that an agent logs to", ignored[agentOwn])
	c.noteFiles("files that Git ignores", ignored[gitIgnored])
	c.noteFiles("what a runtime compiled", ignored[compiled])
	c.noteFiles("files outside the work tree", ignored[outside])
	return dead.alive
}

// made are the paths of the files outside the work tree that may differ for nothing, as the replay read times of its own; nil where nobody
// asks. One that came and went may have come by a moment, unless each side had something else there.
func (c *ignoring) made() map[string]bool {
	if !c.o.Exact || c.o.OwnTimes.IsZero() {
		return nil
	}
	files, traces := make(made.Files), make(map[string]*[2]fileTrace)
	for s, e := range c.records(ofFile) {
		k := tape.FileOf(e.rec.Kind)
		if k == nil || c.o.placeOfPath(k.Path) != outside {
			continue
		}
		if traces[k.Path] == nil {
			traces[k.Path] = new([2]fileTrace)
		}
		traces[k.Path][s].add(e.rec.Kind)
		c.hold(files.At(k.Path), s, cmp.Or(k.Content, k.Before))
	}
	may := files.May()
	var unlike []string
	for path, f := range files {
		if traces[path][Recorded].nothing() && traces[path][Replay].nothing() {
			switch differs := f.Differs(); {
			case !differs:
				may[path] = true
			case may[path]:
				unlike = append(unlike, path)
			}
		}
	}
	if slices.Sort(unlike); len(unlike) > 0 {
		c.note("files outside the work tree that came and went differ (%d), which does not gate: %s", len(unlike), list(unlike, notedPaths))
	}
	return may
}

// hold has a file hold what stood there on a side; nil for nothing.
func (c *ignoring) hold(f *made.File, s Side, content *tape.Payload) {
	if content == nil {
		return
	}
	var b []byte
	err := errSpent
	if content.Len <= made.Most {
		b, err = c.readFor(&c.seen, content, s)
	}
	if err != nil {
		f.HoldsUnread(int(s), content.Hash.String())
		return
	}
	if m := c.o.Masks[s]; m != nil {
		b, _ = m.Trace(b)
	}
	f.Holds(int(s), b)
}

// ignoreHeld takes out the recorded writes that could change nothing on the replay, and notes them.
func (c *ignoring) ignoreHeld() {
	if c.o.Held == nil {
		return
	}
	changed := make(map[string]bool) // on the replay, by path
	for e := range c.sides[Replay].records(ofFile) {
		if f := tape.FileOf(e.rec.Kind); f != nil {
			changed[f.Path] = true
		}
	}
	var held []string
	for e := range c.sides[Recorded].records(ofFile) {
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
	answered map[uint64]bool // identities of plain requests
	silent   map[uint64]int  // plain requests that none answered, by identity, less those that the replay has
}

func (c *ignoring) deadHosts() *hosts {
	h := &hosts{make(map[string]bool), make(map[string]bool), make(map[uint64]bool), make(map[uint64]int)}
	answered := make(map[string]bool) // URLs: many requests have one, and to parse each of them costs
	for e := range c.sides[Recorded].records(ofExchange) {
		ex := tape.ExchangeOf(e.rec.Kind)
		if ex == nil || ex.UpgradeRefused() {
			continue
		}
		_, plain := e.rec.Kind.(*tape.HTTPExchange)
		if plain && ex.Status == 0 {
			h.dead[tape.HostOf(ex.URL)] = true
			h.silent[e.id]++
			continue
		}
		answered[ex.URL] = true
		if plain {
			h.answered[e.id] = true
		}
	}
	for address := range answered {
		h.alive[tape.HostOf(address)] = true
	}
	return h
}

// unanswered reports whether a record is a request that got no answer and so does not gate, and its host. On replay a
// request to a host that never answered fails the same way, whatever it asks; one that nothing on the tape answers gates. One
// that the program ended before it had an answer which is on the tape is the counterpart of that answer.
func (h *hosts) unanswered(s Side, e *entry) (host string, ok bool) {
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
	id := e.id
	h.silent[id]--
	return host, !h.answered[id] || cancelled(ex) && h.silent[id] >= 0
}

// asFormat1 makes of the records of both sides what a recording of format 1 tells.
func (c *ignoring) asFormat1() {
	for _, e := range c.records(anything) {
		switch k := e.rec.Kind.(type) {
		case *tape.FileWrite:
			if e.become(&tape.FileWrite{File: fileOfFormat1(k.File)}); k.IsPlace() {
				e.rec = nil
			}
		case *tape.FileDelete:
			if k.IsPlace() {
				e.rec = nil
			}
		case *tape.MCPOpen:
			open := *k
			open.Env = nil
			e.become(&open)
		case *tape.NameLookup:
			e.rec = nil
		case *tape.NetRefused:
			if isSocket(k) {
				e.rec = nil
			}
		}
	}
}

// fileOfFormat1 is a file with the mode as Git has it, and without attributes.
func fileOfFormat1(f tape.File) tape.File {
	if len(f.Mode) == 6 && f.Mode[:2] == "10" {
		executable := (f.Mode[3]-'0')&1 != 0
		if f.Mode = "100644"; executable {
			f.Mode = "100755"
		}
	}
	f.Extra = slices.DeleteFunc(slices.Clone(f.Extra), func(x tape.Field) bool { return x.Name == attrsKey })
	return f
}

// ignoreUpgrades takes out the requests for another protocol that were refused (tape.Exchange.UpgradeRefused), and notes where
// one side has more of them: their answer says nothing, and a client that wants a WebSocket asks again as it likes. One that
// nothing recorded is like gates.
func (c *ignoring) ignoreUpgrades() {
	refused := make(map[uint64]*[2]int) // how often by side, by identity
	of := make(map[string]*[2]int)      // the same, by what was asked for
	for s, e := range c.records(ofExchange) {
		ex := tape.ExchangeOf(e.rec.Kind)
		if ex == nil || !ex.UpgradeRefused() || ex.Lane == laneUnmatched {
			continue
		}
		id := e.id
		if refused[id] == nil && s == Replay {
			continue
		}
		if refused[id] == nil {
			what := describe(e.rec.Kind)
			of[what] = cmp.Or(of[what], new([2]int))
			refused[id] = of[what]
		}
		refused[id][s]++
		e.rec = nil
	}
	for _, what := range slices.Sorted(maps.Keys(of)) {
		if times := of[what]; times[Recorded] != times[Replay] {
			c.note("%s: refused upgrades do not gate (%d recorded, %d on replay)", what, times[Recorded], times[Replay])
		}
	}
}

// ignoreVerdicts takes out the verdicts of policies where one side has none: they are those of a daemon that the program knows
// nothing of, and a replay asks none. Two runs that both asked are compared.
func (c *ignoring) ignoreVerdicts() {
	var verdicts [2][]*entry
	for s, e := range c.records(ofOther) {
		if _, ok := e.rec.Kind.(*tape.PolicyVerdict); ok {
			verdicts[s] = append(verdicts[s], e)
		}
	}
	was, now := len(verdicts[Recorded]), len(verdicts[Replay])
	if was+now == 0 || was > 0 && now > 0 {
		return
	}
	for _, e := range slices.Concat(verdicts[Recorded], verdicts[Replay]) {
		e.rec = nil
	}
	c.note("verdicts of policies do not gate where one side asked none (%d recorded, %d on replay)", was, now)
}

// noteUnwatched notes what was to be watched and fits no file that either run changed: it may be misspelt.
func (c *ignoring) noteUnwatched() {
	for _, w := range c.o.Watch {
		only, fits := []string{w}, false
		for _, e := range c.records(ofFile) {
			f := tape.FileOf(e.rec.Kind)
			fits = fits || f != nil && watched(f.Path, only)
		}
		if !fits {
			c.note("--watch %s fits no file that either run changed", w)
		}
	}
}

// noteFiles notes what differs between the files of both sides that do not gate.
func (c *ignoring) noteFiles(which string, sides [2]*outcome) {
	if paths := sides[Recorded].differingPaths(sides[Replay], c.o.Sides); len(paths) > 0 {
		c.note("%s differ (%d), which does not gate: %s", which, len(paths), list(paths, notedPaths))
	}
}

// ignoreServers takes out what MCP servers themselves asked of others over the network, and the conversations that they held as
// clients, and notes how many these are: on a replay no server runs, and the program sees of it what its servers said.
func (c *ignoring) ignoreServers() {
	var asked [2]serversAsked
	atOnce(func(s Side) {
		a := serversAsked{sockets: make(map[uint64]bool), conversations: make(map[uint64]bool), urls: make(map[string]bool)}
		for e := range c.sides[s].records(ofServer | ofSocket | ofExchange | byOthers) { // a conversation's records may stand before its number is known to be one of these
			a.find(e.rec)
		}
		asked[s] = a
		if !a.servers && !a.others {
			return
		}
		a.hosts = make(map[string]bool)
		for address := range a.urls {
			a.hosts[hostName(address)] = true
		}
		for e := range c.sides[s].records(anything) {
			if a.takes(e.rec.Kind) {
				e.rec = nil
			}
		}
	})
	was, now := &asked[Recorded], &asked[Replay]
	switch {
	case was.none() && now.none():
	case now.none() && !c.report.names.named():
		c.note("%s of MCP servers, which did not run, do not gate", was)
	default:
		c.note("what MCP servers asked themselves does not gate%s", c.report.names.versus(was.String(), now.String()))
	}
}

// serversAsked is what the MCP servers of one side asked.
type serversAsked struct {
	exchanges     int
	sockets       map[uint64]bool // by connection
	conversations map[uint64]bool // by number
	servers       bool            // there are some that run beside the program
	others        bool            // there are records of others than the program
	urls          map[string]bool // that the program itself asked
	hosts         map[string]bool // of these: who looked up another name nobody knows
}

func (a *serversAsked) find(rec *tape.Record) {
	if open, ok := rec.Kind.(*tape.MCPOpen); ok && open.Transport == "stdio" {
		a.servers = true
	}
	if tape.OriginOf(rec.Kind) == 0 {
		a.findOwn(rec.Kind)
		return
	}
	a.others = true
	switch k := rec.Kind.(type) {
	case *tape.WSOpen:
		a.sockets[cmp.Or(k.Connection, k.Arrival)] = true
	case *tape.MCPOpen:
		a.conversations[k.Conversation] = true
	case *tape.ProcessSpawn, *tape.NameLookup, *tape.NetRefused: // a server of a replay is none, and tries nothing
	default:
		a.exchanges++
	}
}

func (a *serversAsked) findOwn(k tape.Kind) {
	if ex := tape.ExchangeOf(k); ex != nil {
		a.urls[ex.URL] = true
	}
	if ws, ok := k.(*tape.WSOpen); ok {
		a.urls[ws.URL] = true
	}
}

// hostName is the host of a URL, without a port.
func hostName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// takes reports whether a record is of what was found.
func (a *serversAsked) takes(k tape.Kind) bool {
	if tape.OriginOf(k) != 0 {
		return true
	}
	switch k := k.(type) {
	case *tape.LLMCall:
		return k.Connection != 0 && a.sockets[k.Connection]
	case *tape.NameLookup:
		return a.unknown(k.Extra) && !a.hosts[k.Host]
	case *tape.NetRefused:
		return a.unknown(k.Extra) && isSocket(k)
	case *tape.WSMessage:
		return a.sockets[k.Connection]
	case *tape.WSClose:
		return a.sockets[k.Connection]
	}
	at, _ := placeIn(k)
	return at.conversation != 0 && a.conversations[at.conversation]
}

// unknown reports whether a server may have made an attempt that does not say whose it is.
func (a *serversAsked) unknown(extra []tape.Field) bool {
	return a.servers && tape.FieldValue(extra, tape.OpenerKey) == nil
}

func (a *serversAsked) none() bool { return a.exchanges+len(a.sockets)+len(a.conversations) == 0 }

// String says how many exchanges (WebSockets are some) and conversations they are.
func (a *serversAsked) String() string {
	exchanges, conversations := a.exchanges+len(a.sockets), len(a.conversations)
	switch {
	case conversations == 0:
		return counted(exchanges, "exchange")
	case exchanges == 0:
		return counted(conversations, "conversation")
	}
	return counted(exchanges, "exchange") + " and " + counted(conversations, "conversation")
}

// ignoreCarriers takes out the exchanges that carried messages of an MCP conversation over HTTP: the messages are compared by
// themselves. One that carried none, such as a session that was refused, gates as any exchange does; but not a stream for what a server
// says unasked (GET) and the end of a session (DELETE): how often a client opens the one again, and whether it comes to the other before
// it ends, depends on the moment. So does how often one side asks whether the other is there (ping).
func (c *ignoring) ignoreCarriers() {
	if c.mode == ByteIdentical {
		return
	}
	var carried [2]map[uint64]bool
	for s, e := range c.records(ofServer) {
		if call := callOf(e.rec); call != nil {
			if carried[s] == nil {
				carried[s] = make(map[uint64]bool)
			}
			carried[s][call.Exchange], carried[s][call.AnswerExchange] = true, true
		}
	}
	for s, e := range c.records(ofServer | ofExchange) {
		ex, ok := e.rec.Kind.(*tape.HTTPExchange)
		carries := ok && ex.Arrival != 0 && carried[s][ex.Arrival] && carrier(ex.Lane)
		if call := callOf(e.rec); carries || ok && isStream(ex) || call != nil && call.Method == "ping" {
			e.rec = nil
		}
	}
}

// carrier reports whether exchanges of a lane may carry messages of MCP: those of servers, and those that nothing answered.
func carrier(lane string) bool { return strings.HasPrefix(lane, laneMCP) || lane == laneUnmatched }

// isStream reports whether an exchange of a tool server asks for no more than its stream, or for the end of its session.
func isStream(ex *tape.HTTPExchange) bool {
	return strings.HasPrefix(ex.Lane, laneMCP) && (ex.Method == http.MethodGet || ex.Method == http.MethodDelete)
}

// maxStderr bounds, in bytes, what servers wrote to stderr that is held to compare, of one lane on one side.
const maxStderr = 1 << 20

// ignoreStderr takes out what servers wrote to stderr, and notes where it differs: it is for people, and cut anywhere.
func (c *ignoring) ignoreStderr() {
	said := make(map[string]*[2]strings.Builder)
	for s, e := range c.records(ofServer) {
		text, ok := e.rec.Kind.(*tape.MCPText)
		if !ok || text.From != fromStderr {
			continue
		}
		lane := LaneOf(text)
		if said[lane] == nil {
			said[lane] = new([2]strings.Builder)
		}
		if b := &said[lane][s]; inRecord(text.Payload) && b.Len() < maxStderr {
			b.WriteString(text.Payload.Text)
		} else {
			b.WriteString(hashOf(text.Payload).Short())
		}
		e.rec = nil
	}
	for _, lane := range slices.Sorted(maps.Keys(said)) {
		was, now := said[lane][Recorded].String(), said[lane][Replay].String()
		if was != now && c.o.masked(was) != c.o.masked(now) {
			c.note("lane %s: what the server wrote to stderr differs, which does not gate", lane)
		}
	}
}
