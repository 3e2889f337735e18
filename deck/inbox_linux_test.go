package deck_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tapedeck-dev/tapedeck/deck"
)

// besideThreads and besideLoop hold five conversations of three turns side by side in one process: with threads, and on an event loop. Each
// prompt has a time and a draw of the process's own generator in it, so that it is another one where two answers are taken up in another
// order.
const (
	besideAsk = `import sys, os, time, random, uuid, json
def prompt(i, turn, said):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": f"{i} {turn} {time.time()} {random.random()} {uuid.uuid4()} {said}"}]}).encode()
`
	besideThreads = besideAsk + `import urllib.request
from concurrent.futures import ThreadPoolExecutor
first = [prompt(i, 0, "") for i in range(5)] # which thread that begins draws first nothing decides
def agent(i):
    said = ""
    for turn in range(3):
        body = prompt(i, turn, said) if turn else first[i]
        asked = urllib.request.Request("http://api.openai.com/v1/chat/completions", body, {"content-type": "application/json"})
        said = json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"]
    return said
with ThreadPoolExecutor(5) as pool:
    for said in pool.map(agent, range(5)): print(said)
`
	besideLoop = besideAsk + `import asyncio
async def agent(i):
    said = ""
    for turn in range(3):
        body = prompt(i, turn, said) # before the connection: names are looked up by threads of a pool
        r, w = await asyncio.open_connection("api.openai.com", 80)
        w.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: api.openai.com\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = await r.read()
        w.close()
        said = json.loads(answer[answer.index(b"{"):])["choices"][0]["message"]["content"]
    return said
async def main():
    for said in await asyncio.gather(*[agent(i) for i in range(5)]): print(said)
asyncio.run(main())
`
)

// What threads do beside answers: besidePages draws upon pages that are no model's, besideSleeps sleeps for drawn times between calls and draws from
// generators that its threads share, besideFiles works on files in one thread while another one asks on.
const (
	besideTurns = besideAsk + `import http.client, threading
def get(path):
    c = http.client.HTTPConnection("pages.example")
    c.request("GET", path)
    return c.getresponse().read().decode()
def ask(i, turn, said):
    c = http.client.HTTPConnection("api.openai.com")
    c.request("POST", "/v1/chat/completions", prompt(i, turn, said), {"content-type": "application/json"})
    return json.load(c.getresponse())["choices"][0]["message"]["content"]
def beside(n, do):
    all = [threading.Thread(target=do, args=(i,)) for i in range(n)]
    for t in all: t.start()
    for t in all: t.join()
`
	besidePages = besideTurns + `from concurrent.futures import ThreadPoolExecutor
def task(i):
    return f"{get(f'/{i}')} {uuid.uuid4()} {time.time()}"
with ThreadPoolExecutor(4) as pool:
    for said in pool.map(task, range(16)): print(said)
`
	besideSleeps = besideTurns + `import tempfile
def agent(i):
    for turn in range(4):
        made = tempfile.mkdtemp()
        said = ask(i, turn, made)
        time.sleep(random.uniform(0.005, 0.05))
        os.rmdir(made)
beside(4, agent)
`
	besideFiles = besideTurns + `import hashlib, queue
work = queue.Queue()
def works(i):
    for said in iter(work.get, None):
        for n in range(12):
            for _ in range(400): said = hashlib.sha256(said.encode()).hexdigest()
            with open("state.new", "w") as f: f.write(said)
            os.replace("state.new", "state")
            with open("log", "a") as f: f.write(said + "\n")
worker = threading.Thread(target=works, args=(0,))
worker.start()
for turn in range(6): work.put(ask(0, turn, ""))
work.put(None)
worker.join()
`
)

// TestConversationsSideBySideInOneProcess: what a process does about one answer it does before it gets the next one, as while recording.
func TestConversationsSideBySideInOneProcess(t *testing.T) {
	besideEachOther(t, map[string]string{"threads": besideThreads, "event_loop": besideLoop})
}

// TestThreadsBesideEachOther is of threads that ask others than models, sleep, and write files, each beside the others. A recorder that is ten times
// slower than the program, as under the race detector, holds them up for longer than it waits for them.
func TestThreadsBesideEachOther(t *testing.T) {
	besideEachOther(t, map[string]string{"pages": besidePages, "sleeps": besideSleeps, "files": besideFiles})
}

func besideEachOther(t *testing.T, all map[string]string) {
	for name, program := range all {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if name == "sleeps" && exec.Command("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))").Run() != nil {
				t.Skip("before 3.11 time.sleep waits with select")
			}
			b.upstream("pages.example", func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond)
				_, _ = io.WriteString(w, r.URL.Path)
			})
			b.upstream("api.openai.com", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond) // a model takes as long as it does
				body := fmt.Sprintf(`{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%d"}}]}`, rand.IntN(1000))
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				_, _ = io.WriteString(w, body)
			})
			rec := b.script("python3", "-c", program)
			for range 3 {
				v, _ := b.replay(rec, &deck.ReplayOptions{})
				b.green(v)
			}
		})
	}
}

