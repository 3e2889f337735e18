package fidelity

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/scrub"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// The streams of a process that the program started and talked with compare where both runs were given the same time and randomness. What it was
// given gates. What it wrote gates too where nothing but the process decides it: of a runtime with timers of its own, and of one that a signal
// ended, it is a note; so is another order of lines where several processes wrote them. A stream that is not whole compares as far as the other.
// What a mask takes out of them is judged as everywhere.

// maxStream bounds what is read of one stream, in bytes: more is kept of none.
const maxStream = 2 << 20

// secretEdge is how much of the end of a stream that was cut does not compare: a secret may lie across it.
const secretEdge = 256

var errStreamTooLong = errors.New("the stream is too long to compare")

var streamsOfChild = [3]struct {
	name     string
	category Category
	of       func(*tape.ProcessSpawn) *tape.Payload
}{
	{"stdin", ProcessStdinHash, func(p *tape.ProcessSpawn) *tape.Payload { return p.Stdin }},
	{"stdout", ProcessStdoutHash, func(p *tape.ProcessSpawn) *tape.Payload { return p.Stdout }},
	{"stderr", ProcessStderrHash, func(p *tape.ProcessSpawn) *tape.Payload { return p.Stderr }},
}

// streamCompare compares the streams of processes that others started.
type streamCompare struct{ *maskings }

// compare compares the streams of one process, and returns those that differ and gate.
func (c *streamCompare) compare(lane string, p pair, at int) (out []finding) {
	a, ok := p.a.rec.Kind.(*tape.ProcessSpawn)
	if !ok || !c.o.Exact || c.mode == Outcome {
		return nil
	}
	b := p.b.rec.Kind.(*tape.ProcessSpawn)
	if a.Stdin == nil || b.Stdin == nil { // nobody talked with it, or that was not recorded yet
		return nil
	}
	for i, s := range streamsOfChild {
		f := facet{finding: finding{category: s.category, was: s.of(a), now: s.of(b)}, place: s.name, isText: true}
		if f.was == nil || f.now == nil || f.was.Hash == f.now.Hash {
			continue
		}
		x, err1 := c.streamBytes(f.was, Recorded)
		y, err2 := c.streamBytes(f.now, Replay)
		if moreUnasked := i == 0 && (unasked(a) || unasked(b)); moreUnasked || cutShort(a, i) || cutShort(b, i) {
			if moreUnasked && len(x) != len(y) {
				c.note("how much %s was given differs, which does not gate: it had written what nobody asked for", subjectOf(a))
			}
			x, y = sharedPart(x, y)
		}
		f.texts = [2]string{string(x), string(y)}
		places, alike := c.placesIn(&f, x, y)
		switch {
		case err1 != nil || err2 != nil:
			out = append(out, f.differs())
		case bytes.Equal(x, y):
		case i > 0 && c.wroteByChance(a, b, x, y):
			c.note("%s of %s differs, which does not gate: its own timers, or several processes side by side, decide it", s.name, subjectOf(a))
		case alike:
			c.hide(lane, p, at, places)
		default:
			out = append(out, f.differs())
		}
	}
	return out
}

// streamBytes is a stream as it compares.
func (c *streamCompare) streamBytes(p *tape.Payload, s Side) ([]byte, error) {
	if p.Len > maxStream {
		return nil, errStreamTooLong
	}
	b, err := c.bytes(p, s)
	return scrub.Renumber(b), err
}

// cutShort reports whether how much there is of a stream of a process is a matter of moments.
func cutShort(p *tape.ProcessSpawn, stream int) bool {
	return stream > 0 && p.Signal != "" || tape.HasFlag(p, tape.CutKeys[stream])
}

// unasked reports whether a process with timers of its own went on to write when its reader had left, and was not killed: what it was given last
// may be an answer to what nobody asked for. esbuild sends a ping each second. Output that is too long, or went elsewhere, tells nothing of that.
func unasked(p *tape.ProcessSpawn) bool {
	left := tape.HasFlag(p, tape.CutKeys[1]) && p.Stdout != nil && p.Stdout.Len > 0 && p.Stdout.Len < maxStream/2
	return left && tape.HasFlag(p, tape.OwnTicksKey) && (p.Signal == "" || p.Signal == "SIGPIPE")
}

// sharedPart is as much of two streams, one of which is not whole, as compares.
func sharedPart(x, y []byte) ([]byte, []byte) {
	n := min(len(x), len(y))
	if n > secretEdge && !bytes.Equal(x[:n], y[:n]) {
		n -= secretEdge
	}
	return x[:n], y[:n]
}

