package remote

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tapedeck-dev/tapedeck/deck/gate"
	"github.com/tapedeck-dev/tapedeck/deck/queue"
	"github.com/tapedeck-dev/tapedeck/deck/team"
)

// What is asked for of jobs.
type (
	putAsked struct {
		Jobs    []queue.Job
		Options *queue.PutOptions // nil for the usual
	}
	workersAsked struct{ Program string }
	listAsked    struct {
		Limit  int
		States []string
	}
	jobsAsked struct{ IDs []int64 }
)

// longestJob is how long a client may have a replay take.
const longestJob = 24 * time.Hour

// jobMethods are the methods about jobs.
var jobMethods = map[string]method{
	"put": onJobs(func(ctx context.Context, c *jobCall, in *putAsked) (any, error) {
		o := cmp.Or(in.Options, new(queue.PutOptions))
		if len(in.Jobs) > maxRuns || o.Priority < 0 || o.Priority > 4 || o.Attempts < 0 || o.Attempts > math.MaxInt16 {
			return nil, ErrRequest
		}
		for i := range in.Jobs {
			j := &in.Jobs[i]
			if !slices.Contains(queue.Kinds, j.What) || j.Timeout < 0 || j.Timeout > longestJob {
				return nil, ErrRequest
			}
			if err := c.may(team.RoleAdmin); j.What == queue.Retention && err != nil {
				return nil, err
			}
			j.Project = c.who.Project
		}
		ids, err := c.q.Put(ctx, in.Jobs, o)
		for i := range ids {
			ids[i] = c.numbers.hide(ids[i])
		}
		return c.audited(ctx, "put-jobs", fmt.Sprint(len(ids)), ids, err)
	}),
	"workers": onJobs(func(ctx context.Context, c *jobCall, in *workersAsked) (any, error) {
		return c.q.Workers(ctx, c.who.Project, in.Program)
	}),
	"jobs": onJobs(func(ctx context.Context, c *jobCall, in *listAsked) (any, error) {
		if in.Limit < 1 || in.Limit > queue.MaxList {
			return nil, ErrRequest
		}
		jobs, err := c.q.List(ctx, c.who.Project, in.Limit, in.States...)
		for i := range jobs {
			jobs[i].ID = c.numbers.hide(jobs[i].ID)
		}
		return c.audited(ctx, "jobs", "", jobs, err)
	}),
	"cancel": onJobs(func(ctx context.Context, c *jobCall, in *jobsAsked) (any, error) {
		return nothing{}, c.each(ctx, "cancel", in, c.q.Cancel)
	}),
	"retry": onJobs(func(ctx context.Context, c *jobCall, in *jobsAsked) (any, error) {
		return nothing{}, c.each(ctx, "retry", in, c.q.Retry)
	}),
	"ended": onJobs(func(ctx context.Context, c *jobCall, in *jobsAsked) (any, error) {
		if len(in.IDs) > maxRuns {
			return nil, ErrRequest
		}
		ids := make([]int64, len(in.IDs))
		for i, shown := range in.IDs {
			ids[i] = c.numbers.find(shown)
		}
		found, err := c.q.Ended(ctx, c.who.Project, ids)
		out := make(map[int64]*gate.Result, len(found))
		for id, r := range found {
			if out[c.numbers.hide(id)] = r; r.Name != "" && err == nil {
				err = c.audit(ctx, "result", r.Name)
			}
		}
		if err != nil {
			return nil, err
		}
		return out, nil
	}),
}

// A jobCall is a request about jobs.
type jobCall struct {
	*call
	q       *queue.Queue
	numbers numbers
}

func onJobs[In any](f func(ctx context.Context, c *jobCall, in *In) (any, error)) method {
	return on(team.RoleReplay, func(ctx context.Context, c *call, in *In) (any, error) {
		if c.o.Queue == nil {
			return nil, ErrRequest
		}
		n, err := c.numbersOf(c.who.Project)
		if err != nil {
			return nil, err
		}
		return f(ctx, &jobCall{c, c.o.Queue, n}, in)
	})
}

