package deck

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/lane"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A pidMap has the PIDs of recorded processes, by those that the same ones have on a replay; 0 of one that is on no tape. While recording it is
// nil.
type pidMap struct {
	recorded *recordedProcesses
	begun    *lane.Gate[int]    // by recorded PID
	over     *lane.Gate[uint64] // by number

	mu      sync.Mutex
	by      map[int]int
	program int // of the first one
}

// A process that looks through all is over soon. What begins while it looks it sees or not, and it is not held up for longer.
const (
	looksFor = time.Second
	lookLate = 2 * time.Second
)

// How long the two ends of a pipe wait for each other: who stops reading for those that feed it, of which one may have left the pipe and
// live on, and who SIGPIPE ended for those that read, which had ended by then.
const (
	feedLate = time.Second
	readLate = 10 * time.Second
)

func newPIDMap(again *recordedProcesses) *pidMap {
	return &pidMap{recorded: again, begun: lane.NewGate[int](lookLate, nil), over: lane.NewGate[uint64](0, nil), by: make(map[int]int)}
}

func (m *pidMap) add(pid, was int) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.by) == 0 {
		m.program = was
	}
	m.by[pid] = was
	m.begun.Happened(was)
}

func (m *pidMap) ended(number uint64) {
	if m != nil {
		m.over.Happened(number)
	}
}

// addServer adds the process that stands for the server of a recorded conversation.
func (m *pidMap) addServer(pid int, conversation uint64) {
	if m == nil {
		return
	}
	if was := m.recorded.servers[conversation]; was != 0 {
		m.add(pid, was)
	}
}

