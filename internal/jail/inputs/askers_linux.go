package inputs

import "github.com/tapedeck-dev/tapedeck/internal/jail/process"

// of returns who asks in a thread. It is nil before the program's execve, and for a thread that is gone.
func (in *Answerer) of(task int) *process.Asker {
	in.table.Lock()
	defer in.unlock()
	return in.find(task, 0)
}

// known returns the process that a thread is of; nil for one that has asked for nothing since its fork.
func (in *Answerer) known(task int) *process.Asker {
	in.table.Lock()
	defer in.table.Unlock()
	p := in.table.Known(task)
	if p == nil {
		if is, err := in.table.Status(task); err == nil {
			p = in.table.Known(is.Process)
		}
	}
	if p == nil {
		return nil
	}
	return p.Asker
}

// maxForks bounds how many processes in a row are looked for that have forked each other and executed nothing.
const maxForks = 64

func (in *Answerer) find(task, depth int) *process.Asker {
	if th := in.table.Thread(task); th != nil && th.Asker != nil {
		return th.Asker
	}
	if in.program == nil || depth > maxForks {
		return nil
	}
	is, err := in.table.Status(task)
	if err != nil {
		return nil
	}
	if p := in.table.Known(is.Process); p != nil && p.Asker != nil {
		return in.thread(p, task, is)
	}
	parent := in.parentOf(is, depth)
	forked := &process.Program{Parent: parent.Source, Forked: true, PID: is.Inside, Host: is.Process, OwnTicks: !parent.Ticks}
	a := in.begin(in.hold(is.Process), forked, process.Life{Forker: parent.Source, Sharing: parent.Process.Sharing})
	if task != is.Process {
		in.table.Add(a, task)
	}
	return a
}

// hold opens a process. One of those that are too many is not in the table, and may live when it is said to have ended.
func (in *Answerer) hold(pid int) *process.Process {
	p, err := in.table.Open(pid)
	if err != nil {
		return &process.Process{PID: pid}
	}
	return p
}

// begin has a Source answer a process from now on, as which is describes it.
func (in *Answerer) begin(p *process.Process, which *process.Program, life process.Life) *process.Asker {
	first := p.Asker == nil
	life.Asker = &process.Asker{Process: p, Output: in.pipeOf(p, 1), Ticks: !which.OwnTicks, Source: in.to.Started(which)}
	in.table.Begin(p, life)
	in.table.Add(life.Asker, p.PID)
	switch {
	case !p.Held():
		in.tell(life.Asker, process.Ended{})
	case first:
		in.table.OnEnd(p, func(e process.Ended) {
			in.table.Lock()
			defer in.unlock()
			in.over(p, e)
		})
	}
	return life.Asker
}

// thread returns who asks in a thread of p that asks for the first time.
func (in *Answerer) thread(p *process.Process, task int, is process.Status) *process.Asker {
	a := p.Asker
	if p.Sharing != process.AllThreads && is.Number != is.Inside {
		a = in.besides(p, task, is)
	}
	in.table.Add(a, task)
	return a
}

// besides is who asks in another thread than the first.
func (in *Answerer) besides(p *process.Process, task int, is process.Status) *process.Asker {
	if p.Rest != nil {
		return p.Rest
	}
	which := &process.Program{Parent: p.Asker.Source, Forked: true, Thread: true, PID: is.Number, Host: task, OwnTicks: !p.Asker.Ticks}
	if p.Sharing == process.OtherThreads {
		which.PID = 0 // which of them asks first says nothing
	}
	a := &process.Asker{Process: p, Ticks: p.Asker.Ticks, Source: in.to.Started(which)}
	if p.Sharing == process.OtherThreads {
		p.Rest = a
	}
	p.Others = append(p.Others, a)
	return a
}

// parentOf is the jail's program for what was left by its own parent.
func (in *Answerer) parentOf(is process.Status, depth int) *process.Asker {
	if is.Parent != in.table.Init && is.Parent > 1 {
		if p := in.find(is.Parent, depth+1); p != nil {
			return p
		}
	}
	return in.program.Asker
}

// started is told that a process has become another program, which which describes but for who it was before.
func (in *Answerer) started(p *process.Process, is process.Status, which *process.Program) *process.Asker {
	in.table.Settle() // whoever started it may have waited for another one before
	in.table.Lock()
	defer in.unlock()
	if in.program != nil {
		for _, child := range in.table.Children(is.Process) { // is of who p was: whether it asked for something by now must change nothing
			in.find(child, 0)
		}
	}
	switch {
	case p.Asker != nil && p.Forker != nil: // whether a fork asks for something before it executes must change nothing
		which.Parent = p.Forker
	case p.Asker != nil:
		which.Parent = p.Asker.Source
	case in.program != nil:
		which.Parent = in.parentOf(is, 0).Source
	}
	if p.Asker != nil {
		in.over(p, process.Ended{Again: true})
	}
	which.PID, which.Host = is.Inside, is.Process
	sharing, ticks := in.sharingOf(is.Process, which.Path)
	which.OwnTicks = !ticks
	a := in.begin(p, which, process.Life{Sharing: sharing})
	if in.program == nil {
		in.program = p
		in.begins()
	}
	return a
}

// over is told that p is no more what it was, and its threads are no more.
func (in *Answerer) over(p *process.Process, e process.Ended) {
	for _, a := range p.Others {
		in.tell(a, process.Ended{})
	}
	in.tell(p.Asker, e)
}

// An outcome is how the process of a source has ended.
type outcome struct {
	of  process.Source
	how process.Ended
}

// tell has the outcome of a told, once.
func (in *Answerer) tell(a *process.Asker, e process.Ended) {
	if !a.Over {
		a.Over = true
		in.outcomes = append(in.outcomes, outcome{a.Source, e})
	}
}

// unlock lets go of the lock, and tells outcomes, which may take a while.
func (in *Answerer) unlock() {
	list := in.outcomes
	in.outcomes = nil
	in.table.Unlock()
	for _, o := range list {
		in.to.Ended(o.of, o.how)
	}
}
