package fidelity

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// record compares two records and returns what differs. A kind that differs ends the comparison.
func (d *differ) record(a, b *tape.Record) []finding {
	d.found, d.facets = d.found[:0], nil
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
	d.extra(extraOf(a.Kind), extraOf(b.Kind))
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
	compare := rules[a.Name()]
	if _, unknown := a.(*tape.Unknown); unknown {
		compare = compareUnknown
	}
	if compare == nil || !compare(d, a, b) {
		d.add(UnknownKind, describe(a), describe(b))
	}
}

// A rule compares two records of a kind. It reports false where one is of another type.
type rule func(d *differ, a, b tape.Kind) bool

// of makes a rule of what compares the fields.
func of[K tape.Kind](compare func(d *differ, a, b K)) rule {
	return func(d *differ, a, b tape.Kind) bool {
		x, okX := a.(K)
		y, okY := b.(K)
		if okX && okY {
			compare(d, x, y)
		}
		return okX && okY
	}
}

// rules are the kinds, by name. The keys that no version of the format names compare besides.
var rules = map[string]rule{
	"clock_read": of(func(d *differ, a, b *tape.ClockRead) {
		same(d, ClockReadSource, a.Source, b.Source)
		same(d, ClockReadValue, a.ValueMS, b.ValueMS)
	}),
	"clock_sleep": of(func(d *differ, a, b *tape.ClockSleep) {
		same(d, ClockSleepDuration, a.DurationMS, b.DurationMS)
	}),
	"llm_call":      of((*differ).llmCall),
	"http_exchange": of((*differ).httpExchange),
	"file_read":     of(func(d *differ, a, b *tape.FileRead) { d.file(&fileRead, &a.File, &b.File) }),
	"file_write":    of(func(d *differ, a, b *tape.FileWrite) { d.file(&fileWrite, &a.File, &b.File) }),
	"file_delete":   of(func(d *differ, a, b *tape.FileDelete) { d.file(&fileDelete, &a.File, &b.File) }),
	"process_spawn": of((*differ).process),
	"mcp_json_rpc":  of((*differ).mcp),
	"mcp_open":      of((*differ).mcpOpen),
	"mcp_text":      of((*differ).mcpText),
	"mcp_close":     of((*differ).mcpClose),
	"ws_open":       of((*differ).wsOpen),
	"ws_message":    of((*differ).wsMessage),
	"ws_close": of(func(d *differ, a, b *tape.WSClose) {
		sameInPlace(d, WSCloseConnection, a.Connection, b.Connection)
		same(d, WSCloseCode, a.Code, b.Code)
		same(d, WSCloseReason, a.Reason, b.Reason)
	}),
	"tls_refused": of(func(d *differ, a, b *tape.TLSRefused) {
		same(d, TLSRefusedHost, a.Host, b.Host)
		same(d, TLSRefusedPort, a.Port, b.Port)
		same(d, TLSRefusedReason, a.Reason, b.Reason)
	}),
	"net_refused": of(func(d *differ, a, b *tape.NetRefused) {
		same(d, NetRefusedAddr, a.Addr, b.Addr)
		same(d, NetRefusedPort, a.Port, b.Port)
		same(d, NetRefusedReason, a.Reason, b.Reason)
	}),
	"name_lookup": of(func(d *differ, a, b *tape.NameLookup) {
		d.text(NameLookupHost, a.Host, b.Host)
		same(d, NameLookupType, a.Type, b.Type)
		same(d, NameLookupResult, a.Result, b.Result)
	}),
	"dir_list": of((*differ).dirList),
	"env_read": of(func(d *differ, a, b *tape.EnvRead) {
		same(d, EnvReadName, a.VarName, b.VarName)
		d.payload(EnvReadValue, a.Value, b.Value)
	}),
	"file_stat": of(func(d *differ, a, b *tape.FileStat) {
		d.text(FileStatPath, a.Path, b.Path)
		same(d, FileStatType, a.Type, b.Type)
		sameExact(d, FileStatLen, a.LenBytes, b.LenBytes)
		same(d, FileStatMode, a.Mode, b.Mode)
	}),
	"random_read": of(func(d *differ, a, b *tape.RandomRead) {
		same(d, RandomReadLength, a.Length, b.Length)
		d.payload(RandomReadHash, a.Payload, b.Payload)
	}),
	"policy_verdict": of((*differ).policyVerdict),
}

var compareUnknown = of(func(d *differ, a, b *tape.Unknown) {
	if !bytes.Equal(a.JSON, b.JSON) {
		d.texts(UnknownKind, string(a.JSON), string(b.JSON))
	}
})

