package deck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A run is one program in the jail.
type run struct {
	s *session

	path string // resolved
	argv []string
	env  []string // the program's own, before jailEnv
	dir  string
	std  Streams
	tty  *TTY // nil for none

	hostname string
	writable []string       // record: directories of the host
	overlays []jail.Overlay // replay and isolated: in the place of writable
	masks    []string
	net      network.Config // Tap, Book and the like; the rest is filled in here
	ports    []uint16
	signals  <-chan os.Signal

	// after looks at the work tree inside the jail once the program has ended. nil for not at all.
	after func(root string) error
}

// ended is what is known when the program has ended and its world is gone.
type ended struct {
	exit     Exit
	duration time.Duration
	streams  *streams
	gaps     []string      // what the jail could not cover
	stdin    *tape.Payload // known once recorded
}

// do starts the program, serves it until it ends and takes its world down. What it did to the network and its streams is
// on the tape then; its process_spawn is not yet.
func (r *run) do(ctx context.Context) (*ended, error) {
	st, err := openStreams(r.s, &r.std, r.tty)
	if err != nil {
		return nil, err
	}
	defer st.closeCaller()
	ca, err := network.NewCA()
	if err != nil {
		return nil, err
	}
	j, err := jail.Start(ctx, r.jailConfig(st, ca))
	st.closeProgram()
	if err != nil {
		return nil, err
	}
	defer j.Close()

	stopNet, refusalsDone, err := r.serve(j, ca)
	if err != nil {
		return nil, err
	}
	st.relay()
	exit, took, err := r.wait(j)
	stopNet()
	if err == nil {
		err = r.lookAfter(j)
	}
	if errClose := j.Close(); errClose != nil {
		r.s.log.Warn("the jail did not end cleanly", "err", errClose)
	}
	refusalsDone()
	if err != nil {
		return nil, err
	}
	st.drain()
	return &ended{exit: exitOf(exit), duration: took, streams: st, gaps: jailGaps(j)}, nil
}

// jailGaps lists what the jail could not cover on this system, or lost.
func jailGaps(j *jail.Jail) []string {
	gaps := j.NotCovered()
	if n := j.RefusalsLost(); n > 0 {
		gaps = append(gaps[:len(gaps):len(gaps)], fmt.Sprintf("%d refused connections: they came faster than they could be recorded", n))
	}
	return gaps
}

// wait lets the program go and waits for its end.
func (r *run) wait(j *jail.Jail) (jail.Exit, time.Duration, error) {
	begun := time.Now()
	if err := j.Release(); err != nil {
		return jail.Exit{}, 0, err
	}
	stop := passSignals(j, r.signals)
	defer stop()
	exit, err := j.Wait()
	if err != nil {
		return jail.Exit{}, 0, fmt.Errorf("the jail ended before its program: %w", err)
	}
	return exit, time.Since(begun), nil
}

func (r *run) jailConfig(st *streams, ca *network.CA) *jail.Config {
	return &jail.Config{
		Path: r.path, Argv: r.argv, Env: jailEnv(r.env), Dir: r.dir,
		Stdin: st.program[0], Stdout: st.program[1], Stderr: st.program[2], TTY: st.ttyIndex(),
		Hostname: r.hostname,
		Ports:    r.ports,
		Writable: r.writable,
		Overlays: r.overlays,
		Masks:    r.masks,
		Files:    []jail.File{{Path: caBundle, Data: ca.Bundle(), Over: network.BundlePaths()}},
		Log:      r.s.log,
	}
}

// serve answers the program's network until close is called, which returns when every exchange that was under way has
// been recorded as ended. What was refused is recorded until the jail is closed; done waits for that.
func (r *run) serve(j *jail.Jail, ca *network.CA) (close func(), done func(), err error) {
	names, once := new(network.Names), newOnce(r.s)
	cfg := r.net
	cfg.CA, cfg.Names, cfg.Tap, cfg.Log, cfg.Refused = ca, names, r.s.tap, r.s.log, once.record
	srv, err := network.New(&cfg)
	if err != nil {
		return nil, nil, err
	}
	dns := network.NewDNS(names)
	var serving, refusing sync.WaitGroup
	start := func(what string, serve func() error) {
		serving.Go(func() {
			if err := serve(); err != nil {
				r.s.log.Error("a listener of the jail ended", "what", what, "err", err)
			}
		})
	}
	for _, l := range j.Listeners() {
		start(l.Addr().String(), func() error { return srv.Serve(l) })
	}
	packets, stream := j.DNS()
	start("DNS over UDP", func() error { return dns.ServeUDP(packets) })
	start("DNS over TCP", func() error { return dns.ServeTCP(stream) })
	refusing.Go(func() {
		for ref := range j.Refusals() {
			once.record(refusal(&ref, names))
		}
	})
	close = func() {
		srv.Close()
		dns.Close()
		serving.Wait()
	}
	return close, refusing.Wait, nil
}

