package fidelity

import (
	"bytes"
	"slices"

	"github.com/tapedeck-dev/tapedeck/fidelity/internal/bodies"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// record compares two records and returns what differs. A kind that differs ends the comparison.
func (d *differ) record(a, b *tape.Record) []finding {
	d.found = d.found[:0]
	if a.Kind.Name() != b.Kind.Name() && !bothUnknown(a.Kind, b.Kind) {
		d.add(KindMismatch, describe(a.Kind), describe(b.Kind))
		return d.found
	}
	if d.exact {
		same(d, PhaseMismatch, a.Phase.String(), b.Phase.String())
		same(d, VirtualTimeDrift, a.VirtualTimeMS, b.VirtualTimeMS)
		same(d, MonotonicDrift, a.MonotonicMS, b.MonotonicMS)
		if !d.lanes { // lanes run side by side: their common order is nobody's doing
			same(d, GlobalOrdinalDrift, a.G, b.G)
		}
	}
	d.kind(a.Kind, b.Kind)
	d.raw(a.Raw, b.Raw)
	d.extra(a.Extra, b.Extra)
	return d.found
}

// bothUnknown reports whether neither kind is known here, whatever they are called.
func bothUnknown(a, b tape.Kind) bool {
	_, one := a.(*tape.Unknown)
	_, other := b.(*tape.Unknown)
	return one && other
}

// kind compares two kinds of one name. Kinds of one name and two types cannot come from a tape; they differ.
func (d *differ) kind(a, b tape.Kind) {
	switch a := a.(type) {
	case *tape.ClockRead:
		both(d, a, b, d.clockRead)
	case *tape.ClockSleep:
		both(d, a, b, d.clockSleep)
	case *tape.LLMCall:
		both(d, a, b, d.llmCall)
	case *tape.HTTPExchange:
		both(d, a, b, d.httpExchange)
	case *tape.FileRead:
		both(d, a, b, func(a, b *tape.FileRead) { d.file(&fileRead, &a.File, &b.File) })
	case *tape.FileWrite:
		both(d, a, b, func(a, b *tape.FileWrite) { d.file(&fileWrite, &a.File, &b.File) })
	case *tape.FileDelete:
		both(d, a, b, func(a, b *tape.FileDelete) { d.file(&fileDelete, &a.File, &b.File) })
	case *tape.ProcessSpawn:
		both(d, a, b, d.process)
	case *tape.MCPJSONRPC:
		both(d, a, b, d.mcp)
	case *tape.Unknown:
		both(d, a, b, d.unknown)
	default:
		d.ownKind(a, b)
	}
}

// ownKind is kind for those that only recordings have.
func (d *differ) ownKind(a, b tape.Kind) {
	switch a := a.(type) {
	case *tape.MCPOpen:
		both(d, a, b, d.mcpOpen)
	case *tape.MCPText:
		both(d, a, b, d.mcpText)
	case *tape.MCPClose:
		both(d, a, b, d.mcpClose)
	case *tape.WSOpen:
		both(d, a, b, d.wsOpen)
	case *tape.WSMessage:
		both(d, a, b, d.wsMessage)
	case *tape.WSClose:
		both(d, a, b, d.wsClose)
	case *tape.TLSRefused:
		both(d, a, b, d.tlsRefused)
	case *tape.NetRefused:
		both(d, a, b, d.netRefused)
	case *tape.NameLookup:
		both(d, a, b, d.nameLookup)
	case *tape.DirList:
		both(d, a, b, d.dirList)
	case *tape.EnvRead:
		both(d, a, b, d.envRead)
	case *tape.FileStat:
		both(d, a, b, d.fileStat)
	case *tape.RandomRead:
		both(d, a, b, d.randomRead)
	case *tape.PolicyVerdict:
		both(d, a, b, d.policyVerdict)
	default:
		d.add(UnknownKind, describe(a), describe(b))
	}
}

// both calls compare where b is of the type of a.
func both[K tape.Kind](d *differ, a K, b tape.Kind, compare func(a, b K)) {
	if b, ok := b.(K); ok {
		compare(a, b)
		return
	}
	d.add(UnknownKind, describe(a), describe(b))
}

func (d *differ) unknown(a, b *tape.Unknown) {
	if !bytes.Equal(a.JSON, b.JSON) {
		d.texts(UnknownKind, string(a.JSON), string(b.JSON))
	}
}

func (d *differ) clockRead(a, b *tape.ClockRead) {
	same(d, ClockReadSource, a.Source, b.Source)
	same(d, ClockReadValue, a.ValueMS, b.ValueMS)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) clockSleep(a, b *tape.ClockSleep) {
	same(d, ClockSleepDuration, a.DurationMS, b.DurationMS)
	d.extra(a.Extra, b.Extra)
}

func (d *differ) process(a, b *tape.ProcessSpawn) {
	if !d.replaced {
		d.text(ProcessProgram, a.Program, b.Program)
		d.args(a.Args, b.Args)
	}
	d.text(ProcessCwd, orNull(a.Cwd), orNull(b.Cwd))
	if !d.lanes || endedItself(a) && endedItself(b) {
		same(d, ProcessExitCode, a.ExitCode, b.ExitCode)
		same(d, ProcessSignal, a.Signal, b.Signal)
	}
	sameExact(d, ProcessDuration, a.DurationMS, b.DurationMS)
	if d.onScreen != 1 && !d.child {
		d.digested(ProcessStdoutHash, a.StdoutDigest, b.StdoutDigest, a.Stdout, b.Stdout)
	}
	if d.onScreen != 2 && !d.child {
		d.digested(ProcessStderrHash, a.StderrDigest, b.StderrDigest, a.Stderr, b.Stderr)
	}
	if !d.lanes || d.exact && !d.child { // an input, which replay gives itself
		d.payload(ProcessStdinHash, a.Stdin, b.Stdin)
	}
	if !d.lanes {
		same(d, ProcessSpawnID, a.SpawnID, b.SpawnID)
		same(d, ProcessParent, a.ParentSpawnID, b.ParentSpawnID)
		same(d, ProcessPID, a.PID, b.PID)
		d.payload(ProcessTimes, a.Times, b.Times)
		d.payload(ProcessTicks, a.Ticks, b.Ticks)
		d.payload(ProcessAnswers, a.Answers, b.Answers)
		if hashOf(a.Stdout) == hashOf(b.Stdout) { // else it is said
			same(d, ProcessStdoutDigest, a.StdoutDigest, b.StdoutDigest)
		}
		if hashOf(a.Stderr) == hashOf(b.Stderr) {
			same(d, ProcessStderrDigest, a.StderrDigest, b.StderrDigest)
		}
	}
	d.extra(a.Extra, b.Extra)
}

// endedItself reports whether how a process ended is its own doing. Whether one has written all before the other end of its pipe is
// closed is a matter of moments.
func endedItself(p *tape.ProcessSpawn) bool {
	return !tape.HasFlag(p, tape.LeftKey) && !tape.HasFlag(p, tape.AgainKey) && (p.Signal != "SIGPIPE" || p.ParentSpawnID == 0)
}

// args compares two argument lists as one field; the message shows the first argument that differs.
func (d *differ) args(a, b []string) {
	if !slices.Equal(a, b) {
		d.argList(ProcessArgs, a, b)
	}
}

// argList adds a finding about two argument lists that differ.
func (d *differ) argList(c Category, a, b []string) {
	i := 0
	for i < min(len(a), len(b)) && d.masked(a[i]) == d.masked(b[i]) {
		i++
	}
	switch {
	case i < len(a) && i < len(b):
		d.texts(c, a[i], b[i])
	case i < len(a):
		d.add(c, bodies.Shorten(a[i]), "nothing more")
	case i < len(b):
		d.add(c, "nothing more", bodies.Shorten(b[i]))
	}
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}
