package mcp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/lend"
)

// RelayOptions say what a Relay copies between. Every file becomes the Relay's own, which closes it; those of stdin and stdout must be
// pipes or stream sockets, and the two of a side may be one socket: the same file then.
type RelayOptions struct {
	Log    *Log
	Opened *Opened

	// ClientIn is read: what the client writes for the server's stdin. ClientOut and ClientErr are written: what it reads. ClientErr
	// may be nil: nothing is done about stderr then.
	ClientIn, ClientOut, ClientErr *os.File
	// ServerIn is written: the server's stdin. ServerOut and ServerErr are read. Without a Log, ClientOut and ServerOut may both be nil: input
	// alone passes.
	ServerIn, ServerOut, ServerErr *os.File

	// Refuse is for a replay, in which no server may be talked with that is on no tape. When the client's first line opens a
	// conversation, Refuse answers that and each further line of the client; the server gets none of it, and what it writes goes nowhere.
	// Nil is for recording.
	Refuse *Refusal

	// Heard, if given, takes what passes where it is no conversation.
	Heard *Heard

	settles time.Duration // how long the client may take to read; 0 is settleFor
}

// Relay copies between a client and a server until both directions have ended, or ctx has. What it copies is undecided until the
// client's first line, then either a conversation, which Relay begins, or nothing of MCP's, and copied as it comes.
//
// It returns the conversation, nil for none, which the caller ends (Conversation.End) when it knows how the server's process did. An
// error is the recorder's, or that of a file that cannot be used; all files are closed in any case.
func Relay(ctx context.Context, o *RelayOptions) (*Conversation, error) {
	t, err := newRelay(o)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, t.close)
	defer stop()
	t.run()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conversation, t.failed.get()
}

// run copies until both directions have ended.
func (t *relay) run() {
	var all sync.WaitGroup // of the goroutines below, each of which ends with its files
	all.Go(func() { t.copy(t.clientIn, t.serverIn, Client, t.fromClient, t.clientEnded) })
	all.Go(func() {
		defer close(t.left)
		t.watch(t.serverIn, t.clientIn, Server)
	})
	if t.serverOut != nil {
		all.Go(func() { t.copy(t.serverOut, t.clientOut, Server, t.fromServer, t.serverEnded) })
		all.Go(func() { t.watch(t.clientOut, t.serverOut, Client) })
	}
	if t.serverErr != nil {
		all.Go(func() { t.errs.copy(t) })
		all.Go(func() { t.watch(t.clientErr, t.serverErr, "") })
	}
	all.Wait()
	if err := t.endHeard(); err != nil {
		t.fail(err)
	}
}

// A relay is what a Relay copies.
type relay struct {
	o                              *RelayOptions
	clientIn, serverOut, serverErr *end          // read
	serverIn, clientOut, clientErr *end          // written
	leaving                        time.Duration // see the constant
	left                           chan struct{} // closed once nobody waits for the server to leave its stdin any more

	failed       firstError
	mu           sync.Mutex
	state        state
	conversation *Conversation
	early        early   // what came before the state was decided
	closed       bool    // by the recorder
	missed       bool    // some of what the server wrote came before that, and was too much to be kept
	whole        [3]bool // streams that came to their own end

	errs errs

	client lines  // of who copies from the client
	asked  int    // the same's: bytes that came while undecided
	server lines  // of who copies from the server, once the relay is decided
	told   bool   // of the same: the server's last line held no answer
	parts  []part // of the same: of what is passed on next
}

// errs is what a relay passes on of the server's stderr.
type errs struct {
	mu   sync.Mutex // held by who passes it on; never while that waits
	rest []byte     // guarded by mu: what was taken and is to be written
}

// state says what a relay is.
type state uint8

const (
	undecided state = iota
	recorded        // a conversation
	plain           // anything else
	refused         // a conversation that Refuse answers
)

func newRelay(o *RelayOptions) (*relay, error) {
	t := &relay{o: o, leaving: leaving, left: make(chan struct{}), client: lines{limit: MaxLine}, server: lines{limit: MaxLine}}
	if o.Log == nil {
		t.state = plain
	}
	var all [4]error
	t.clientIn, t.clientOut, all[0] = endPair(o.ClientIn, o.ClientOut)
	t.serverIn, t.serverOut, all[1] = endPair(o.ServerIn, o.ServerOut)
	if o.ClientErr != nil && o.ServerErr != nil && o.ServerErr != o.ServerOut { // 2>&1 is one stream
		t.clientErr, all[2] = newEnd(o.ClientErr)
		t.serverErr, all[3] = newEnd(o.ServerErr)
	}
	if err := errors.Join(all[:]...); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// close ends all that is under way.
func (t *relay) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	for _, e := range []*end{t.clientIn, t.clientOut, t.clientErr, t.serverIn, t.serverOut, t.serverErr} {
		e.close()
	}
}

