package deck

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// recordedProcesses are those of a recording, by who started them.
type recordedProcesses struct {
	store    cas.Store
	children map[uint64][]*tape.ProcessSpawn // that are no process's again yet, by spawn_id
	program  *tape.ProcessSpawn              // nil for none
	pids     map[int]bool                    // that some had
	shifts   map[uint64]int                  // by spawn_id: how much more the PID of the last that it started was, at first its own, than now
	servers  map[uint64]int                  // those of MCP servers, by conversation
	last     uint64                          // the highest number
	answers  []*tape.Payload                 // of all of them
	written  func() map[string][2]int64      // times of files, as stamps keeps them, by "calls size path"
}

func newRecordedProcesses(store cas.Store) *recordedProcesses {
	r := &recordedProcesses{store: store, children: make(map[uint64][]*tape.ProcessSpawn), pids: make(map[int]bool), shifts: make(map[uint64]int), servers: make(map[uint64]int), last: programID}
	r.written = sync.OnceValue(r.readWritten)
	return r
}

// add takes the records of a tape, in any order.
func (r *recordedProcesses) add(k tape.Kind) {
	if o, ok := k.(*tape.MCPOpen); ok {
		r.servers[o.Conversation] = tape.PIDOf(o)
	}
	p, ok := k.(*tape.ProcessSpawn)
	if !ok || p.SpawnID == 0 {
		return
	}
	if p.SpawnID == programID {
		r.program = p
	}
	if p.Answers != nil {
		r.answers = append(r.answers, p.Answers)
	}
	r.pids[p.PID] = r.pids[p.PID] || !tape.HasFlag(p, tape.ForkedKey)
	r.last = max(r.last, p.SpawnID)
	r.children[p.ParentSpawnID] = append(r.children[p.ParentSpawnID], p)
}

// sort puts children into the order in which they began.
func (r *recordedProcesses) sort() {
	for _, list := range r.children {
		slices.SortFunc(list, func(a, b *tape.ProcessSpawn) int { return cmp.Compare(a.SpawnID, b.SpawnID) })
	}
}

// wrote is when a file was written, and read, that so many calls had changed and that was so long; zeros for not known.
func (r *recordedProcesses) wrote(key string) (at, read int64) {
	if r == nil {
		return 0, 0
	}
	times := r.written()[key]
	return times[0], times[1]
}

// readWritten reads the times of files in all answers. Of one that was written on without another call the last one counts.
func (r *recordedProcesses) readWritten() map[string][2]int64 {
	written := make(map[string][2]int64)
	for _, payload := range r.answers {
		b, err := payload.Bytes(r.store)
		if err != nil {
			continue // it is said of the process
		}
		answers, _ := ambient.NewAnswers(false, b) // likewise
		for asked, answer := range answers.Recorded() {
			what, path, _ := strings.Cut(asked, " ")
			if what != "began" && what != "ended" {
				continue
			}
			var at, read int64
			var how, calls, size string
			if n, _ := fmt.Sscan(string(answer), &at, &read, &how, &calls, &size); n == 5 && how != "set" {
				if key := calls + " " + size + " " + path; written[key][0] < at {
					written[key] = [2]int64{at, read}
				}
			}
		}
	}
	return written
}

