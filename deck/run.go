package deck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/files"
	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/axis/process"
	"github.com/tapedeck-dev/tapedeck/deck/procgroup"
	"github.com/tapedeck-dev/tapedeck/deck/program"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/deck/rescrub"
	"github.com/tapedeck-dev/tapedeck/deck/screen"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A run is one program in its world.
type run struct {
	s *session

	path     string // resolved
	argv     []string
	env      []string // the program's own, before ownEnv
	dir      string
	std      Streams
	tty      *recording.TTY  // nil for none
	keys     io.Reader       // replay: typed beside a stdin that was no terminal; nil for none
	id       string          // of the recording; of a replay empty
	sync     bool            // what is written must outlive a loss of power
	watcher  *screen.Watcher // replay: knows what the screen must show before keys are typed; nil for nobody
	patience time.Duration   // replay: with a screen that does not come; 0 is the usual

	net     network.Config // Tap, Book and the like; the rest is filled in here
	signals <-chan os.Signal

	proxy    bool // outside the jail
	loopback bool // outside: requests to the loopback go through the proxy too

	// What follows is the jail's.
	prepared *jail.Prepared // its init; nil starts one
	ca       *network.CA    // of its certificates; nil makes one
	host     *recording.Host
	umask    *int           // nil for the recorder's own
	writable []string       // record: directories of the host
	overlays []jail.Overlay // replay and isolated: in the place of writable
	masks    []string
	ports    []uint16

	changing *changing // what follows the files that the program changes
	spawns   *spawns   // what stands between the program and those that it talks with; nil for nothing
	// processes gives time and randomness; nil leaves both to the kernel.
	processes *processes
	overdue   *overdue // of a replay
	// before is done while the program's world is made, and has ended before the program starts; nil for nothing.
	before func() error
	// after looks at the work tree once the program has ended. nil for not at all.
	after func(root string) error
}

// ended is what is known when the program has ended and its world is gone.
type ended struct {
	exit     recording.Exit
	duration time.Duration
	atMS     int64 // when that was, by the tape's time
	streams  *streams
	signals  int           // passed on to the program
	overdue  overdueWhy    // why it was ended
	stdin    *tape.Payload // known once recorded
	gaps     []string      // what the jail could not cover on this system
	unmasked []string      // streams that compare without masks; known once recorded
}