// fail ends the relay with the recorder's error.
func (t *relay) fail(err error) {
	t.failed.set(err)
	t.close()
}

// endedBy says who closed its side of the relay.
func (t *relay) endedBy(side Side) {
	t.mu.Lock()
	c, passed := t.conversation, t.closed || t.state == refused // the client of a refused server talks on with us
	t.mu.Unlock()
	if passed || side == stderrSide || side == "" {
		return
	}
	if side == Server && t.clientIn.hungUp() {
		side = Client // whoever comes to know of it first: what a program leaves running is killed for it
	}
	// Or the other way round: a client leaves a server of which it was told that its process is gone.
	c.endedBy(side, side == Client && t.serverIn.hungUp() && t.serverOut.hungUp())
}

// watch waits until nobody reads what is written to to any more, and ends what is read from from for it: who writes there is to
// learn of it at once, as without a Relay. by is whose end it was.
func (t *relay) watch(to, from *end, by Side) {
	if to.gone() {
		t.endedBy(by)
		from.closeReadWhole()
	}
}

// leaving is how long a process that ends takes at most to leave its stdin once it has left its stdout: the kernel closes them in no
// order that can be relied on, and others may run in between.
const leaving = time.Second

// hangUp is watch for who sees that from has ended, before that is passed on. Of a server that has ended nobody reads what it is asked, and
// its client, which may ask again when it sees the end, is to find that so by then: a replay closes both at once. Of a socket of two
// directions nobody else sees that it was closed whole.
func (t *relay) hangUp(from *end) {
	switch from {
	case t.serverOut:
		select {
		case <-t.left:
		case <-time.After(t.leaving):
		}
		if t.serverIn.hungUp() {
			t.clientIn.closeReadWhole()
		}
	case t.clientIn:
		if t.clientOut.hungUp() {
			t.serverOut.closeRead()
		}
	}
}

// relayBuffer is the size of one read, in bytes: a pipe's capacity.
const relayBuffer = 64 << 10

// copy passes what from gives on to to, as take says, until either ends, and then ends the other. ended takes what has no end. Both return
// what is to be passed on.
func (t *relay) copy(from, to *end, side Side, take func(b []byte) ([]byte, error), ended func() ([]byte, error)) {
	defer to.closeWrite()
	defer from.closeRead()
	if side == Client && !t.lend(from, to) {
		t.endedBy(Server)
		return
	}
	buf := make([]byte, relayBuffer)
	for {
		n, err := from.Read(buf)
		if side == Server {
			t.errs.move(t)
		}
		if n > 0 && !t.pass(to, side, func() ([]byte, error) { return take(buf[:n]) }) {
			return
		}
		if err != nil {
			t.reachedEnd(from, side, err)
			break
		}
	}
	t.endedBy(side)
	t.hangUp(from)
	if ended != nil {
		t.pass(to, side, ended)
	}
}

// pass passes on what take returns, and reports whether there is more to do.
func (t *relay) pass(to *end, side Side, take func() ([]byte, error)) bool {
	release := t.inTurn(side)
	defer release()
	b, err := take()
	if err != nil {
		t.fail(err)
		return false
	}
	if len(b) == 0 {
		return true
	}
	if side == Server && t.now() == recorded {
		t.o.Log.out.turn(to.file.f)
		if len(b) > surelyFits || unread(to.file.f) > 0 {
			release() // who does not read must not hold the others up
		}
	}
	if err := t.write(to, side, b); err != nil {
		if side != stderrSide {
			t.endedBy(side.Other())
		}
		return false
	}
	return true
}

// surelyFits is how much, in bytes, goes into an empty pipe or socket whatever its size, without waiting.
const surelyFits = 4096

// inTurn waits until the servers of other conversations have passed on what they have recorded. The turn ends with release.
func (t *relay) inTurn(side Side) (release func()) {
	if side != Server || t.now() != recorded {
		return func() {}
	}
	t.o.Log.passing.Lock()
	return sync.OnceFunc(t.o.Log.passing.Unlock)
}

// A part is what a server writes up to its next answer.
type part struct {
	at     int  // where it begins
	answer bool // it begins with one
	told   bool // what came before it was none
}