// each does something to each job, and says which of them the project does not have.
func (c *jobCall) each(ctx context.Context, what string, in *jobsAsked, do func(ctx context.Context, project string, ids ...int64) error) error {
	for _, shown := range in.IDs {
		err := do(ctx, c.who.Project, c.numbers.find(shown))
		if errors.Is(err, queue.ErrNoJob) {
			return fmt.Errorf("job %d: %w", shown, queue.ErrNoJob)
		}
		if err == nil {
			err = c.audit(ctx, what, fmt.Sprint(shown))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// numbers encrypt the numbers of jobs for a project: those of the database count the jobs of all. They are a Feistel network over halves of halfBits,
// so that people can type them.
type numbers struct{ key []byte }

const (
	halfBits = 20
	half     = 1<<halfBits - 1
	rounds   = 8
)

// numbersOf are those of a project: with the same key of tombstones they are the same after a restart.
func (s *Server) numbersOf(project string) (numbers, error) {
	secret, err := s.o.Signer.Sign([]byte("tapedeck: numbers of jobs\n")) // which leaves this function no more than the key does
	key := sha256.Sum256(append(secret, project...))
	return numbers{key[:]}, err
}

func (n numbers) round(i int, x int64) int64 {
	h := hmac.New(sha256.New, n.key)
	h.Write(binary.BigEndian.AppendUint64([]byte{byte(i)}, uint64(x)))
	return int64(binary.BigEndian.Uint32(h.Sum(nil))) & half
}

// hide is what a client is told of a number; one of more than 40 bits stays, after so many jobs.
func (n numbers) hide(id int64) int64 {
	l, r := id>>halfBits, id&half
	if id < 0 || l > half {
		return id
	}
	for i := range rounds {
		l, r = r, l^n.round(i, r)
	}
	return l<<halfBits | r
}

// find is the number that a client was told of as shown.
func (n numbers) find(shown int64) int64 {
	l, r := shown>>halfBits, shown&half
	if shown < 0 || l > half {
		return shown
	}
	for i := rounds - 1; i >= 0; i-- {
		l, r = r^n.round(i, l), l
	}
	return l<<halfBits | r
}

// Queue is that of the store, as the token shows it.
func (c *Client) Queue() queue.Jobs { return jobs{c} }

type jobs struct{ c *Client }

// Put implements queue.Jobs. All jobs are of one project.
func (j jobs) Put(ctx context.Context, all []queue.Job, o *queue.PutOptions) ([]int64, error) {
	if len(all) == 0 {
		return nil, nil
	}
	return ask[[]int64](ctx, j.c, all[0].Project, "put", putAsked{all, o})
}

// Workers implements queue.Jobs.
func (j jobs) Workers(ctx context.Context, project, program string) (int, error) {
	return ask[int](ctx, j.c, project, "workers", workersAsked{program})
}

// Wait implements queue.Jobs.
func (j jobs) Wait(ctx context.Context, ids []int64, report func(*gate.Result), trouble func(error)) (*gate.Summary, error) {
	ended := func(ctx context.Context, left []int64) (map[int64]*gate.Result, error) {
		return ask[map[int64]*gate.Result](ctx, j.c, "", "ended", jobsAsked{left})
	}
	cancel := func(ctx context.Context, ids []int64) error { return j.Cancel(ctx, "", ids...) }
	return queue.WaitFor(ctx, ids, ended, cancel, report, trouble)
}

// List implements queue.Jobs.
func (j jobs) List(ctx context.Context, project string, limit int, states ...string) ([]queue.Entry, error) {
	return ask[[]queue.Entry](ctx, j.c, project, "jobs", listAsked{limit, states})
}

// Cancel implements queue.Jobs.
func (j jobs) Cancel(ctx context.Context, project string, ids ...int64) error {
	_, err := ask[nothing](ctx, j.c, project, "cancel", jobsAsked{ids})
	return err
}

// Retry implements queue.Jobs.
func (j jobs) Retry(ctx context.Context, project string, ids ...int64) error {
	_, err := ask[nothing](ctx, j.c, project, "retry", jobsAsked{ids})
	return err
}

// Close implements queue.Jobs. The client is its owner's.
func (j jobs) Close() {}
