package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// streamed is the argument of the job that asks for one streamed answer and notes when its bytes come.
type streamed struct {
	URL    string
	Bytes  int // of the request's body
	Result string
}

// An arrival is one read of an answer.
type arrival struct {
	End int64   // bytes of the answer so far
	MS  float64 // since the request was sent
}

// doStream is the job.
func doStream(arg []byte) error {
	var s streamed
	if err := json.Unmarshal(arg, &s); err != nil {
		return err
	}
	req, err := newModelRequest(s.URL, modelRequest(0, s.Bytes))
	if err != nil {
		return err
	}
	// A request before it opens the connection: what counts is from when a request has been sent.
	if err := warmUp(s.URL); err != nil {
		return err
	}
	var begun time.Time
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { begun = time.Now() }}
	res, err := http.DefaultClient.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var all []arrival
	buf, got := make([]byte, 32<<10), int64(0)
	for {
		n, err := res.Body.Read(buf)
		got += int64(n)
		if n > 0 {
			all = append(all, arrival{got, time.Since(begun).Seconds() * 1e3})
		}
		if err == io.EOF {
			return writeResult(s.Result, all)
		}
		if err != nil {
			return err
		}
	}
}

func warmUp(url string) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// paced is a handler that streams n events, one every gap; a GET gets nothing.
func paced(n int, gap time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return
		}
		io.Copy(io.Discard, r.Body) // what is asked does not matter
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(gap)
		defer tick.Stop()
		for i := range n {
			fmt.Fprintf(w, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"word %d \"}}\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				return // the client has gone
			}
			<-tick.C
		}
	}
}

// The stream that is recorded and replayed at its pace.
const (
	chunkGap    = 20 * time.Millisecond
	chunks      = 400
	shortChunks = 25
)

// realtime measures how far from its time each chunk of a replayed answer comes, and beside it how far it came while it was
// recorded: what the machine makes of a timer.
func realtime(ctx context.Context, e *env) (reading, error) {
	srv := httptest.NewServer(paced(pick(e, chunks, shortChunks), chunkGap))
	defer srv.Close()
	by, err := e.newRecorder()
	if err != nil {
		return reading{}, err
	}
	s := streamed{URL: "http://" + upstreamHost + modelPath, Bytes: 2000, Result: e.resultFile("stream")}
	rec, _, err := by.record(ctx, srv.URL, []string{"--proxy"}, e.jobArgs("stream", s)...)
	if err != nil {
		return reading{}, err
	}
	recorded, err := offTimeOf(rec, s.Result)
	if err != nil {
		return reading{}, err
	}
	if _, err := by.replay(ctx, rec, "--proxy", "--speed", "realtime"); err != nil {
		return reading{}, err
	}
	replayed, err := offTimeOf(rec, s.Result)
	if err != nil {
		return reading{}, err
	}
	return reading{value: quantile(replayed, 1), beside: fmt.Sprintf("the latest of %d; %s; while recording %s, latest %s ms",
		len(replayed), quantiles(replayed), quantiles(recorded), figure(quantile(recorded, 1)))}, nil
}

func quantiles(sorted []float64) string {
	return fmt.Sprintf("p50 %s ms, p99 %s ms", figure(quantile(sorted, 0.5)), figure(quantile(sorted, 0.99)))
}

// offTimeOf is offTime of a recording's chunks and what the job noted.
func offTimeOf(rec, result string) ([]float64, error) {
	var came []arrival
	if err := readResult(result, &came); err != nil {
		return nil, err
	}
	due, err := recordedChunks(rec)
	if err != nil {
		return nil, err
	}
	return offTime(due, came)
}

// recordedChunks are the chunks of the one model call of a recording.
func recordedChunks(rec string) ([]tape.Chunk, error) {
	f, err := tape.Open(filepath.Join(rec, "run.tape"), nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for r, err := range f.Records() {
		if err != nil {
			return nil, err
		}
		if call, ok := r.Kind.(*tape.LLMCall); ok {
			return call.Stream, nil
		}
	}
	return nil, fmt.Errorf("%s holds no model call", rec)
}

// offTime returns how far from its time each chunk came, in ms, sorted. A chunk has come when its last byte has.
func offTime(due []tape.Chunk, came []arrival) ([]float64, error) {
	var off []float64
	at := 0
	for _, c := range due {
		for at < len(came) && came[at].End < c.Offset+c.Length {
			at++
		}
		if at == len(came) {
			return nil, fmt.Errorf("the replay gave %d of %d chunks", len(off), len(due))
		}
		off = append(off, math.Abs(came[at].MS-float64(c.TMS)))
	}
	if len(off) == 0 {
		return nil, fmt.Errorf("the recorded answer has no chunks")
	}
	slices.Sort(off)
	return off, nil
}
