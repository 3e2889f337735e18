package testbench

import (
	"maps"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Getenv returns a variable of Config.Env, and whether it is set; on a replay, what the tape says that it was. Each reading is on
// the tape as an env_read.
func (b *Bench) Getenv(name string) (string, bool) {
	value, ok, err := b.getenv(name)
	if err != nil {
		return "", false
	}
	return value, ok
}

// LookupEnv is Getenv with the reason why there is no answer: a replay whose tape does not hold a reading of the variable.
func (b *Bench) LookupEnv(name string) (value string, ok bool, err error) { return b.getenv(name) }

// Environ returns all of Config.Env as NAME=VALUE, sorted by name; on a replay, the variables that the tape says were set. Each
// of them is on the tape as an env_read.
func (b *Bench) Environ() []string {
	var all []string
	for _, name := range b.envNames() {
		if value, ok := b.Getenv(name); ok {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// envNames are the variables that are set, sorted.
func (b *Bench) envNames() []string {
	if b.from == nil {
		return sortedKeys(b.env)
	}
	b.from.mu.Lock()
	defer b.from.mu.Unlock()
	var names []string
	for name, queue := range b.from.env.reads {
		if name != anyName && len(queue) > 0 && queue[0] != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (b *Bench) getenv(name string) (string, bool, error) {
	if err := b.watch.gate(); err != nil {
		return "", false, err
	}
	value, ok := b.env[name]
	if b.from != nil {
		var err error
		if value, ok, err = b.envTaped(name); err != nil {
			return "", false, err
		}
	}
	if b.out != nil {
		return value, ok, b.recordEnv(name, value, ok)
	}
	return value, ok, nil
}

func (b *Bench) recordEnv(name, value string, ok bool) error {
	k := &tape.EnvRead{VarName: name}
	if ok {
		p, err := b.out.rec.Payload(b.secrets.variable(name, value))
		if err != nil {
			return err
		}
		k.Value = p
	}
	return b.out.rec.Record(k)
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// envTape answers readings of the environment from a tape: by name, and of one name in recorded order; what was read last stands
// for whatever comes after it, for a variable does not change by being read. A tape of another producer answers by order alone.
type envTape struct {
	reads   map[string][]*tape.Payload // by name; nil for a variable that was not set
	foreign bool
}

// anyName is what all readings of a foreign tape are kept under: no variable has this name.
const anyName = ""

func (e *envTape) add(k *tape.EnvRead) {
	name := k.VarName
	if e.foreign {
		name = anyName
	}
	e.reads[name] = append(e.reads[name], k.Value)
}

// next takes the next reading of a variable; false where there is none.
func (e *envTape) next(name string) (*tape.Payload, bool) {
	if e.foreign {
		name = anyName
	}
	queue := e.reads[name]
	if len(queue) == 0 {
		return nil, false
	}
	if len(queue) > 1 || e.foreign {
		e.reads[name] = queue[1:]
	}
	return queue[0], true
}

// envTaped is getenv of a replay.
func (b *Bench) envTaped(name string) (string, bool, error) {
	b.from.mu.Lock()
	p, ok := b.from.env.next(name)
	b.from.mu.Unlock()
	if !ok {
		err := &RefusedError{Axis: "environment", Asked: "the variable " + strconv.Quote(name) + " was not read when the tape was made",
			Next: "record the run again, or undo what reads it"}
		b.watch.refuse(err, func() tape.Kind { return &tape.EnvRead{VarName: name} })
		return "", false, err
	}
	if p == nil {
		return "", false, nil
	}
	value, err := p.Bytes(b.from.store)
	return string(value), err == nil, b.watch.see(err, nil)
}
