package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// A Live is a server over stdio that is started when a lenient client asks for something that the tape lacks, one for each client.
type Live struct {
	Command []string  // the program and its arguments
	Stderr  io.Writer // of the server; nil drops it
	// Used is told of each request that the live server is asked, and of what went wrong with it. Nil is nobody.
	Used func(text string)
}

func (l *Live) say(format string, args ...any) {
	if l.Used != nil {
		l.Used(fmt.Sprintf(format, args...))
	}
}

// liveStart is how long a live server has to answer its initialize.
const liveStart = 30 * time.Second

// liveEnd is how long it has to end once its stdin has.
const liveEnd = 2 * time.Second

// errLiveEnded is the error of a live server that has ended.
var errLiveEnded = errors.New("the live server has ended")

// A liveTalk is the talk with a live server on behalf of one client.
type liveTalk struct {
	v     *visit
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{} // closed when its stdout has

	mu   sync.Mutex // guards what follows, and writes to in
	last int
	open map[string]*liveCall // by our id
	ids  map[string]string    // our id, by that of the client's open request
}

// A liveCall is a request that the live server works on.
type liveCall struct {
	out    outlet
	answer chan *Message
	number int
}

// askLive answers a request by the live server.
func (v *visit) askLive(ctx context.Context, m *Message, out outlet) error {
	live := v.o.Live
	t, err := v.liveTalk(ctx)
	if err == nil {
		live.say("not on the tape: %s; asked the live server %s", m.Method, live.Command[0])
		var answer *Message
		if answer, err = t.call(ctx, m, out); err == nil {
			return out(edited(answer.Raw, func(name string) []byte { return only(name == spotID, m.ID) }))
		}
	}
	live.say("the live server %s: %v", live.Command[0], err)
	return out(errorAnswer(m.ID, fmt.Sprintf("%s%s; the live server %s did not answer either: %v", RefusedAs, m.Method, live.Command[0], err)))
}

// liveTalk is the talk of the visit with the live server, which it starts where there is none.
func (v *visit) liveTalk(ctx context.Context) (*liveTalk, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.live != nil:
		return v.live, nil
	case v.ended:
		return nil, errClientGone
	}
	t := &liveTalk{v: v, ended: make(chan struct{}), open: make(map[string]*liveCall), ids: make(map[string]string)}
	if err := t.start(); err != nil {
		return nil, err
	}
	if v.legacy {
		if err := t.initialize(ctx, v.init); err != nil {
			t.close()
			return nil, err
		}
	}
	v.live = t
	return t, nil
}

func (t *liveTalk) start() (err error) {
	l := t.v.o.Live
	t.cmd = exec.Command(l.Command[0], l.Command[1:]...)
	t.cmd.Stderr = l.Stderr
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := t.cmd.Start(); err != nil {
		return err
	}
	l.say("started the live server %s", l.Command[0])
	go func() {
		defer close(t.ended)
		_ = readLines(out, func(line []byte) error {
			t.hear(append([]byte(nil), line...))
			return nil
		})
	}()
	return nil
}

// initialize begins as the client did.
func (t *liveTalk) initialize(ctx context.Context, params json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, liveStart)
	defer cancel()
	m := Message{Method: methodInitialize, Raw: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":%s}`, params)}
	answer, err := t.call(ctx, &m, func([]byte) error { return nil })
	switch {
	case err != nil:
		return fmt.Errorf("initialize: %w", err)
	case answer.Error != nil:
		return fmt.Errorf("initialize: %s", answer.Error)
	}
	return t.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// call asks the live server and waits for its answer.
func (t *liveTalk) call(ctx context.Context, m *Message, out outlet) (*Message, error) {
	t.mu.Lock()
	t.last++
	id := strconv.Itoa(t.last)
	c := &liveCall{out: out, answer: make(chan *Message, 1), number: t.last}
	t.open[id] = c
	t.ids[idName(m.ID)] = id
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.open, id)
		delete(t.ids, idName(m.ID))
		t.mu.Unlock()
	}()
	if err := t.write(edited(m.Raw, func(name string) []byte { return only(name == spotID, []byte(id)) })); err != nil {
		return nil, err
	}
	select {
	case a := <-c.answer:
		return a, nil
	case <-t.ended:
		select {
		case a := <-c.answer: // it was the last that it said
			return a, nil
		default:
			return nil, errLiveEnded
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *liveTalk) write(b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, err := t.in.Write(append(b[:len(b):len(b)], '\n')); err != nil {
		return errLiveEnded
	}
	return nil
}

// tell passes a notification of the client on. A cancellation names its request by our id.
func (t *liveTalk) tell(m *Message) {
	b := m.Raw
	if m.Method == notedCancelled {
		t.mu.Lock()
		id, ok := t.ids[idName(member(m.Params, spotRequest))]
		t.mu.Unlock()
		if !ok {
			return
		}
		b = edited(b, func(name string) []byte { return only(name == spotRequest, []byte(id)) })
	}
	_ = t.write(b) // whoever waits for an answer learns that it has ended
}

// hear takes a line of the live server.
func (t *liveTalk) hear(line []byte) {
	msgs, _, err := Parse(line)
	if err != nil {
		return
	}
	for i := range msgs {
		m := &msgs[i]
		switch {
		case m.IsAnswer():
			t.mu.Lock()
			c := t.open[idName(m.ID)]
			t.mu.Unlock()
			if c != nil {
				select {
				case c.answer <- m:
				default: // a second answer
				}
			}
		case m.IsRequest():
			go t.passAsk(m)
		default:
			if out := t.outlet(); out != nil {
				_ = out(m.Raw)
			}
		}
	}
}

// outlet is where what belongs to no request goes: that of the newest that is open, or where the client hears what is said unasked;
// nil for nowhere.
func (t *liveTalk) outlet() outlet {
	t.mu.Lock()
	defer t.mu.Unlock()
	var newest *liveCall
	for _, c := range t.open {
		if newest == nil || c.number > newest.number {
			newest = c
		}
	}
	if newest == nil {
		return t.v.unasked
	}
	return newest.out
}

// passAsk passes a request of the live server on to the client, and its response back.
func (t *liveTalk) passAsk(m *Message) {
	out := t.outlet()
	if out == nil {
		_ = t.write(errorWith(m.ID, codeNoMethod, "nobody is there to ask"))
		return
	}
	id, wait := t.v.newRequest()
	if out(edited(m.Raw, func(name string) []byte { return only(name == spotID, id) })) != nil {
		return
	}
	select {
	case r := <-wait:
		_ = t.write(edited(r.Raw, func(name string) []byte { return only(name == spotID, m.ID) }))
	case <-t.v.gone.Done():
	case <-t.ended:
	}
}

// close ends the live server: its stdin, and where that is not enough its process.
func (t *liveTalk) close() {
	t.in.Close()
	kill := time.AfterFunc(liveEnd, func() { _ = t.cmd.Process.Kill() })
	defer kill.Stop()
	select {
	case <-t.ended:
	case <-time.After(liveEnd): // its children may hold its stdout
	}
	_ = t.cmd.Wait() // its status is nobody's concern
}