// wroteByChance reports whether a process may write otherwise in each run.
func (c *streamCompare) wroteByChance(a, b *tape.ProcessSpawn, x, y []byte) bool {
	if !endedItself(a) || !endedItself(b) {
		return true
	}
	n, ticks := c.below(Recorded, a)
	m, ticksNow := c.below(Replay, b)
	return ticks || ticksNow || n+m > 0 && slices.EqualFunc(sortedLines(x), sortedLines(y), bytes.Equal)
}

// below counts the processes that one started, and what those did, and says whether one of them or itself has timers of its own.
func (c *streamCompare) below(s Side, p *tape.ProcessSpawn) (n int, ownTicks bool) {
	ownTicks = tape.HasFlag(p, tape.OwnTicksKey)
	under := map[uint64]bool{p.SpawnID: true}
	for grown := true; grown; { // records stand in the order in which processes ended: children first
		grown = false
		for e := range c.sides[s].records(ofProcess) {
			k, ok := e.spawn()
			if !ok || k.SpawnID == 0 || under[k.SpawnID] || !under[k.ParentSpawnID] {
				continue
			}
			under[k.SpawnID], grown = true, true
			n++
			ownTicks = ownTicks || tape.HasFlag(k, tape.OwnTicksKey)
		}
	}
	return n, ownTicks
}

// hasStreams reports whether a record is that of a process which another one of the run started, and whose streams passed the recorder.
func hasStreams(rec *tape.Record) bool {
	k, ok := rec.Kind.(*tape.ProcessSpawn)
	return ok && k.ParentSpawnID != 0 && k.Stdin != nil && k.StdoutDigest.IsZero()
}

func sortedLines(b []byte) [][]byte {
	lines := bytes.Split(b, []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	return lines
}

// processIDs are whose PIDs are on both sides, as arguments spell them. Threads have numbers of the same row, so which one a process gets
// depends on what the threads of its program do just then: an argument that is a PID compares by whose it is.
type processIDs struct {
	of    [2]map[string]spawnLane
	moved [][2]string // those that differ, recorded and replay; at most maxMoved
}

// maxMoved bounds of how many PIDs it is said that another one stood for them.
const maxMoved = 20

// find finds whose each PID of a side is: of the processes that compare, by their lanes, and of MCP servers, which do not run on a replay, by
// their conversations.
func (ids *processIDs) find(s Side, side *laneSide, lanes []*spawnLane) {
	ids.of[s] = make(map[string]spawnLane)
	for e := range side.records(ofProcess | ofServer) {
		switch k := e.rec.Kind.(type) {
		case *tape.ProcessSpawn: // of one that became other programs the last one is
			if lane := lanes[e.at]; lane != nil && !tape.HasFlag(k, tape.AgainKey) {
				ids.add(s, strconv.Itoa(k.PID), *lane)
			}
		case *tape.MCPOpen:
			name := fmt.Sprintf("server %d: %s", k.Conversation, k.Server)
			ids.add(s, string(tape.FieldValue(k.Extra, tape.PIDKey)), spawnLane{name, cas.Sum([]byte(name))})
		}
	}
}

// add notes whose a PID is: nobody's where it was given twice.
func (ids *processIDs) add(s Side, pid string, of spawnLane) {
	if _, twice := ids.of[s][pid]; twice || pid == "" || pid == "0" {
		of = spawnLane{}
	}
	ids.of[s][pid] = of
}

// asRecorded are arguments of the replay, in which a PID is the recorded one of the same process.
func (ids *processIDs) asRecorded(was, now []string) []string {
	out := slices.Clone(now)
	for i := range min(len(was), len(now)) {
		if was[i] != now[i] && ids.same(was[i], now[i]) {
			out[i] = was[i]
		}
	}
	return out
}

// same reports whether two PIDs are of one process.
func (ids *processIDs) same(was, now string) bool {
	a, b := ids.of[Recorded][was], ids.of[Replay][now]
	same := a.key == b.key && a.key != (cas.Digest{})
	if pair := [2]string{was, now}; same && len(ids.moved) < maxMoved && !slices.Contains(ids.moved, pair) {
		ids.moved = append(ids.moved, pair)
	}
	return same
}

// tell notes which processes had another PID where an argument names them by it.
func (ids *processIDs) tell(c *comparison) {
	for _, pair := range ids.moved {
		c.note("an argument names a process by its PID, which is another one: recorded %s, replay %s, of %s", pair[0], pair[1], ids.of[Recorded][pair[0]].name)
	}
}