// was is the recorded PID of the process that has pid, and that of the program. A fork that has executed nothing yet has the recorded one.
func (m *pidMap) was(pid int) (was, program int) {
	if m == nil {
		return 0, 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	was, known := m.by[pid]
	if !known {
		was = pid
	}
	return was, m.program
}

// missed says who looked before all that it saw then had begun.
func (m *pidMap) missed() []string {
	if m == nil {
		return nil
	}
	return m.begun.Missed()
}

// Beginning implements jail.Source: a process that looked through all begins once those have begun that it saw. It may have looked while
// another thread of its parent started them.
func (i *processInputs) Beginning() func(ctx context.Context) {
	took := time.Duration(i.tookMS) * time.Millisecond
	if i.of.pids == nil || i.id == programID || took > looksFor {
		return nil
	}
	_, program := i.of.pids.was(i.program.PID)
	seen := i.answers.Listed(program)
	var begun []lane.Condition[int]
	for _, pid := range seen {
		if i.of.pids.recorded.pids[pid] {
			begun = append(begun, lane.Condition[int]{
				What: pid, Since: time.Now(), For: took + lookLate,
				Why: fmt.Sprintf("process %d looks through all processes, of which the recorded one saw %d, that has not begun", i.id, pid),
			})
		}
	}
	if !i.of.pids.begun.Holds(begun) {
		return nil
	}
	return func(ctx context.Context) { _ = i.of.pids.begun.Await(ctx, begun) }
}

// Leaving implements jail.Source. A process that stops reading from a pipe waits for those that feed it to end: it did so too late for them
// to notice, while recording, unless SIGPIPE ended one.
func (i *processInputs) Leaving(feeders func() []jail.Source) func(ctx context.Context) {
	if i.of.pids == nil {
		return nil
	}
	fed, noticed := i.ends(feeders(), feedLate)
	if noticed || !i.of.pids.over.Holds(fed) {
		return nil
	}
	return func(ctx context.Context) {
		if i.of.leaves != nil {
			i.of.leaves(i.id)
		}
		_ = i.of.pids.over.Await(ctx, fed)
	}
}

// ends are the ends of some processes, but for the program's, each awaited until late. broken says that SIGPIPE had ended one.
func (i *processInputs) ends(all []jail.Source, late time.Duration) (ends []lane.Condition[uint64], broken bool) {
	for _, s := range all {
		if in, ok := s.(*processInputs); ok && in.id != programID {
			ends = append(ends, lane.Condition[uint64]{What: in.id, Since: time.Now(), For: late, Excused: true})
			broken = broken || in.died == "SIGPIPE"
		}
	}
	return ends, broken
}

// starter is the process that started the one which this is, or of which it is a thread; nil for none.
func (i *processInputs) starter() *processInputs {
	parent, _ := i.program.Parent.(*processInputs)
	for parent != nil && (i.program.Thread || parent.program.Host == i.program.Host) { // it executed another program, or is a thread
		i = parent
		parent, _ = i.program.Parent.(*processInputs)
	}
	return parent
}

// Ending implements jail.Source. The program itself ends when it likes. A process that SIGPIPE ended while recording may have had time to go on:
// once nobody reads what it wrote, it ends by that again.
func (i *processInputs) Ending(readers func() ([]jail.Source, bool)) func(ctx context.Context) syscall.Signal {
	i.of.stamps.look(i, "ended")
	parent := i.starter()
	if parent == nil || i.id == programID {
		return nil
	}
	var wait func(ctx context.Context)
	if i.of.ending != nil {
		wait = i.of.ending(i.id)
	}
	return func(ctx context.Context) syscall.Signal {
		if wait != nil {
			wait(ctx)
		}
		defer parent.inbox.childEnds(ctx, parent.program.Host, i.gone)
		if i.died != "SIGPIPE" {
			return 0
		}
		all, _ := readers()
		read, _ := i.ends(all, readLate)
		_ = i.of.pids.over.Await(ctx, read)
		if all, piped := readers(); !piped || len(all) > 0 {
			return 0
		}
		return syscall.SIGPIPE
	}
}

// An inbox has a process get one thing after another: an answer, the end of a child, and what comes on another connection than what came last, wait until the
// process has done all that it does about that, and beside. Else what it does about two answers that come side by side (which number it draws for which, which time it
// reads) is a matter of microseconds, while recording and on the replay; so it is one of their order alone, which the tape has.
//
// A process that does one thing at a time, as an event loop does, loses nothing by it: it could not have taken up the second one before.
// One that is always at work is waited for a few times.
type inbox struct {
	giving chan struct{} // holds one while something is given
	last   net.Addr      // where something was given last
	vain   int           // how often the process did not come to rest, less how often it did
	ends   int           // the same, for ends of children
}

func newInbox() *inbox { return &inbox{giving: make(chan struct{}, 1)} }

const (
	restEvery = 200 * time.Microsecond // how often it is looked whether a process rests
	restWork  = 250 * time.Millisecond // what it may work meanwhile, on all processors together
	restEnd   = 30 * time.Millisecond  // the same, while a child waits to end: who builds a program works all the time
	endHeld   = 100 * time.Millisecond // how long a child waits to end while its parent is itself held up, and does not run
	endMost   = time.Second            // how long a process takes to end that may, or a connection
	restMost  = 5 * time.Second        // how long that may take, on a machine that has much to do
	restVain  = 8                      // so much oftener it did not than it did: it is not waited for any more
)

// begin waits until something may be given to the process on the connection of this remote address: an answer's begin, or something else. What
// it returns says that it has been.
func (i *inbox) begin(pid int, remote net.Addr, answer bool) (given func(ends bool)) {
	i.giving <- struct{}{}
	if answer || i.last != nil && i.last != remote {
		rest(pid, restMost, restWork, &i.vain, nil)
	}
	i.last = remote
	end := sync.OnceFunc(func() { <-i.giving })
	late := time.AfterFunc(network.GiveMost, end)
	return func(ends bool) {
		switch on := late.Stop(); {
		case !ends:
			end()
		case on:
			late.Reset(endMost)
		}
	}
}

// childEnds waits until a child of the process may end. Others wait until it is gone. Who is killed meanwhile, or a run that is over, waits for nothing.
func (i *inbox) childEnds(ctx context.Context, pid int, gone <-chan struct{}) {
	select {
	case i.giving <- struct{}{}:
	case <-gone:
		return
	case <-ctx.Done():
		return
	}
	rest(pid, endHeld, restEnd, &i.ends, gone)
	go func() {
		select {
		case <-gone:
		case <-time.After(endMost):
		case <-ctx.Done():
		}
		<-i.giving
	}()
}

// rest waits until a process has nothing to do: until it has worked for so much, or been held up for so long, which is counted.
func rest(pid int, held, work time.Duration, vain *int, gone <-chan struct{}) {
	if *vain >= restVain {
		return
	}
	begun, before := time.Now(), worked(pid)
	ran := begun
	for {
		runs, waits := busy(pid)
		switch now := time.Now(); {
		case !runs && !waits:
			*vain = max(*vain-1, 0)
			return
		case now.Sub(begun) > restMost, now.Sub(ran) > held, worked(pid)-before > work:
			*vain++
			return
		case runs:
			ran = now
		}
		select {
		case <-gone:
			return
		case <-time.After(restEvery):
		}
	}
}

// maxThreads is how many threads of a process are looked at.
const maxThreads = 256

// atWork reports whether a process has something to do.
func atWork(pid int) bool {
	runs, waits := busy(pid)
	return runs || waits
}

// busy reports whether a thread of a process runs, or waits for a processor; else whether one waits for a disk or what the jail tells it.
func busy(pid int) (runs, waits bool) {
	tasks, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false, false
	}
	defer tasks.Close()
	names, _ := tasks.Readdirnames(maxThreads)
	for _, task := range names {
		of := fmt.Sprintf("/proc/%d/task/%s/", pid, task)
		switch state := statOf(of); {
		case len(state) == 0:
		case state[0][0] == 'R':
			return true, waits
		case state[0][0] == 'D':
			waits = true
		default:
			where, _ := os.ReadFile(of + "wchan")
			waits = waits || bytes.Contains(where, []byte("seccomp"))
		}
	}
	return false, waits
}

