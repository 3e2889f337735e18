package deck

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/ambient"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// processes gives the processes of a run their wall time and their random bytes, and puts each on the tape when it has ended: what
// it ran, how that ended, and the times that it read. A replay gives the times again, and the same random bytes: those of the
// recorded process that a process is again (recordedProcesses).
//
// The program is process 1. Its own record is the run's; of it processes has the times alone.
type processes struct {
	s       *session
	servers *servers
	stamps  *stamps
	seed    *ambient.Seed // nil: nobody has it, and the kernel's bytes are given

	keeps bool               // the times are kept
	clock *ambient.Clock     // on a replay
	ticks *ambient.Clock     // the same, monotonic
	again *recordedProcesses // the same

	began, over, leaves func(id uint64)                                  // on a replay, told of each process; nil for nobody
	wakes               func(ctx context.Context, id uint64, n int)      // the same, waits until a thread may wake for the nth time
	woken               func(id uint64, n int)                           // the same, told that it does
	ending              func(id uint64) (wait func(ctx context.Context)) // the same, of one that is about to end: see jail.Source
	reached             func() uint64                                    // the same: exchange.EndOrder

	pids    *pidMap // of a replay; nil else
	reads   reads
	ends    sync.WaitGroup // goroutines of processes that may be a server's
	drained chan struct{}  // closed when all have ended, and every conversation with a server

	mu      sync.Mutex
	last    uint64                    // the highest number that was given
	live    map[uint64]*processInputs // by their numbers, threads too, which have not ended
	alive   map[int]*processInputs    // by PID on the host
	holders map[uint16]*processInputs // of ports: whose sockets have them, or had them last
	first   *processInputs
	left    bool     // the run has left the recorded times
	lost    int      // times that found no room
	damage  []string // recorded times that cannot be read
}

// programID is the spawn_id of the program.
const programID = 1

// newProcesses records those of a run.
func newProcesses(s *session, c *changing, seed *ambient.Seed) *processes {
	p := &processes{
		s: s, servers: &c.servers, stamps: c.stamps, seed: seed, keeps: true, drained: make(chan struct{}),
		live: make(map[uint64]*processInputs), alive: make(map[int]*processInputs), holders: make(map[uint16]*processInputs),
	}
	c.resting = p.resting
	return p
}

// replayProcesses gives again what those of a recording had, which began at start. kept says that the replay becomes a recording.
func replayProcesses(s *session, c *changing, seed *ambient.Seed, again *recordedProcesses, start time.Time, kept bool) *processes {
	p := newProcesses(s, c, seed)
	p.clock, p.ticks, p.again, p.keeps, p.last, p.pids = ambient.NewClock(start), ambient.NewTicks(), again, kept, again.last, newPIDMap(again)
	p.reads.since = start
	return p
}

// inputs is p for a jail; nil for the kernel.
func (p *processes) inputs() jail.Inputs {
	if p == nil {
		return nil
	}
	return p
}

// replays reports whether the times are others than the kernel's.
func (p *processes) replays() bool { return p != nil && p.clock != nil }

// answered is told of the exchange whose answer is about to be given: who opened its connection, its arrival, and the recorded one. On a
// replay it waits until the opener has done what it had done before. What it returns is told when the answer begins.
func (p *processes) answered(opener, arrival, recorded uint64) (begins func(), held func(bool)) {
	g, _ := p.hearing(opener)
	if p.clock != nil {
		p.clock.Asked(recorded)
		p.ticks.Asked(recorded)
	}
	reached, held := func() {}, func(bool) {}
	if g != nil {
		if r, h, err := g.Await(p.s.failed, recorded); err == nil { // else the run has failed, and answers nobody
			reached, held = r, h
		}
	}
	return func() {
		if _, heard := p.hearing(opener); heard != nil {
			heard.Answered(arrival)
		}
		if p.clock != nil {
			p.clock.Answered(recorded)
			p.ticks.Answered(recorded)
		}
		reached()
	}, held
}

