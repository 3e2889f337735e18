package process

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// A Keeper passes commands to another Runner and keeps what came of them, for a process tape.
type Keeper struct {
	next Runner

	mu    sync.Mutex // guards calls
	calls []*Call    // in the order in which they were asked for; nil for one that has no result
}

// NewCalls returns a Keeper in front of next.
func NewCalls(next Runner) *Keeper { return &Keeper{next: next} }

// Run implements Runner.
func (k *Keeper) Run(ctx context.Context, c *Command) (*Result, error) {
	k.mu.Lock()
	place := len(k.calls)
	k.calls = append(k.calls, nil)
	k.mu.Unlock()
	res, err := k.next.Run(ctx, c)
	if res != nil {
		call := callOf(c, res)
		k.mu.Lock()
		k.calls[place] = &call
		k.mu.Unlock()
	}
	return res, err
}

// Clean is c without its secrets: every text and content of it as clean has it. It shares nothing that it changes with c.
func (c Call) Clean(clean func(b []byte) []byte) Call {
	c.Args, c.Env, c.Changes = slices.Clone(c.Args), maps.Clone(c.Env), slices.Clone(c.Changes)
	if c.Cwd != nil {
		cwd := *c.Cwd
		c.Cwd = &cwd
	}
	c.eachText(func(_ string, v *string) { *v = string(clean([]byte(*v))) })
	for _, name := range slices.Sorted(maps.Keys(c.Env)) { // in the same order each time: clean may number what it meets
		c.Env[name] = string(clean([]byte(c.Env[name])))
	}
	for i := range c.Changes {
		if content := c.Changes[i].Content; content != nil {
			c.Changes[i].Content = clean(content)
		}
	}
	return c
}

// Calls lists what was kept so far, in the order in which it was asked for: that in which a Player answers.
func (k *Keeper) Calls() []Call {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := []Call{}
	for _, c := range k.calls {
		if c != nil {
			out = append(out, *c)
		}
	}
	return out
}