func (d *differ) process(a, b *tape.ProcessSpawn) {
	if !d.replaced {
		d.textAt("program", ProcessProgram, a.Program, b.Program)
		args := b.Args
		if d.lanes && !d.exact {
			args = d.pids.asRecorded(a.Args, args)
		}
		d.args(ProcessArgs, a.Args, args)
	}
	d.textAt("working directory", ProcessCwd, orNull(a.Cwd), orNull(b.Cwd))
	if !d.lanes || endedItself(a) && endedItself(b) {
		same(d, ProcessExitCode, a.ExitCode, b.ExitCode)
		same(d, ProcessSignal, a.Signal, b.Signal)
	}
	sameExact(d, ProcessDuration, a.DurationMS, b.DurationMS)
	if d.onScreen != 1 && !d.child {
		d.digested("stdout", ProcessStdoutHash, a.StdoutDigest, b.StdoutDigest, a.Stdout, b.Stdout)
	}
	if d.onScreen != 2 && !d.child {
		d.digested("stderr", ProcessStderrHash, a.StderrDigest, b.StderrDigest, a.Stderr, b.Stderr)
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
}

// endedItself reports whether how a process ended is its own doing. Whether one has written all before the other end of its pipe is
// closed is a matter of moments.
func endedItself(p *tape.ProcessSpawn) bool {
	return !tape.HasFlag(p, tape.LeftKey) && !tape.HasFlag(p, tape.AgainKey) && (p.Signal != "SIGPIPE" || p.ParentSpawnID == 0)
}

// args compares two lists of arguments as one field; the message shows the first one that differs.
func (d *differ) args(c Category, a, b []string) {
	if slices.Equal(a, b) {
		return
	}
	d.lists(c, a, b, "nothing more", d.equalMasked)
	for i := range min(len(a), len(b)) {
		f := textFacet(fmt.Sprintf("argument %d", i+1), c, a[i], b[i])
		f.argument = true
		d.mayHide(f)
	}
}

func orNull(s *string) string {
	if s == nil {
		return "null"
	}
	return *s
}

// fileCategories are the codes of one of the three kinds that hold a file.
type fileCategories struct {
	path, hash, length, content, before, digest, mode, attrs, spawn Category
}

const (
	attrsKey = "xattrs" // of the extended attributes of a file
	wholeKey = "whole"  // of a state that a call ended, or of the one behind it
)

var (
	fileRead = fileCategories{FileReadPath, FileReadHash, FileReadLen, FileReadContent, FileReadBefore, FileReadDigest,
		FileReadMode, ExtraKeys, FileReadSpawn}
	fileWrite = fileCategories{FileWritePath, FileWriteHash, FileWriteLen, FileWriteContent, FileWriteBefore,
		FileWriteDigest, FileWriteMode, FileWriteAttrs, FileWriteSpawn}
	fileDelete = fileCategories{FileDeletePath, FileDeleteHash, FileDeleteLen, FileDeleteContent, FileDeleteBefore,
		FileDeleteDigest, FileDeleteMode, ExtraKeys, FileDeleteSpawn}
)

// file compares two files. In lane mode the digest after masking stands for the bytes where both records have one, and
// what the file held before, which follows from the rest, does not count.
func (d *differ) file(c *fileCategories, a, b *tape.File) {
	d.text(c.path, a.Path, b.Path)
	same(d, c.mode, a.Mode, b.Mode)
	sameExact(d, c.length, a.LenBytes, b.LenBytes)
	if !d.lanes {
		if same(d, c.hash, a.ContentHash, b.ContentHash); a.ContentHash == b.ContentHash { // else the others say it again
			d.payload(c.content, a.Content, b.Content)
			same(d, c.digest, a.ContentDigest, b.ContentDigest)
		}
		d.payload(c.before, a.Before, b.Before)
		same(d, c.spawn, a.SpawnID, b.SpawnID)
		return
	}
	same(d, c.attrs, string(tape.FieldValue(a.Extra, attrsKey)), string(tape.FieldValue(b.Extra, attrsKey)))
	was, now := a.ContentHash, b.ContentHash
	if !a.ContentDigest.IsZero() && !b.ContentDigest.IsZero() {
		was, now = a.ContentDigest, b.ContentDigest
	}
	d.hashedAt(facet{place: a.Path, finding: finding{category: c.hash, was: a.Content, now: b.Content}}, was, now)
}

// dirList compares what stood in a directory as one field: the digest, and by position the names themselves, whose digest it is.
func (d *differ) dirList(a, b *tape.DirList) {
	d.text(DirListPath, a.Path, b.Path)
	f := finding{category: DirListNames, was: a.Names, now: b.Names}
	if a.NamesDigest != b.NamesDigest {
		d.hashed(f, a.NamesDigest, b.NamesDigest)
	} else if !d.lanes && !a.Names.Same(b.Names) {
		d.hashed(f, hashOf(a.Names), hashOf(b.Names))
	}
}

func (d *differ) policyVerdict(a, b *tape.PolicyVerdict) {
	same(d, PolicySet, a.PolicySet, b.PolicySet)
	if !d.lanes || d.exact { // between lanes it is what a provider made up for the call
		same(d, PolicyActionID, a.ActionID, b.ActionID)
	}
	same(d, PolicyTool, a.Tool, b.Tool)
	same(d, PolicyParamsDigest, a.ParamsDigest, b.ParamsDigest)
	if !d.lanes {
		d.payload(PolicyParamsHash, a.ParamsPayload, b.ParamsPayload)
	}
	d.json(PolicyState, a.State, b.State)
	d.json(PolicyVerdict, d.said(a), d.said(b))
}

// said is what a policy decided, between lanes without the id of the action, which each violation repeats.
func (d *differ) said(k *tape.PolicyVerdict) []byte {
	if !d.lanes || d.exact || k.ActionID == "" {
		return k.Verdict
	}
	return bytes.ReplaceAll(k.Verdict, []byte(strconv.Quote(k.ActionID)), []byte(`""`))
}