func init() { programs["draws"] = playDraws }

// playDraws asks a model some times, and draws in between: a number, a temporary file's name, the order of a map.
func playDraws([]string) int {
	words := map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true, 9: true}
	for turn := range 5 {
		f, err := os.CreateTemp("", "draw-")
		if err != nil {
			return fail(err)
		}
		f.Close()
		defer os.Remove(f.Name())
		var order []int
		for word := range words {
			order = append(order, word)
		}
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d: %d %s %v"}]}`, turn, rand.Uint64(), f.Name(), order)
		res, err := http.Post("http://api.openai.com/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return fail(err)
		}
		_, err = io.Copy(os.Stdout, res.Body)
		res.Body.Close()
		if err != nil {
			return fail(err)
		}
	}
	return 0
}

func init() { programs["multiplexed"] = playMultiplexed }

// playMultiplexed has four conversations in goroutines, whose requests share a connection, and says in each how many answers there were before.
func playMultiplexed(args []string) int {
	var mu sync.Mutex
	var all []string
	ask := func(said string) (string, error) {
		body := fmt.Sprintf(`{"model":"m","stream":%s,"messages":[{"role":"user","content":%q}]}`, args[0], said)
		res, err := http.Post("https://api.openai.com/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		if res.ProtoMajor != 2 {
			return "", fmt.Errorf("answered by %s", res.Proto)
		}
		for events := bufio.NewScanner(res.Body); events.Scan(); { // as SDKs do, the rest after the last one is left
			if text := events.Text(); text == "data: [DONE]" || strings.HasPrefix(text, "{") {
				return text, nil
			}
		}
		return "", io.ErrUnexpectedEOF
	}
	var beside errgroup.Group
	for i := range 4 {
		beside.Go(func() error {
			for said := ""; len(said) < 3; said += "." {
				mu.Lock()
				n := len(all)
				mu.Unlock()
				if _, err := ask(fmt.Sprintf("%d%s after %d", i, said, n)); err != nil {
					return err
				}
				mu.Lock()
				all = append(all, strconv.Itoa(i))
				mu.Unlock()
			}
			return nil
		})
	}
	if err := beside.Wait(); err != nil {
		return fail(err)
	}
	if _, err := ask(strings.Join(all, " ")); err != nil {
		return fail(err)
	}
	return 0
}

// TestAnswersOnOneConnection: answers of one HTTP/2 connection come one after another, as those of several do.
func TestAnswersOnOneConnection(t *testing.T) {
	for _, stream := range []string{"false", "true"} {
		t.Run("stream_"+stream, func(t *testing.T) {
			b := newBench(t)
			b.upstream("api.openai.com", func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				kind, said := "application/json", `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"}}]}`
				if stream == "true" {
					kind, said = "text/event-stream", `data: {"object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"yes"}}]}`+"\n\ndata: [DONE]\n\n"
				}
				w.Header().Set("Content-Type", kind)
				_, _ = io.WriteString(w, said)
			})
			res, _ := b.record("multiplexed", stream)
			for range 3 {
				v, _ := b.replay(res.Recording, &deck.ReplayOptions{})
				b.green(v)
			}
		})
	}
}

// TestDrawsOfGo: a Go program draws what it drew, whichever of its threads it goes on in.
func TestDrawsOfGo(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the code of Go's runtime is known on amd64 alone")
	}
	b := newBench(t)
	b.upstream("api.openai.com", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"}}]}`)
	})
	res, _ := b.record("draws")
	for range 3 {
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{})
		b.green(v)
	}
}

func init() { programs["clocks"] = playClocks }

// playClocks asks a model what time it is, after another goroutine has looked at the clock as often as chance has it.
func playClocks([]string) int {
	began := time.Now()
	for turn := range 5 {
		over := make(chan bool)
		go func() {
			for range time.Since(began) % 7 {
				_ = time.Now()
			}
			close(over)
		}()
		<-over
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%d at %d"}]}`, turn, time.Now().UnixNano())
		res, err := http.Post("http://api.openai.com/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			return fail(err)
		}
		_, err = io.Copy(os.Stdout, res.Body)
		res.Body.Close()
		if err != nil {
			return fail(err)
		}
	}
	return 0
}

// TestTimesOfGo: each place in a Go program has times of its own, whichever goroutine comes first.
func TestTimesOfGo(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("places are known on amd64 alone")
	}
	b := newBench(t)
	b.upstream("api.openai.com", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"yes"}}]}`)
	})
	res, _ := b.record("clocks")
	for range 3 {
		v, _ := b.replay(res.Recording, &deck.ReplayOptions{})
		b.green(v)
	}
}