// take finds which recorded process one is again that parent has started, and hands it out once: the first that ran the same, of the same thread
// where there is one, and none that began after the ordinal which the run has reached, where there is another; else of those that ran this program
// in another way the most alike, so that a changed argument changes nothing beside. forkOf has before. nil for none.
func (r *recordedProcesses) take(parent uint64, is *tape.ProcessSpawn, reached uint64, before int) *tape.ProcessSpawn {
	list := r.children[parent]
	forked := tape.HasFlag(is, tape.ForkedKey)
	thread := threadOf(is)
	same := func(was *tape.ProcessSpawn) bool {
		return !forked && was.Program == is.Program && slices.Equal(was.Args, is.Args)
	}
	due := func(was *tape.ProcessSpawn) bool { return same(was) && begunAt(was) < reached }
	fork := forkOf(list, is, r.shifts[parent], before)
	for _, alike := range []func(*tape.ProcessSpawn) bool{
		func(was *tape.ProcessSpawn) bool { return forked && thread != "" && threadOf(was) == thread },
		func(was *tape.ProcessSpawn) bool { return was == fork },
		func(was *tape.ProcessSpawn) bool { return due(was) && threadOf(was) == thread },
		due,
		func(was *tape.ProcessSpawn) bool { return same(was) && threadOf(was) == thread },
		same,
		func(was *tape.ProcessSpawn) bool {
			return !forked && path.Base(was.Program) == path.Base(is.Program) && len(was.Args) == len(is.Args)
		},
		func(was *tape.ProcessSpawn) bool { return path.Base(was.Program) == path.Base(is.Program) },
		func(*tape.ProcessSpawn) bool { return parent == 0 },
	} {
		i := mostAlike(list, is, func(was *tape.ProcessSpawn) bool {
			return tape.HasFlag(was, tape.ForkedKey) == forked && alike(was)
		})
		if i >= 0 {
			was := list[i]
			r.children[parent] = slices.Delete(list, i, i+1)
			if was.PID != 0 && is.PID != 0 {
				r.shifts[parent], r.shifts[was.SpawnID] = was.PID-is.PID, was.PID-is.PID
			}
			return was
		}
	}
	return nil
}

// forkOf is which of a list one is that only forked, or is a thread of a tape without the key; nil for none. before are the living ones that its parent
// had forked before it and that are not known yet. Which of those (the stages of a pipeline) asks for something first is chance: it is the
// one whose PID was nearest to its own and shift more.
func forkOf(list []*tape.ProcessSpawn, is *tape.ProcessSpawn, shift, before int) *tape.ProcessSpawn {
	var forks []*tape.ProcessSpawn
	for _, was := range list {
		if tape.HasFlag(was, tape.ForkedKey) && tape.HasFlag(is, tape.ForkedKey) && threadOf(was) == "" && (was.PID == 0) == (is.PID == 0) {
			forks = append(forks, was)
		}
	}
	if len(forks) == 0 {
		return nil
	}
	slices.SortStableFunc(forks, func(a, b *tape.ProcessSpawn) int { return cmp.Compare(a.PID, b.PID) })
	return slices.MinFunc(forks[:min(before+1, len(forks))], func(a, b *tape.ProcessSpawn) int {
		apart := func(was *tape.ProcessSpawn) int { return max(was.PID-is.PID-shift, is.PID+shift-was.PID) }
		return cmp.Compare(apart(a), apart(b))
	})
}

// begunAt is the recorder's ordinal when a process began; 0 where its tape does not tell.
func begunAt(p *tape.ProcessSpawn) uint64 {
	at, _ := tape.FieldNumber(p.Extra, tape.PlaceKey)
	return at
}

func threadOf(p *tape.ProcessSpawn) string { return string(tape.FieldValue(p.Extra, tape.ThreadKey)) }

// mostAlike returns the place of the process in a list whose arguments share most words with those of another, the first one of equals,
// among those that may be it; -1 for none.
func mostAlike(list []*tape.ProcessSpawn, is *tape.ProcessSpawn, may func(*tape.ProcessSpawn) bool) int {
	best, fewest := -1, 0
	for i, was := range list {
		if !may(was) {
			continue
		}
		if n := wordsApart(was.Args, is.Args); best < 0 || n < fewest {
			best, fewest = i, n
		}
	}
	return best
}

// wordsApart counts the words that stand in one of two argument lists and not in the other.
func wordsApart(a, b []string) (n int) {
	if slices.Equal(a, b) {
		return 0
	}
	left := make(map[string]int)
	for i, args := range [][]string{a, b} {
		for word := range strings.FieldsFuncSeq(strings.Join(args, " "), notInWord) {
			left[word] += 1 - 2*i
		}
	}
	for _, k := range left {
		n += max(k, -k)
	}
	return n
}

func notInWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