// do starts the program, serves it until it ends and takes its world down. What it did to the network and its streams is
// on the tape then; its process_spawn is not yet.
func (r *run) do(ctx context.Context) (*ended, error) {
	st, err := openStreams(r)
	if err != nil {
		return nil, err
	}
	defer st.close()
	defer st.closeProgram()
	ca := r.ca
	if ca == nil {
		if ca, err = network.NewCA(); err != nil {
			return nil, err
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(r.s.failed, end)()
	defer r.spawns.stop()
	n := r.openNet(ca)
	defer n.close()
	w, err := r.worldMeanwhile(ctx, end, st, ca)
	if err != nil {
		return nil, err
	}
	closed := sync.OnceValue(w.Close)
	e, err := r.serveUntilEnd(w, closed, n, st)
	if errClose := closed(); errClose != nil {
		r.s.log.Warn("the program's world did not end cleanly", "err", errClose)
	}
	st.closeProgram()
	r.processes.drain()
	r.s.endConversations()
	st.drain() // the program's ends are closed now: what it wrote has an end
	if e == nil || e.exit.Signal != "" {
		st.undo()
	}
	if err == nil && st.con != nil {
		st.con.tape.finish(e)
	}
	return e, err
}

// worldMeanwhile makes the world while r.before is done: making one is mostly waiting for its init. abandon ends it where r.before fails.
func (r *run) worldMeanwhile(ctx context.Context, abandon func(), st *streams, ca *network.CA) (w world, err error) {
	if r.before == nil {
		return r.world(ctx, st, ca)
	}
	var making sync.WaitGroup
	making.Go(func() { w, err = r.world(ctx, st, ca) })
	errBefore := r.before()
	if errBefore != nil {
		abandon()
	}
	making.Wait()
	if errBefore == nil {
		return w, err
	}
	if err == nil {
		w.Close()
	}
	return nil, errBefore
}

func (r *run) world(ctx context.Context, st *streams, ca *network.CA) (world, error) {
	if r.proxy {
		return newOutside(ctx, r, st, ca)
	}
	bundle := jail.File{Path: program.CABundle, Data: ca.BehindRoots(), Over: network.BundlePaths()}
	if roots := network.Roots(); roots != nil {
		defer roots.Close()
		bundle.Behind = int(roots.Fd())
	}
	j, err := jail.Start(ctx, r.jailConfig(st, bundle))
	if err != nil {
		return nil, err
	}
	return jailed{j}, nil
}

// serveUntilEnd runs the program in w. It may begin to close that.
func (r *run) serveUntilEnd(w world, closed func() error, n *servedNet, st *streams) (*ended, error) {
	stopNet, err := r.serve(w, n)
	if err != nil {
		return nil, err
	}
	if err := r.changing.begin(w); err != nil {
		stopNet()
		return nil, err
	}
	st.relay(w)
	e := &ended{streams: st}
	err = r.wait(w, e)
	st.stopInput()
	stopNet()
	if err != nil {
		return nil, err
	}
	if err := r.lookAfter(w, closed); err != nil {
		return nil, fmt.Errorf("%w: work tree after the run: %w", errWorldEnded, err)
	}
	e.gaps = w.gaps()
	return e, nil
}

// lookAfter looks at the work tree while the world ends, which takes the kernel a while: what covers files there is held.
func (r *run) lookAfter(w world, closed func() error) error {
	tree := r.s.roots.Tree
	if r.after == nil || tree == "" {
		return nil
	}
	dir, err := w.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer dir.Close()
	go closed() // do waits for it
	return r.after(recording.DescriptorPath(dir, tree))
}

// errWorldEnded is wrapped where the jail was ended from outside: how the program would have ended, or what it left, nobody knows.
var errWorldEnded = errors.New("the program's world ended too early")

// wait lets the program go and waits for its end.
func (r *run) wait(w world, e *ended) error {
	begun := time.Now()
	err := w.Release()
	e.streams.closeProgram()
	if err != nil {
		return err
	}
	endSignals, endJob := passSignals(w, r.signals, e.streams.con.signalled), r.keepJob(w, e.streams)
	endWatch := r.overdue.watch(func() { _ = w.Signal(syscall.SIGKILL) }) // it may have ended
	exit, err := w.Wait()
	e.overdue = endWatch()
	endJob()
	e.exit, e.duration, e.signals = exitOf(exit), time.Since(begun), endSignals()
	e.atMS = r.s.rec.MonotonicMS()
	r.spawns.drain() // before the program's own streams end: what a server wrote to stderr may go there
	if cause := r.s.failure(); cause != nil {
		return cause // it was ended for that
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errWorldEnded, err)
	}
	return nil
}

func (r *run) jailConfig(st *streams, bundle jail.File) *jail.Config {
	env := program.Env(r.env, program.CABundle)
	return &jail.Config{
		Path: r.path, Argv: r.argv, Env: env, Dir: r.dir,
		Stdin: st.program[0], Stdout: st.program[1], Stderr: st.program[2], TTY: st.ttyIndex(), Background: st.con.background(),
		Hostname: r.host.Name,
		Umask:    r.umask,
		Ports:    r.ports,
		Writable: r.writable,
		Overlays: r.overlays,
		Masks:    r.masks,
		Files:    append(procFiles(r.host), bundle),
		Prepared: r.prepared,
		Watch:    r.changing,
		Began:    r.s.start,
		Spawns:   r.spawns.watcher(env),
		Inputs:   r.processes.inputs(),
		Shifted:  r.processes.replays(),
		Log:      r.s.log,
	}
}

// A servedNet is what a program's network is answered by. It is made while the world is.
type servedNet struct {
	names   network.Names
	refused *refusalLog
	server  func() (*network.Server, error) // waits until it is made
}

func (r *run) openNet(ca *network.CA) *servedNet {
	n := &servedNet{refused: &refusalLog{s: r.s, seen: make(map[string]map[uint16]bool)}}
	cfg := r.net
	cfg.CA, cfg.Names, cfg.Tap, cfg.Log, cfg.Refused = ca, &n.names, r.s.tap, r.s.log, n.refused.record
	cfg.Opener, cfg.Giving = r.processes.opener, r.processes.giving
	n.server = sync.OnceValues(func() (*network.Server, error) { return network.New(&cfg) })
	go n.server() // close waits for it
	return n
}

// close ends the server, also where nothing was served.
func (n *servedNet) close() {
	if srv, err := n.server(); err == nil {
		srv.Close()
	}
}

// serve answers the program's network until stop is called, which returns when every exchange that was under way has been
// recorded as ended, and everything that was refused.
func (r *run) serve(w world, n *servedNet) (stop func(), err error) {
	names, refused := &n.names, n.refused
	srv, err := n.server()
	if err != nil {
		return nil, err
	}
	dns := network.NewDNS(names, func(l *tape.NameLookup, from net.Addr) {
		l.Extra = r.processes.askedBy(r.processes.holder(from))
		refused.record(l)
	})
	var serving sync.WaitGroup
	w.carry(&carried{
		srv: srv, dns: dns,
		refused: func(ref *jail.Refusal) {
			k := refusal(ref, names)
			k.Extra = r.processes.askedBy(ref.By)
			refused.recordFrom(k, ref.From)
		},
		start: func(what string, serve func() error) {
			serving.Go(func() {
				if err := serve(); err != nil && !errors.Is(err, net.ErrClosed) {
					r.s.log.Error("a listener of the program's world ended", "what", what, "err", err)
				}
			})
		},
	})
	return func() {
		srv.Close()
		dns.Close()
		w.StopNetwork()
		serving.Wait()
	}, nil
}

// refusal is the record of what the jail did not let out. An address that our DNS gave out is recorded by its name.
func refusal(ref *jail.Refusal, names *network.Names) *tape.NetRefused {
	addr := ref.Path
	if ref.Addr.IsValid() {
		addr = ref.Addr.String()
		if name, ok := names.Name(ref.Addr); ok {
			addr = name
		}
	}
	return &tape.NetRefused{Addr: addr, Port: int(ref.Port), Reason: ref.Reason}
}

// spawnRecord is the process_spawn of the program itself, the last of its tape.
func (r *run) spawnRecord(e *ended) (*tape.ProcessSpawn, []tape.RawBytes, error) {
	out, err1 := e.streams.out[1].Finish()
	errs, err2 := e.streams.out[2].Finish()
	in, err3 := e.streams.out[0].Finish()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, err
	}
	for name, k := range map[string]*process.Kept{"stdout": out, "stderr": errs} {
		if !k.Masked {
			e.unmasked = append(e.unmasked, fmt.Sprintf("%s is over %d MiB: it compares byte for byte, without masks", name, process.MaskLimit>>20))
		}
	}
	t := texts{s: r.s}
	sp := &tape.ProcessSpawn{
		ExitCode: e.exit.Code, Signal: e.exit.Signal, DurationMS: e.duration.Milliseconds(),
		Extra: tape.EndedField(e.atMS),
		Stdin: in.Payload, Stdout: out.Payload, Stderr: errs.Payload, StdoutDigest: out.Digest, StderrDigest: errs.Digest,
	}
	t.say(sp, r.path, r.argv[1:], r.dir)
	return sp, t.raw, r.processes.program(sp)
}