// worked is how much processor time a process has used.
func worked(pid int) (sum time.Duration) {
	const user, system, tick = 11, 12, 10 * time.Millisecond // fields behind the name, proc_pid_stat(5)
	if stat := statOf(fmt.Sprintf("/proc/%d/", pid)); len(stat) > system {
		for _, field := range stat[user : system+1] {
			n, _ := strconv.Atoi(string(field))
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// statOf are the fields of a process or thread behind its name; none where it has ended.
func statOf(dir string) [][]byte {
	b, _ := os.ReadFile(dir + "stat")
	return bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
}

// giving has what is given wait for its place in the inbox, on the connection of this remote address.
func (p *processes) giving(remote net.Addr, answer bool) (given func(ends bool)) {
	in := p.holder(remote)
	if in == nil {
		return func(bool) {}
	}
	return in.inbox.begin(in.program.Host, remote, answer)
}

// recordedProcesses are those of a recording, by who started them.
type recordedProcesses struct {
	store    cas.Store
	children map[uint64][]*tape.ProcessSpawn // that are no process's again yet, by spawn_id
	program  *tape.ProcessSpawn              // nil for none
	pids     map[int]bool                    // that some had
	servers  map[uint64]int                  // those of MCP servers, by conversation
	last     uint64                          // the highest number
	answers  []*tape.Payload                 // of all of them
	written  func() map[string][2]int64      // times of files, as stamps keeps them, by "calls size path"
}

func newRecordedProcesses(store cas.Store) *recordedProcesses {
	r := &recordedProcesses{store: store, children: make(map[uint64][]*tape.ProcessSpawn), pids: make(map[int]bool), servers: make(map[uint64]int), last: programID}
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

// take finds which recorded process one is again that parent has started, and hands it out once: the first that ran the same; else
// of those that ran this program in another way the most alike, so that a changed argument changes nothing beside. nil for none.
func (r *recordedProcesses) take(parent uint64, is *tape.ProcessSpawn) *tape.ProcessSpawn {
	list := r.children[parent]
	forked := tape.HasFlag(is, tape.ForkedKey)
	for _, alike := range []func(*tape.ProcessSpawn) bool{
		func(was *tape.ProcessSpawn) bool { return forked && was.PID == is.PID },
		func(was *tape.ProcessSpawn) bool {
			return !forked && was.Program == is.Program && slices.Equal(was.Args, is.Args)
		},
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
			return was
		}
	}
	return nil
}

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
