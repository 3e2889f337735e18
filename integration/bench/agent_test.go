package bench

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// agentFiles is how many files lie in the work tree of a recorded agent.
const agentFiles = 200

// agentRun is a source: how long a whole run of the quickstart's agent takes when it is recorded, by how long it takes when
// it is not.
type agentRun struct {
	pace time.Duration // between two events of the model's stream
	text int           // bytes of the model's last answer
	runs int           // of each
}

func (a agentRun) how(short bool) string {
	n := a.runs
	if short {
		n = 1
	}
	pace := "at once"
	if a.pace > 0 {
		pace = fmt.Sprintf("with %v between events", a.pace)
	}
	return fmt.Sprintf("wall time of `tapedeck record -- tapedeck quickstart agent \"write hello.txt\"` by that of the agent alone; two "+
		"model calls, answers streamed %s, the last of %d bytes; a work tree of %d files; recorded through TLS, "+
		"alone in clear; medians of alternating runs after one of each that does not count: %d", pace, a.text, agentFiles, n)
}

func (a agentRun) measure(ctx context.Context, e *env) (reading, error) {
	model := httptest.NewServer(scriptedllm.New(&scriptedllm.Options{Delay: a.pace, Text: words(a.text)}))
	defer model.Close()
	flags, world, err := e.world(ctx)
	if err != nil {
		return reading{}, err
	}
	tapedeck, err := e.tapedeck(ctx)
	if err != nil {
		return reading{}, err
	}
	r, err := e.newRecorder("ANTHROPIC_API_KEY=sk-ant-benchmark-not-a-key")
	if err != nil {
		return reading{}, err
	}
	if err := r.fill(agentFiles); err != nil {
		return reading{}, err
	}
	agent := []string{tapedeck, "quickstart", "agent", "write hello.txt"}
	times, err := alternate(pick(e, a.runs, 1), func() (time.Duration, error) {
		return r.plain(ctx, []string{"ANTHROPIC_BASE_URL=" + model.URL}, agent...)
	}, func() (time.Duration, error) {
		_, took, err := r.record(ctx, model.URL, flags, agent...)
		return took, err
	})
	if err != nil {
		return reading{}, err
	}
	return reading{value: times[1].median() / times[0].median(), beside: fmt.Sprintf("%s against %s; %s", times[1], times[0], world)}, nil
}

// shell runs `sh -c :` plain, recorded and replayed, once for both rows of it, and returns how long each took.
func (e *env) shell(ctx context.Context) ([]timings, string, error) {
	flags, world, err := e.world(ctx)
	if err != nil || e.shellTimes != nil {
		return e.shellTimes, world, err
	}
	r, err := e.newRecorder()
	if err != nil {
		return nil, "", err
	}
	program := []string{"sh", "-c", ":"}
	rec := filepath.Join(e.tmp, "none") // the newest recording; record comes before replay
	e.shellTimes, err = alternate(pick(e, 15, 3), func() (time.Duration, error) {
		return r.plain(ctx, nil, program...)
	}, func() (took time.Duration, err error) {
		rec, took, err = r.record(ctx, "", flags, program...)
		return took, err
	}, func() (time.Duration, error) {
		return r.replay(ctx, rec, flags...)
	})
	return e.shellTimes, world, err
}

// shellRow tells how much longer one of what shell ran took than plain: 1 is recorded, 2 is replayed.
func shellRow(which int) func(context.Context, *env) (reading, error) {
	return func(ctx context.Context, e *env) (reading, error) {
		times, world, err := e.shell(ctx)
		if err != nil {
			return reading{}, err
		}
		plain, took := times[0].median(), times[which].median()
		return reading{value: (took - plain) / 1e6, beside: fmt.Sprintf("%s, %s plain; %s", duration(took), duration(plain), world)}, nil
	}
}

// gate tests many recordings one at a time and two at a time, once for both rows of it, and returns how long each took.
func (e *env) gate(ctx context.Context, n int) ([]timings, error) {
	if e.gateTimes != nil {
		return e.gateTimes, nil
	}
	flags, _, err := e.world(ctx)
	if err != nil {
		return nil, err
	}
	tapedeck, err := e.tapedeck(ctx)
	if err != nil {
		return nil, err
	}
	model := httptest.NewServer(scriptedllm.New(&scriptedllm.Options{Text: words(1200)}))
	defer model.Close()
	r, err := e.newRecorder("ANTHROPIC_API_KEY=sk-ant-benchmark-not-a-key")
	if err != nil {
		return nil, err
	}
	rec, _, err := r.record(ctx, model.URL, flags, tapedeck, "quickstart", "agent", "write hello.txt")
	if err != nil {
		return nil, err
	}
	dir, err := e.dir("gate")
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := os.CopyFS(filepath.Join(dir, fmt.Sprintf("%d.rec", i)), os.DirFS(rec)); err != nil {
			return nil, err
		}
	}
	test := func(jobs string) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			cmd := e.command(ctx, r.work, tapedeck, "test", dir, "-j", jobs)
			cmd.Env = append(cmd.Env, r.env...)
			took, err := do(cmd)
			if err == nil {
				e.gateBusy = float64(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()) / float64(took)
			}
			return took, err
		}
	}
	e.gateTimes, err = alternate(pick(e, 5, 3), test("1"), test("2"))
	return e.gateTimes, err
}

// gateRow tells what is made of how many seconds a recording takes, one at a time and two at a time.
func gateRow(of func(one, two float64) float64) func(context.Context, *env) (reading, error) {
	return func(ctx context.Context, e *env) (reading, error) {
		n := pick(e, 100, 20)
		times, err := e.gate(ctx, n)
		if err != nil {
			return reading{}, err
		}
		one, two := times[0].median()/1e9/float64(n), times[1].median()/1e9/float64(n)
		return reading{value: of(one, two), beside: fmt.Sprintf("%.1f a second, two at a time %.1f, with %.2f processors busy", 1/one, 1/two, e.gateBusy)}, nil
	}
}