// write passes b on: of a conversation each part by itself.
func (t *relay) write(to *end, side Side, b []byte) error {
	if side != Server || len(t.parts) == 0 {
		_, err := to.write(b)
		return err
	}
	parts := t.parts
	t.parts = t.parts[:0]
	for i, p := range parts {
		end := len(b)
		if i+1 < len(parts) {
			end = parts[i+1].at
		}
		given := t.conversation.give(to.file.f, p.answer, p.told, cmp.Or(t.o.settles, settleFor))
		_, err := to.write(b[p.at:end])
		given()
		if err != nil {
			return err
		}
	}
	return nil
}

// lend passes what the client writes on to the server's stdin where that is no conversation: what the server leaves unread stays in the
// client's pipe, which others may read after it. It reports whether there is more to copy: all of a conversation, or the end.
func (t *relay) lend(from, to *end) (more bool) {
	if t.now() == undecided && !t.opensNothing(from) {
		return true
	}
	loan, err := lend.New(from.file.f, to.file.f)
	if err != nil {
		return true // no two pipes, or it cannot be done here
	}
	defer loan.Close()
	for t.now() == plain {
		b, err := loan.Pass(t.left)
		if errHear := t.hear(streamOf(Client), b); errHear != nil {
			t.fail(errHear)
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return true
}

// opensNothing decides that a relay carries no conversation by the first byte of what the client writes, which nobody has read yet.
func (t *relay) opensNothing(from *end) bool {
	b, err := lend.Peek(from.file.f)
	b = bytes.TrimLeft(b, blanks)
	if err != nil || len(b) == 0 || b[0] == '{' || b[0] == '[' {
		return false
	}
	if _, _, err := t.settle(nil); err != nil {
		t.fail(err)
		return false
	}
	return true
}

// An end is one direction of a file. Those of a pipe have one, a socket may have two. Closing an end closes the file once no other end of it
// is open. A nil end is closed.
type end struct {
	file *endFile
	once sync.Once   // closes
	left atomic.Bool // closed as something that is read
}

// An endFile is the file of one end or two.
type endFile struct {
	f        *os.File
	socket   bool
	watching bool      // gone works, where it is of one direction
	both     bool      // it is of two directions, whatever is open of them
	id       [2]uint64 // of a socket: which

	mu   sync.Mutex
	open int // ends
}

// newEnd returns an end of f, which becomes its own; nil for none.
func newEnd(f *os.File) (*end, error) {
	if f == nil {
		return nil, nil
	}
	file, err := newEndFile(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	file.open = 1
	return &end{file: file}, nil
}

// endPair returns the ends of a side, which may be one socket.
func endPair(there, back *os.File) (a, b *end, err error) {
	if a, err = newEnd(there); back == there {
		return a, a.other(), err
	}
	b, errBack := newEnd(back)
	if b.sameSocket(a) { // by another descriptor
		b.close()
		b = a.other()
	}
	return a, b, errors.Join(err, errBack)
}

// other returns the other direction of the same file.
func (e *end) other() *end {
	if e == nil {
		return nil
	}
	e.file.open, e.file.both = 2, true
	return &end{file: e.file}
}

// sameSocket reports whether e and f are one socket.
func (e *end) sameSocket(f *end) bool {
	return e != nil && f != nil && e.file.socket && e.file.id == f.file.id
}

// Read implements io.Reader.
func (e *end) Read(b []byte) (int, error) { return e.file.f.Read(b) }

func (e *end) write(b []byte) (int, error) { return e.file.f.Write(b) }

// closeRead says that nothing more is read here: who writes there gets EPIPE.
func (e *end) closeRead() {
	if e != nil {
		e.left.Store(true)
	}
	e.closeOne(true)
}

// closeReadWhole is closeRead as Leave does it.
func (e *end) closeReadWhole() {
	if !e.file.watching || e.file.both {
		e.closeRead()
		return
	}
	leave(e.file.f, e.closeRead)
}

// Leave closes f, which a client writes to, and returns when nobody reads there any more who only had it as a child of ours that is being
// forked: the client, which sees the end of what it reads behind that, is to find by then that it cannot write.
func Leave(f *os.File) { leave(f, func() { f.Close() }) }

// closeWrite says that nothing more comes: who reads there gets the end.
func (e *end) closeWrite() { e.closeOne(false) }

func (e *end) closeOne(reads bool) {
	if e == nil {
		return
	}
	e.once.Do(func() {
		e.file.mu.Lock()
		defer e.file.mu.Unlock()
		if e.file.open--; e.file.open > 0 {
			e.file.shut(reads)
			return
		}
		e.file.f.Close()
	})
}

// close closes the file, whatever else is open of it.
func (e *end) close() {
	if e != nil {
		e.file.f.Close()
	}
}