// rescrubOptions say how a rescrub works. Zero works.
type rescrubOptions struct {
	off      bool // of a replay whose recording was made by a tapedeck that did not do so: it would compare otherwise
	sync     bool
	progress func(items int, bytes int64, done bool) // nil for nobody
}

// newRescrub returns what takes out of s what became known since it began; nil where nothing did.
func newRescrub(s *session, c *changing, o rescrubOptions) (*rescrub.Pass, error) {
	find := s.scrub.Since(s.begun)
	if find == nil || o.off {
		return nil, nil
	}
	mask, err := s.masking.Masker(s.redactor.roots)
	if err != nil {
		return nil, &rescrub.Error{Dir: s.dir, Holds: rescrub.Parts(), Err: err}
	}
	w := &rescrub.Written{
		Dir: s.dir, Store: s.store, Find: find, All: s.scrub, Mask: mask, FollowsMCP: s.redactor.mcp != nil, Rec: s.rec,
		Sync: o.sync, Progress: o.progress,
	}
	if c != nil {
		w.Made, w.Files, w.Tree = c.trees.made, c.hideLate, func() *files.Tree { return c.trees.before }
	}
	return rescrub.New(w), nil
}

// recordEnd puts on the tape what the program changed last, then its own spawn, and closes the tape; then it writes what the
// changes come to. What became known late is in none of it; the caller ends the rescrub, which may be nil, when it has written
// the rest.
func (r *run) recordEnd(e *ended, o rescrubOptions) (*rescrub.Pass, error) {
	if err := e.streams.finish(); err != nil { // the last that teaches secrets
		return nil, err
	}
	l, err := endTape(r.s, r.changing, r.tty, o, func() error {
		if err := r.changing.end(); err != nil {
			return err
		}
		sp, raw, err := r.spawnRecord(e)
		if err != nil {
			return err
		}
		e.stdin = sp.Stdin
		return r.s.rec.RecordRaw(sp, raw)
	})
	if err != nil {
		return l, err
	}
	if l != nil && l.Stdin != nil {
		e.stdin = l.Stdin
	}
	return l, r.changing.write(o.sync)
}