// hearing are the wall times of a process or thread on a replay, and what keeps those of which answers it heard before; nil for none.
func (p *processes) hearing(id uint64) (*ambient.Given, *ambient.Heard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if in := p.live[id]; in != nil {
		return in.given, in.heard
	}
	return nil, nil
}

// The axes of time and randomness.
const (
	axisClock  = "clock"
	axisRandom = "random"
)

// leave has the run leave what is recorded: time goes on from at, where that is not zero, and what starts now is no recorded process.
func (p *processes) leave(at time.Time) {
	if !p.replays() {
		return
	}
	ns := int64(0)
	if !at.IsZero() {
		ns = at.UnixNano()
	}
	p.clock.Leave(ns)
	p.ticks.Leave(0)
	p.mu.Lock()
	p.left = true
	p.mu.Unlock()
}

// unlike says what of time and randomness a replay could not give again.
func (p *processes) unlike() (notes []string) {
	if p == nil {
		return nil
	}
	if p.seed == nil {
		notes = append(notes, "random numbers are others than recorded: the recording was made with another project key")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Concat(notes, p.damage, p.pids.missed())
}

// timesRead counts reads of the wall time in a report, and notes those of times that are not recorded, where something differs. After a
// request that was refused that says nothing: no answer has come there.
func (p *processes) timesRead(r *fidelity.Report) {
	if !p.replays() {
		return
	}
	recorded, _ := p.clock.Times()
	r.TimesRead = &fidelity.TimesRead{Recorded: len(recorded), Replay: int(p.clock.Reads()), Beyond: int(p.clock.Beyond())}
	if n := r.TimesRead.Beyond; n > 0 && len(r.Refused) == 0 && !r.Faithful() {
		r.Notes = append(r.Notes, fmt.Sprintf("%d times that were read have no recorded ones: they go on from the last one", n))
	}
}

// axes says what of time and randomness is covered, beside the gaps of the jail.
func (p *processes) axes(gaps []string) (clock, random recording.Axis) {
	if p == nil {
		return recording.Axis{NotCovered: []string{gapClock}}, recording.Axis{NotCovered: []string{gapRandom}}
	}
	clock, random = recording.Axis{On: true, NotCovered: slices.Clone(gaps)}, recording.Axis{On: true, NotCovered: slices.Clone(gaps)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost > 0 {
		clock.NotCovered = append(clock.NotCovered, fmt.Sprintf("%d times were read and not kept: of one process at most %d MiB are", p.lost, ambient.MaxTimes>>20))
	}
	return clock, random
}

// A processInputs is what one process gets: a jail.Source.
type processInputs struct {
	heard            *ambient.Heard // nil where no times are kept
	given            *ambient.Given // wall times of a replay; nil else
	timer, ticks     ambient.Timer
	places, tickings *ambient.Places // where it reads each
	draws            *ambient.Draws  // nil: the kernel's
	answers          *ambient.Answers
	told             toldTimes

	elapses    bool // it makes durations of the wall time: false where the recorded one did not
	of         *processes
	id, parent uint64
	began      time.Time
	duration   time.Duration // once it has ended
	at         uint64        // the recorder's ordinal when it began
	program    *jail.Program
	by         uint32 // the server that it is of; 0 for none
	over       uint64 // the recorder's ordinal when it had ended
	opened     atomic.Uint64
	inbox      *inbox
	slept      int           // how often it has slept; the jail asks of one thread at a time
	woke       []uint64      // the recorder's ordinals of when it woke
	gone       chan struct{} // closed once it has ended
	awaited    atomic.Bool   // it is about to end, once those have found it that did
	ports      jail.Filler
	tookMS     int64                     // of the recorded process
	died       string                    // likewise: the signal that ended it
	exits      atomic.Pointer[jail.Exit] // how it was about to end; nil where it was not, or a signal ended the recorded one
}

func (i *processInputs) Opened() jail.Filler {
	if i.of.seed == nil {
		return kernelRandom{}
	}
	return i.of.seed.Device(i.id, i.opened.Add(1))
}

func (i *processInputs) Now(place uint64) int64  { return i.timer.Now(i.places.TimeNumber(place)) }
func (i *processInputs) Behind() int64           { return i.timer.Behind() }
func (i *processInputs) Elapses() bool           { return i.elapses }
func (i *processInputs) Tick(place uint64) int64 { return i.ticks.Now(i.tickings.TimeNumber(place)) }
func (i *processInputs) TickBehind() int64       { return i.ticks.Behind() }

// Asked: of a file that is another than it was what was recorded does not hold.
func (i *processInputs) Asked(what, path string, now []byte) []byte {
	asked := strings.TrimSpace(what + " " + i.of.s.roots.TapePath(path))
	b, there := i.recorded(asked)
	if !there {
		return nil
	}
	switch {
	case b == nil:
		b = now
	case strings.HasPrefix(what, "statx"):
		root, _ := i.of.stamps.root(path)
		b = jail.FileAgain(b, now, root != nil)
	}
	i.answers.Gave(asked, b)
	return b
}

// recorded is the recorded answer to what is asked; nil for none, and of a process that has another PID now: it names that. A process is not there
// where the recorded one looked through all and did not find it: pgrep finds on a replay what it found then.
func (i *processInputs) recorded(asked string) (answer []byte, there bool) {
	pid, ofProcess := ambient.ProcessOf(asked)
	if !ofProcess || i.of.pids == nil {
		return i.answers.Next(asked), true
	}
	was, program := i.of.pids.was(pid)
	if was != 0 && pid != i.program.PID && i.answers.Unlisted(was, program) {
		return nil, false
	}
	_, what, _ := strings.Cut(asked, strconv.Itoa(pid))
	answer = i.answers.Next(fmt.Sprintf("read /proc/%d%s", was, what))
	i.of.pids.told(i, was)
	if was != pid {
		return nil, true
	}
	return answer, true
}

// Wrote implements jail.Source.
func (i *processInputs) Wrote(path string, size, at, changed int64) int64 {
	return i.of.stamps.asked(i, path, size, at, changed)
}

// portsDevice is the number of no device: what ports are chosen from.
const portsDevice = math.MaxUint64

func (i *processInputs) Port() uint16 {
	port := jail.PortOf(i.ports)
	i.Has(port)
	return port
}

func (i *processInputs) Has(port uint16) {
	i.of.mu.Lock()
	defer i.of.mu.Unlock()
	i.of.holders[port] = i
}

// holder is whose the port of an address is inside; nil where that is not known.
func (p *processes) holder(remote net.Addr) *processInputs {
	addr, err := netip.ParseAddrPort(remote.String())
	if p == nil || err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holders[addr.Port()]
}

// opener is the process, or thread with times of its own, that opened a connection; 0 where that is not known.
func (p *processes) opener(remote net.Addr) uint64 {
	if in := p.holder(remote); in != nil {
		return in.id
	}
	return 0
}

// asker is the conversation of the MCP server whose process opened a connection; 0 for the program's.
func (p *processes) asker(remote net.Addr) uint64 {
	if in := p.holder(remote); in != nil {
		return p.servers.conversation(in.by)
	}
	return 0
}

// askedBy are the keys that say whose an attempt is: those of an MCP server's, and those of the program and what it runs. Of what may be
// a server and has not spoken yet nobody knows.
func (p *processes) askedBy(s jail.Source) []tape.Field {
	in, _ := s.(*processInputs)
	if in == nil {
		return nil
	}
	if in.by != 0 {
		return tape.NumberField(tape.ConversationKey, p.servers.conversation(in.by))
	}
	return tape.NumberField(tape.OpenerKey, in.id)
}

func (i *processInputs) Fill(place uint64, b []byte) {
	if n := i.places.Number(place); i.draws != nil {
		i.draws.Fill(n, b)
	} else {
		kernelRandom{}.Fill(b)
	}
}

// kernelRandom is the bytes of a process whose seed nobody has.
type kernelRandom struct{}

func (kernelRandom) Fill(b []byte) { _, _ = rand.Read(b) } // never fails

// Started implements jail.Inputs.
func (p *processes) Started(pr *jail.Program) jail.Source {
	in := &processInputs{program: pr, began: time.Now(), at: p.s.rec.Ordinal(), of: p, ports: kernelRandom{}, inbox: newInbox(), gone: make(chan struct{})}
	if parent, ok := pr.Parent.(*processInputs); ok {
		in.parent = parent.id
		if pr.Thread {
			in.inbox = parent.inbox
		}
	}
	in.by = p.servers.of(pr.Host)
	p.mu.Lock()
	was := p.number(in)
	p.hears(in)
	p.live[in.id] = in
	if !pr.Thread {
		p.alive[pr.Host] = in
	}
	p.mu.Unlock()
	if was == nil {
		was = new(tape.ProcessSpawn)
	}
	in.elapses = !tape.HasFlag(was, tape.OwnTicksKey) || tape.HasFlag(was, tape.ElapsedKey)
	if !pr.Forked {
		p.pids.add(pr.PID, was.PID)
	}
	in.tookMS, in.died = was.DurationMS, was.Signal
	in.timer, in.places = p.time("times", in, was.Times, p.clock, nil)
	in.ticks, in.tickings = p.time("ticks", in, was.Ticks, p.ticks, ambient.Ticks())
	if parent, ok := pr.Parent.(*processInputs); ok && pr.Forked {
		in.places.Process, in.tickings.Process = parent.places, parent.tickings
	}
	p.answer(in, was.Answers)
	p.pids.begins(in)
	if p.seed != nil {
		in.draws, in.ports = p.seed.Draws(in.id), p.seed.Device(in.id, portsDevice)
	}
	if p.began != nil {
		p.began(in.id)
	}
	if !pr.Forked {
		p.stamps.look(in, "began")
	}
	return in
}

// hears lets a process hear of answers to it: whose threads share their times with it, or among each other, share this too.
func (p *processes) hears(in *processInputs) {
	if !p.keeps {
		return
	}
	if parent := p.live[in.parent]; parent != nil {
		in.heard = parent.heard
	}
	switch {
	case in.heard == nil || !in.program.Thread:
		in.heard = new(ambient.Heard)
	case in.program.PID != 0:
		in.heard = in.heard.Thread()
	}
}

// number gives a process its number: the next one or, on a replay, that of the recorded process which it is again, which it returns.
func (p *processes) number(in *processInputs) (was *tape.ProcessSpawn) {
	if p.again != nil {
		if p.becomesProgram(in) {
			in.id, was, p.first = programID, p.again.program, in
		} else if !p.left {
			if was = p.again.take(in.parent, p.asRecorded(in), p.reached(), in.program.Before); was != nil {
				in.id = was.SpawnID
			}
		}
	}
	switch {
	case p.first == nil:
		p.first, in.id = in, programID
		p.last = max(p.last, programID)
	case in.id == 0:
		p.last++
		in.id = p.last
	}
	return was
}

// becomesProgram reports whether the replay's first process, another program, becomes the recorded one now: env, say, that was put
// before it.
func (p *processes) becomesProgram(in *processInputs) bool {
	if p.first == nil || p.again.program == nil || in.program.Forked || in.program.Host != p.first.program.Host {
		return false
	}
	if path.Base(p.first.program.Path) == path.Base(p.again.program.Program) { // it is that already
		return false
	}
	is := p.asRecorded(in)
	return path.Base(is.Program) == path.Base(p.again.program.Program) && slices.Equal(is.Args, p.again.program.Args)
}

// time is what tells a process the time by one clock, the kernel's or, on a replay, that of clock, and where it asks.
func (p *processes) time(what string, in *processInputs, recorded *tape.Payload, clock *ambient.Clock, kernel ambient.Timer) (ambient.Timer, *ambient.Places) {
	if clock == nil {
		places := new(ambient.Places)
		return in.heard.Stream(kernel, places), places
	}
	b, err := p.recorded(recorded)
	var g *ambient.Given
	var places *ambient.Places
	if err == nil {
		g, places, err = clock.Given(b)
	}
	if err != nil {
		p.damaged(what, in, err)
		g, places, _ = clock.Given(nil) // none: no error
	}
	if clock == p.clock {
		g.AtWork, g.AtOnce = func() bool { return atWork(in.program.Host) }, in.program.OwnTicks
		p.mu.Lock()
		if parent := p.live[in.parent]; parent != nil && in.program.Thread && in.program.PID != 0 {
			g.Process = parent.given
		}
		in.given = g // answers to the process wait for what it reads
		p.mu.Unlock()
	}
	if p.keeps {
		return in.heard.Stream(g, places), places
	}
	return g, places
}

func (p *processes) damaged(what string, in *processInputs, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.damage = append(p.damage, fmt.Sprintf("%s of process %d: %v", what, in.id, err))
}

// recorded is what a payload of the recording holds; nil for none.
func (p *processes) recorded(from *tape.Payload) ([]byte, error) {
	if from == nil {
		return nil, nil
	}
	return from.Bytes(p.again.store)
}

func (p *processes) answer(in *processInputs, recorded *tape.Payload) {
	b, err := p.recorded(recorded)
	if err == nil {
		in.answers, err = ambient.NewAnswers(p.keeps, b)
	}
	if err != nil {
		p.damaged("answers", in, err)
		in.answers, _ = ambient.NewAnswers(p.keeps, nil) // none: no error
	}
}

// asRecorded is what a process runs, as its record would have said it: an argument that is the PID of a recorded process has that of then.
func (p *processes) asRecorded(in *processInputs) *tape.ProcessSpawn {
	k, _ := p.spawn(in, nil)
	for i, a := range k.Args {
		if pid, err := strconv.Atoi(a); err == nil {
			if was, _ := p.pids.was(pid); was > 0 {
				k.Args[i] = strconv.Itoa(was)
			}
		}
	}
	return k
}

// Ended implements jail.Inputs: it puts the end of a process on the tape. The program's is the run's.
func (p *processes) Ended(s jail.Source, e jail.Ended) {
	in := s.(*processInputs)
	if exits := in.exits.Load(); exits != nil && e.Known { // whoever lost patience killed what was held up at its end, which had done all that it does
		e.Exit = *exits
	}
	close(in.gone)
	if p.over != nil {
		p.over(in.id)
	}
	p.pids.ended(in.id)
	p.mu.Lock()
	if p.live[in.id] == in {
		delete(p.live, in.id)
	}
	if p.alive[in.program.Host] == in {
		delete(p.alive, in.program.Host)
	}
	last := len(p.alive) == 0
	p.mu.Unlock()
	if last {
		kept.forget()
	}
	in.duration, in.over = time.Since(in.began), p.s.rec.Ordinal()
	var passed *listening
	if !e.Again && !in.program.Forked {
		passed = p.servers.takeListening(in.program.Host)
	}
	switch {
	case in.id == programID:
	case passed != nil:
		p.endedBehind(passed, in, e)
	case in.by != 0: // its end stands where whoever talked with it has had all that it said
		p.endedBehind(&listening{done: p.servers.settled(in.by)}, in, e)
	default:
		p.ended(in, e, nil)
	}
}

// endedBehind puts the end of a process on the tape once what passed on its streams is known.
func (p *processes) endedBehind(l *listening, in *processInputs, e jail.Ended) {
	p.ends.Go(func() {
		select {
		case <-l.done:
		case <-p.drained:
		}
		select {
		case <-l.done:
			p.ended(in, e, l.heard)
		default:
			p.ended(in, e, nil)
		}
	})
}

func (p *processes) ended(in *processInputs, e jail.Ended, heard *heardStreams) {
	k, raw := p.spawn(in, &e)
	err := p.keep(in, k)
	if heard != nil && err == nil {
		err = heard.add(k)
	}
	if err != nil {
		p.s.fail(err)
		return
	}
	_ = p.s.rec.RecordRaw(k, raw) // the recorder tells fail
}

// keep adds to a process's record what it was given.
func (p *processes) keep(in *processInputs, k *tape.ProcessSpawn) (err error) {
	k.Extra = append(k.Extra, tape.FlagFields(map[string]bool{tape.OwnTicksKey: in.program.OwnTicks, tape.ElapsedKey: in.program.OwnTicks && in.elapses})...)
	p.mu.Lock()
	if len(in.woke) > 0 {
		woke, _ := json.Marshal(in.woke) // numbers
		k.Extra = append(k.Extra, tape.Field{Name: tape.WokeKey, Value: woke})
	}
	p.mu.Unlock()
	if k.Times, err = p.times(in.timer); err != nil {
		return err
	}
	if k.Ticks, err = p.times(in.ticks); err != nil {
		return err
	}
	if b := in.answers.Encode(p.s.scrub.String); b != nil {
		k.Answers, err = p.s.rec.Payload(b)
	}
	return err
}

// times are those that a process read, where they are kept.
func (p *processes) times(from ambient.Timer) (*tape.Payload, error) {
	s, ok := from.(*ambient.Stream)
	if !ok {
		return nil, nil
	}
	b, lost := s.Times()
	if lost > 0 {
		p.mu.Lock()
		p.lost += lost
		p.mu.Unlock()
	}
	if len(b) == 0 {
		return nil, nil
	}
	return p.s.rec.Payload(b)
}

// spawn is the record of a process that ended so; nil for one that has not.
func (p *processes) spawn(in *processInputs, e *jail.Ended) (*tape.ProcessSpawn, []tape.RawBytes) {
	t := texts{s: p.s}
	k := &tape.ProcessSpawn{SpawnID: in.id, ParentSpawnID: in.parent, PID: in.program.PID, Args: []string{}}
	if e != nil {
		exit := exitOf(e.Exit)
		k.ExitCode, k.Signal, k.DurationMS = exit.Code, exit.Signal, in.duration.Milliseconds()
	}
	flags := map[string]bool{tape.ForkedKey: in.program.Forked}
	if e != nil {
		flags[tape.LeftKey], flags[tape.AgainKey] = e.Left, e.Again
	}
	k.Extra = slices.Concat(tape.FlagFields(flags), tape.NumberField(tape.ConversationKey, p.servers.conversation(in.by)),
		tape.NumberField(tape.PlaceKey, in.at), tape.NumberField(tape.OverKey, in.over), tape.NumberField(tape.ThreadKey, in.program.Nth))
	if in.program.Forked {
		return k, nil
	}
	argv := slices.Clone(in.program.Argv)
	for _, i := range in.program.Handed {
		argv[i] = handedDown
	}
	t.say(k, in.program.Path, argv[min(1, len(argv)):], in.program.Dir)
	return k, t.raw
}

// handedDown stands for an argument that is the number of a descriptor.
const handedDown = "<descriptor>"

// drain waits until every process is on the tape. All have ended.
func (p *processes) drain() {
	if p != nil {
		close(p.drained)
		p.ends.Wait()
	}
}

// program adds to the record of the program what is known of its process.
func (p *processes) program(k *tape.ProcessSpawn) (err error) {
	if p == nil || p.first == nil {
		return nil
	}
	k.SpawnID, k.PID = programID, p.first.program.PID
	return p.keep(p.first, k)
}

// texts makes strings of a record out of what a program said.
type texts struct {
	s   *session
	raw []tape.RawBytes
}

// say says in k which program it is of: its file, its arguments and its directory, "" where that is not known.
func (t *texts) say(k *tape.ProcessSpawn, path string, args []string, dir string) {
	k.Program = t.safe("program", t.s.roots.TapePath(path))
	for i, a := range args {
		k.Args = append(k.Args, t.safe(fmt.Sprintf("args.%d", i), a))
	}
	if dir != "" {
		cwd := t.safe("cwd", t.s.roots.TapePath(dir))
		k.Cwd = &cwd
	}
}

func (t *texts) safe(key, v string) string {
	text, bytes := tape.SafeString(t.s.scrub.String(v))
	if bytes != nil {
		t.raw = append(t.raw, tape.RawBytes{Key: key, Bytes: bytes})
	}
	return text
}
