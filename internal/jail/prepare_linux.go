package jail

import (
	"sync"

	"github.com/tapedeck-dev/tapedeck/internal/jail/filter"
	"github.com/tapedeck-dev/tapedeck/internal/jail/launch"
	"github.com/tapedeck-dev/tapedeck/internal/jail/stage"
)

// A Prepared is the init of a jail that nobody has described yet: a Start whose Config has it goes on with it. Close it always.
type Prepared struct {
	mu sync.Mutex
	j  *Jail // nil once it was taken
}

// Prepare starts one, unless one was started ahead, and does not wait for it. The error is an *UnavailableError or ErrNotEntered.
func Prepare() (*Prepared, error) {
	if !stage.Entered.Load() {
		return nil, ErrNotEntered
	}
	if !filter.Known() {
		return nil, errProcessor
	}
	j, err := startInit(launch.Take())
	if err != nil {
		return nil, err
	}
	return &Prepared{j: j}, nil
}

// NotNeeded ends the init that was started ahead, if nobody prepared anything with it.
func NotNeeded() { launch.Drop() }

// Check waits until it is known whether namespaces and a fresh /proc can be had: what most often cannot. The error is an
// *UnavailableError then. Start may still find that something else is missing.
func (p *Prepared) Check() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.j == nil || p.j.begun {
		return nil
	}
	if err := p.j.awaitBegun(); err != nil {
		return p.j.explain(err)
	}
	return nil
}

// take hands the init out, once.
func (p *Prepared) take() *Jail {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.j
	p.j = nil
	return j
}

// Close ends the init unless a Start has it.
func (p *Prepared) Close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.j != nil {
		p.j.Close()
		p.j = nil
	}
	return nil
}

// Available tells, by trying it once a process, what Prepare and Check find.
func Available() error {
	if !stage.Entered.Load() {
		return ErrNotEntered
	}
	return available()
}

var available = sync.OnceValue(func() error {
	p, err := Prepare()
	if err != nil {
		return err
	}
	defer p.Close()
	return p.Check()
})
