package deck

import "github.com/tapedeck-dev/tapedeck/tape"

// Which thread takes which task from a queue is chance, and nothing on a tape tells threads that do so from those that have work of their own. So
// a replay tells threads by the order in which their process made them and, where that ends red, in a second attempt by arrival: a thread is no
// recorded one until it asks for something that each was told for itself. The first that asks is the one that asked first then, and one that is
// answered what another one was is that one from there on. Both may be wrong; a replay that is equal to its recording is none the less.

// A worker is a thread by its process and its place among those that this made.
type worker struct {
	process uint64
	nth     uint64
}

// as is which recorded process, or thread, one is that asks for what each is told for itself.
func (i *processInputs) as() *processInputs {
	i.asks()
	return i.role.Load()
}

// soFar is as, of one that asks for what others are told too.
func (i *processInputs) soFar() *processInputs {
	if role := i.role.Load(); role != nil {
		return role
	}
	return i
}

// arrives reports whether it is told later which recorded one a thread is, and what a thread starts is that of who it is.
func (p *processes) arrives(in *processInputs) bool {
	if p.workers == nil || in.program.Nth == 0 {
		return false
	}
	key := worker{in.parent, in.program.Nth}
	p.mu.Lock()
	by := p.workers[key]
	if in.program.Thread {
		p.workers[key] = in
	}
	p.mu.Unlock()
	if in.program.Thread {
		in.timer, in.places, _ = p.clock.Given(nil)   // none: no error
		in.ticks, in.tickings, _ = p.ticks.Given(nil) // likewise
		return true
	}
	if by != nil {
		in.program.Nth = by.as().program.Nth
	}
	return false
}

// works is told that a thread is about to have an answer, by the number of who had it when it was recorded: it is that one from then on. Nil is none.
func (p *processes) works(is *processInputs, id uint64) {
	if is == nil {
		return
	}
	p.mu.Lock()
	other := p.plays(id)
	var was *tape.ProcessSpawn // nobody is it yet
	switch {
	case other == nil:
		was = p.again.exchange(is.parent, id, is.role.Load().was)
	case other != is:
		is.role.Store(other.role.Swap(is.role.Load()))
	}
	p.mu.Unlock()
	if was == nil {
		return
	}
	program := *is.program
	program.Nth = numberOf(was, tape.ThreadKey)
	role := p.describe(&program)
	role.id, role.was = id, was
	p.give(role)
	is.role.Store(role)
}

// plays is the thread that is a recorded one now; nil for none. mu is held.
func (p *processes) plays(id uint64) *processInputs {
	for _, in := range p.workers {
		if role := in.role.Load(); role != nil && role.id == id {
			return in
		}
	}
	return nil
}
