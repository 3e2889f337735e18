package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A load is the argument of the load generator: requests of a model over a few connections that are kept alive, one after
// the other on each. It finds a proxy in its environment, as any Go program does.
type load struct {
	URL      string
	Bytes    int // of a request's body, about
	Warm     int // requests before those that count
	Requests int // that count
	Conns    int
	Result   string // file
}

// A pace is what the load generator found.
type pace struct {
	Requests int
	Rate     float64 // a second
	P50, P99 float64 // ms from a request to the end of its answer
}

// variants is how many different requests a load sends, in turn.
const variants = 16

// question stands in the last message of every request, before its number.
const question = "What is behind door"

// modelRequest is variant i of a request to Anthropic's messages API, about size bytes long.
func modelRequest(i, size int) []byte {
	m := message{Model: "claude-sonnet-4-5", MaxTokens: 1024}
	last := turn("user", fmt.Sprintf("%s %d?", question, i))
	for n := 0; ; n += 2 {
		b, err := json.Marshal(message{m.Model, m.MaxTokens, append(m.Messages[:n:n], last)})
		if err != nil {
			panic(err) // strings and numbers
		}
		if len(b) >= size {
			return b
		}
		said := words(min(300, (size-len(b))/2))
		m.Messages = append(m.Messages, turn("user", said), turn("assistant", said))
	}
}

// message is the part of Anthropic's messages API that a request has here.
type message struct {
	Model     string           `json:"model"`
	MaxTokens int              `json:"max_tokens"`
	Messages  []map[string]any `json:"messages"`
}

func turn(role, text string) map[string]any { return map[string]any{"role": role, "content": text} }

// words is a text of n bytes, at least one.
func words(n int) string {
	const some = "the quick brown fox reads the file, skips the header and writes each record; "
	return string(bytes.Repeat([]byte(some), n/len(some)+1)[:max(n, 1)])
}

// A generator is a load under way.
type generator struct {
	*load
	client *http.Client
	bodies [][]byte
}

// doLoad is the job.
func doLoad(arg []byte) error {
	g := &generator{load: new(load)}
	if err := json.Unmarshal(arg, g.load); err != nil {
		return err
	}
	for i := range variants {
		g.bodies = append(g.bodies, modelRequest(i, g.Bytes))
	}
	g.client = &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: g.Conns, MaxConnsPerHost: g.Conns, DisableCompression: true,
	}}
	if _, err := g.send(g.Warm); err != nil {
		return err
	}
	p, err := g.send(g.Requests)
	if err != nil {
		return err
	}
	return writeResult(g.Result, p)
}

// send sends n requests.
func (g *generator) send(n int) (*pace, error) {
	var next atomic.Int64
	var workers sync.WaitGroup
	took, errs := make([][]float64, g.Conns), make([]error, g.Conns)
	begun := time.Now()
	for w := range g.Conns {
		workers.Go(func() {
			for i := int(next.Add(1)); i <= n && errs[w] == nil; i = int(next.Add(1)) {
				at := time.Now()
				errs[w] = g.ask(g.bodies[i%variants])
				took[w] = append(took[w], time.Since(at).Seconds()*1e3)
			}
		})
	}
	workers.Wait()
	all := slices.Sorted(slices.Values(slices.Concat(took...)))
	p := &pace{Requests: len(all), Rate: float64(len(all)) / time.Since(begun).Seconds()}
	p.P50, p.P99 = quantile(all, 0.5), quantile(all, 0.99)
	return p, errors.Join(errs...)
}

// ask sends a request and reads its answer.
func (g *generator) ask(body []byte) error {
	req, err := newModelRequest(g.URL, body)
	if err != nil {
		return err
	}
	res, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, err := io.ReadAll(io.LimitReader(res.Body, maxTail))
		return errors.Join(fmt.Errorf("%s answered %s: %s", g.URL, res.Status, said), err)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

func newModelRequest(url string, body []byte) (*http.Request, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header.Set("X-Api-Key", "sk-ant-benchmark-not-a-key")
	return req, nil
}

// quantile is the value below which a part q of sorted values lies; 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
