//go:build kill

package kill

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/cas"
)

// agentVar makes the test binary the recorded program; its value is how long that works.
const agentVar = "KILL_TEST_AGENT"

const (
	llmHost  = "api.anthropic.com"
	itemHost = "items.example.com"
	logName  = "agent.log" // in the working directory
)

// An agent asks models and a service side by side, writes files and keeps a log of what it got, a line in one write:
//
//	ask ID            before a request
//	got ID N          after a read: N bytes of the answer so far
//	whole ID N HASH   after the end of an answer that ended well
type agent struct {
	log   *os.File
	until time.Time
}

// playAgent is the recorded program. It says "ready" once its background process runs, and works for d.
func playAgent(d time.Duration) int {
	log, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	behind := exec.Command("/bin/sh", "-c", "while :; do date >> ~/behind.log; sleep 0.02; done")
	if err := behind.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	a := &agent{log: log, until: time.Now().Add(d)}
	fmt.Println("ready")
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() { a.work(i) })
	}
	work.Wait()
	fmt.Println("done")
	return 0
}

// work asks and writes in turn. The first three workers talk to a model, the last to a service.
func (a *agent) work(worker int) {
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{}}}
	for i := 0; time.Now().Before(a.until); i++ {
		id := fmt.Sprintf("id-%d-%d;", worker, i)
		a.note("ask %s", id)
		if err := a.ask(client, worker, id); err != nil {
			fmt.Fprintln(os.Stderr, id, err)
		}
		a.write(worker, i)
	}
}

func (a *agent) ask(client *http.Client, worker int, id string) error {
	var res *http.Response
	var err error
	if worker == 3 {
		res, err = client.Get("http://" + itemHost + "/" + id)
	} else {
		body := fmt.Sprintf(`{"model":"m","stream":true,"messages":[{"role":"user","content":"%s %s"}]}`, id, strings.Repeat("ask ", rand.IntN(2000)))
		res, err = client.Post("https://"+llmHost+"/v1/messages", "application/json", strings.NewReader(body))
	}
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var all bytes.Buffer
	buf := make([]byte, 8<<10)
	for {
		n, err := res.Body.Read(buf)
		all.Write(buf[:n])
		a.note("got %s %d", id, all.Len())
		if err == io.EOF {
			a.note("whole %s %d %s", id, all.Len(), cas.Sum(all.Bytes()))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write leaves files where a run may: the work tree, HOME and the temporary directory.
func (a *agent) write(worker, i int) {
	text := []byte(strings.Repeat(fmt.Sprintf("%d of %d\n", i, worker), 1+rand.IntN(3000)))
	for _, dir := range []string{"src", os.Getenv("HOME"), os.TempDir()} {
		path := filepath.Join(dir, fmt.Sprintf("f-%d-%d", worker, i%7))
		if err := os.WriteFile(path+".new", text, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Rename(path+".new", path)
		if i%3 == 2 {
			os.Remove(path)
		}
	}
	fmt.Printf("%s", text[:min(len(text), 500)])
}

func (a *agent) note(format string, args ...any) {
	a.log.WriteString(fmt.Sprintf(format, args...) + "\n")
}