// refusal is the record of what the jail did not let out. An address that our DNS gave out is recorded by its name.
func refusal(ref *jail.Refusal, names *network.Names) *tape.NetRefused {
	addr := ""
	if ref.Addr.IsValid() {
		addr = ref.Addr.String()
		if name, ok := names.Name(ref.Addr); ok {
			addr = name
		}
	}
	return &tape.NetRefused{Addr: addr, Port: int(ref.Port), Reason: ref.Reason}
}

// lookAfter opens the work tree inside the jail, where the program's world still stands, and hands it to after.
func (r *run) lookAfter(j *jail.Jail) error {
	if r.after == nil || r.s.roots.Tree == "" {
		return nil
	}
	root, err := j.OpenRoot(r.s.roots.Tree)
	if err != nil {
		return fmt.Errorf("work tree inside the jail: %w", err)
	}
	defer root.Close()
	return r.after(fmt.Sprintf("/proc/self/fd/%d", root.Fd()))
}

// spawnRecord is the process_spawn of the program itself, the last of its tape.
func (r *run) spawnRecord(e *ended) (*tape.ProcessSpawn, []tape.RawBytes, error) {
	out, outDigest, err1 := e.streams.out[1].Finish()
	errs, errDigest, err2 := e.streams.out[2].Finish()
	in, _, err3 := e.streams.out[0].Finish()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, nil, err
	}
	var raw []tape.RawBytes
	safe := func(key, v string) string {
		text, bytes := tape.SafeString(r.s.scrub.String(v))
		if bytes != nil {
			raw = append(raw, tape.RawBytes{Key: key, Bytes: bytes})
		}
		return text
	}
	sp := &tape.ProcessSpawn{
		Program:  safe("program", r.s.roots.tapePath(r.path)),
		ExitCode: e.exit.Code, Signal: e.exit.Signal, DurationMS: e.duration.Milliseconds(),
		Stdin: in, Stdout: out, Stderr: errs, StdoutDigest: outDigest, StderrDigest: errDigest,
	}
	for i, a := range r.argv[1:] {
		sp.Args = append(sp.Args, safe(fmt.Sprintf("args.%d", i), a))
	}
	cwd := safe("cwd", r.s.roots.tapePath(r.dir))
	sp.Cwd = &cwd
	return sp, raw, nil
}

// recordEnd puts on the tape what the run changed in the work tree, then the program's own spawn.
func (r *run) recordEnd(e *ended, t *trees, sync bool) error {
	if err := t.record(sync); err != nil {
		return err
	}
	sp, raw, err := r.spawnRecord(e)
	if err != nil {
		return err
	}
	e.stdin = sp.Stdin
	return errors.Join(r.s.rec.RecordRaw(sp, raw), r.s.rec.Flush())
}

// passSignals sends what arrives on signals to the program until the returned function is called.
func passSignals(j *jail.Jail, signals <-chan os.Signal) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case sig := <-signals:
				if s, ok := sig.(syscall.Signal); ok {
					j.Signal(s)
				}
			}
		}
	}()
	return func() { close(done) }
}

func exitOf(e jail.Exit) Exit {
	if e.Signal != 0 {
		return Exit{Code: 128 + int(e.Signal), Signal: signalName(e.Signal)}
	}
	return Exit{Code: e.Code}
}

// once records each refusal of the network a single time: a program that tries again and again says nothing new.
type once struct {
	s *session

	mu   sync.Mutex
	seen map[attempt]bool
}

// An attempt is what makes two refusals one.
type attempt struct {
	kind, addr string
	port       int
	reason     string
}

func newOnce(s *session) *once { return &once{s: s, seen: make(map[attempt]bool)} }

func (o *once) record(k tape.Kind) {
	a := attempt{kind: k.Name()}
	switch k := k.(type) {
	case *tape.NetRefused:
		a.addr, a.port, a.reason = k.Addr, k.Port, k.Reason
	case *tape.TLSRefused:
		a.addr, a.port, a.reason = k.Host, k.Port, k.Reason
	}
	o.mu.Lock()
	seen := o.seen[a]
	o.seen[a] = true
	o.mu.Unlock()
	if !seen {
		o.s.record(k)
	}
}
