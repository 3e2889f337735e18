package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// echo is a handler that sends back what is said to it on a WebSocket.
func echo(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer c.CloseNow()
	for {
		kind, b, err := c.Read(r.Context())
		if err == nil {
			err = c.Write(r.Context(), kind, b)
		}
		if err != nil {
			return // the client has gone
		}
	}
}

// talk is the argument of the job that has messages of Bytes echoed on a WebSocket, Flight of them under way at a time: as many as
// each line of its stdin says, and it prints how long they took, in ns.
type talk struct {
	URL    string
	Bytes  int
	Flight int
}

// doTalk is the job.
func doTalk(arg []byte) error {
	var t talk
	if err := json.Unmarshal(arg, &t); err != nil {
		return err
	}
	ctx := context.Background()
	c, _, err := websocket.Dial(ctx, t.URL, nil)
	if err != nil {
		return err
	}
	defer c.CloseNow()
	said := 0
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		n, err := strconv.Atoi(orders.Text())
		if err != nil {
			return err
		}
		took, err := t.exchange(ctx, c, said, n)
		if err != nil {
			return err
		}
		said += n
		fmt.Println(took.Nanoseconds())
	}
	return c.Close(websocket.StatusNormalClosure, "")
}

// exchange has n messages echoed, of which no two are equal, nor one that was said before.
func (t *talk) exchange(ctx context.Context, c *websocket.Conn, said, n int) (time.Duration, error) {
	messages := make([][]byte, n)
	for i := range messages {
		messages[i] = t.message(said + i)
	}
	credit := make(chan struct{}, t.Flight)
	sent := make(chan error, 1)
	begun := time.Now()
	go func() { // received below; a connection that has failed ends it, and so does the job
		for _, m := range messages {
			credit <- struct{}{}
			if err := c.Write(ctx, websocket.MessageText, m); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for _, want := range messages {
		_, got, err := c.Read(ctx)
		if err != nil {
			return 0, err
		}
		if !bytes.Equal(got, want) {
			return 0, fmt.Errorf("%d bytes came back that are not the %d that were sent", len(got), len(want))
		}
		<-credit
	}
	return time.Since(begun), <-sent
}

// message is message n, JSON.
func (t *talk) message(n int) []byte {
	head := fmt.Sprintf(`{"type":"input","n":%d,"text":"`, n)
	return []byte(head + words(t.Bytes - len(head) - 2)[:max(0, t.Bytes-len(head)-2)] + `"}`)
}

// talkRun is a source: how fast the whole of a program in the jail has messages of 1 KiB echoed, by how fast it has them without it.
type talkRun struct {
	flight        int
	messages, few int // of a turn; few of a short run
	turns         int
}

func (r talkRun) counts(short bool) (messages, turns int) {
	if short {
		return r.few, 1
	}
	return r.messages, r.turns
}

func (r talkRun) how(short bool) string {
	messages, turns := r.counts(short)
	return fmt.Sprintf("messages a second of a client under `tapedeck record --upstream`, by those of the same client without it, both connected to one "+
		"server of coder/websocket and asked in turns; each turn %s messages of 1 KiB, %d under way at a time; medians of the turns after one of "+
		"each that does not count: %d", count(float64(messages)), r.flight, turns)
}

func (r talkRun) measure(ctx context.Context, e *env) (_ reading, err error) {
	if _, err := e.tapedeck(ctx); err != nil {
		return reading{}, err
	}
	srv, err := e.startJob(ctx, "echoes")
	if err != nil {
		return reading{}, err
	}
	defer func() { err = errors.Join(err, srv.stop()) }()
	job := talk{URL: "ws" + strings.TrimPrefix(srv.url, "http"), Bytes: 1024, Flight: r.flight}
	direct, err := e.startTalker(ctx, e.jobArgs("talk", job))
	if err != nil {
		return reading{}, err
	}
	defer func() { err = errors.Join(err, direct.stop()) }()
	job.URL = "ws://" + upstreamHost + "/echo"
	rec := filepath.Join(e.tmp, "talk.rec")
	defer os.RemoveAll(rec) // a hundred megabytes
	recorded, err := e.startTalker(ctx, e.recording(rec, []string{"--upstream", upstreamHost + "=" + srv.url}, e.jobArgs("talk", job)))
	if err != nil {
		return reading{}, err
	}
	defer func() { err = errors.Join(err, recorded.stop()) }()
	messages, turns := r.counts(e.short)
	times, err := alternate(turns, direct.turn(messages), recorded.turn(messages))
	if err != nil {
		return reading{}, err
	}
	each := func(ts timings) string { return duration(ts.median() / float64(messages)) }
	return reading{value: times[0].median() / times[1].median(), beside: fmt.Sprintf("%s a message against %s", each(times[1]), each(times[0]))}, nil
}

// A talker is the job talk under way.
type talker struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said *tail
}

func (e *env) startTalker(ctx context.Context, argv []string) (*talker, error) {
	dir, err := e.dir("talk")
	if err != nil {
		return nil, err
	}
	t := &talker{cmd: e.command(ctx, dir, argv[0], argv[1:]...), said: new(tail)}
	t.cmd.Stderr = t.said
	if t.in, err = t.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.out = bufio.NewReader(out)
	return t, t.cmd.Start()
}

// turn is one turn of n messages.
func (t *talker) turn(n int) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		if _, err := fmt.Fprintln(t.in, n); err != nil {
			return 0, fmt.Errorf("%w: %s", err, t.said)
		}
		line, err := t.out.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("%s told no time: %w: %s", t.cmd.Path, err, t.said)
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		return time.Duration(ns), err
	}
}

// stop ends the conversation and waits for the program.
func (t *talker) stop() error {
	if err := errors.Join(t.in.Close(), t.cmd.Wait()); err != nil {
		return fmt.Errorf("%s: %w: %s", t.cmd.Path, err, t.said)
	}
	return nil
}