// endTape ends the tape of s, on which record puts the last records, the program's own at the end. What became known late is taken out of
// what was written before.
func endTape(s *session, c *changing, tty *recording.TTY, o rescrubOptions, record func() error) (*rescrub.Pass, error) {
	l, err := newRescrub(s, c, o)
	if err != nil {
		return nil, err
	}
	defer l.End()
	if err := l.BeforeEnd(); err != nil {
		return l, err
	}
	if err := errors.Join(record(), s.close()); err != nil {
		return l, err
	}
	if l != nil { // styles and wraps hide what became known late from who looks at bytes
		l.TTY, l.Program = tty, uint64(s.rec.Count()-1)
	}
	return l, l.AfterEnd()
}

func exitOf(e jail.Exit) recording.Exit {
	if e.Signal != 0 {
		return recording.Exit{Code: 128 + int(e.Signal), Signal: procgroup.Name(e.Signal)}
	}
	return recording.Exit{Code: e.Code}
}

// A refusalLog records each refusal of the network, and each name that was looked up, a single time: a program that tries again and
// again says nothing new. Of datagrams that is each socket, which sends them again when time has passed.
type refusalLog struct {
	s *session

	mu   sync.Mutex
	seen map[string]map[uint16]bool // by what makes two refusals or look-ups one, and for datagrams by the socket's port
}

// maxSenders is of how many sockets at most datagrams to one address are recorded.
const maxSenders = 64

func (l *refusalLog) record(k tape.Kind) { l.recordFrom(k, 0) }

// recordFrom is record for a datagram, sent from a port.
func (l *refusalLog) recordFrom(k tape.Kind, from uint16) {
	var what string
	switch k := k.(type) {
	case *tape.NetRefused:
		k.Addr = l.s.scrub.String(k.Addr)
		what = fmt.Sprintln(k.Addr, k.Port, k.Reason)
	case *tape.TLSRefused:
		k.Host = l.s.scrub.String(k.Host)
		what = fmt.Sprintln(k.Host, k.Port, k.Reason)
	case *tape.NameLookup:
		k.Host = l.s.scrub.String(k.Host)
		what = fmt.Sprintln(k.Host, k.Type, k.Result)
	}
	what = fmt.Sprintln(k.Name(), tape.OriginOf(k), what)
	l.mu.Lock()
	if l.seen[what] == nil {
		l.seen[what] = make(map[uint16]bool)
	}
	seen := l.seen[what][from] || len(l.seen[what]) == maxSenders
	if !seen {
		l.seen[what][from] = true
	}
	l.mu.Unlock()
	if !seen {
		_ = l.s.rec.Record(k) // the recorder tells fail
	}
}

// ErrInterrupted is returned where a signal came before the program was started: there is nothing to pass it on to.
var ErrInterrupted = errors.New("interrupted before the program started")

// interrupted reports a signal that waits and would have ended the program.
func interrupted(signals <-chan os.Signal) error {
	select {
	case sig, ok := <-signals:
		if ok && ends(sig) {
			return ErrInterrupted
		}
	default:
	}
	return nil
}

// untilInterrupted returns a context that ends with ErrInterrupted as its cause at a signal that would have ended the program.
// What else comes until stop, before there is a program, is dropped.
func untilInterrupted(ctx context.Context, signals <-chan os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	end := onSignals(signals, func(sig os.Signal) {
		if ends(sig) {
			cancel(ErrInterrupted)
		}
	})
	return ctx, func() {
		end()
		cancel(nil)
	}
}

// ends reports whether a signal would have ended the program.
func ends(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// passSignals passes signals on to the program until end, which returns how many it got. told is told of each.
func passSignals(w world, signals <-chan os.Signal, told func(syscall.Signal)) (end func() (passed int)) {
	passed := 0
	stop := onSignals(signals, func(sig os.Signal) {
		if s, ok := sig.(syscall.Signal); ok && w.Signal(s) == nil {
			told(s)
			passed++
		}
	})
	return func() int {
		stop()
		return passed
	}
}

// onSignals calls do with each signal that comes until stop, which waits for what is done with the last one.
func onSignals(signals <-chan os.Signal, do func(os.Signal)) (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case sig, ok := <-signals:
				if !ok {
					signals = nil // a closed channel would be ready for ever
				} else {
					do(sig)
				}
			}
		}
	}()
	return func() {
		close(end)
		<-done
	}
}
