package fidelity

import (
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Keys are the keys, beyond those that every producer writes, that the records of one tape have. What a tape never says of a kind
// cannot differ: that tape, and another without these keys (Only), compare by what both say.
type Keys struct {
	// Copy says that the tape may be a copy of another, which a producer saved that knows none of these keys: of a kind of which it
	// says nothing beyond what every producer writes, it lacks an error and a signal too.
	Copy bool

	has  map[addedKey]bool
	all  bool            // has is full: the tape counts as one that has every key
	says map[string]bool // kinds of which the tape has such keys
}

// isEveryones reports whether every producer writes a key of a kind. A tape of another holds as a further field of that name what has no
// form here: a digest of another kind, a number beyond 63 bits. Such a key is of both tapes, always.
func isEveryones(kind, key string) bool {
	switch kind {
	case "llm_call":
		return key == "request_digest"
	case "clock_sleep", "process_spawn":
		return key == "duration_ms"
	case "file_read", "file_write":
		return key == "content_hash" || key == "len_bytes"
	case "mcp_json_rpc":
		return key == "request_digest" || key == "response_digest" || key == "latency_ms"
	}
	return false
}

// An addedKey is a key of a kind; of the record itself where kind is "". One of an end is an error or a signal.
type addedKey struct {
	kind, name string
	end        bool
}

// lacksEnds reports whether an error or a signal that the tape does not have may have been dropped.
func (k *Keys) lacksEnds(kind string) bool { return k.Copy && !k.says[kind] }

// maxKeys is how many keys are kept of one tape.
const maxKeys = 1 << 14

// KeysOf reads all records. The error is of one that cannot be read.
func KeysOf(records Records) (*Keys, error) {
	k := &Keys{has: make(map[addedKey]bool), says: make(map[string]bool)}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		name := rec.Kind.Name()
		note := func(key string, end bool) { k.has[addedKey{name, key, end}], k.says[name] = true, true }
		eachAdded(rec.Kind, func(key string, _ func()) { note(key, false) })
		eachEnd(rec.Kind, func(key string, _ func()) { note(key, true) })
		for _, f := range extraOf(rec.Kind) {
			if !isEveryones(name, f.Name) {
				note(f.Name, false)
			}
		}
		for _, f := range rec.Extra {
			k.has[addedKey{name: f.Name}] = true
		}
		if rec.G != 0 {
			k.has[addedKey{name: "g"}] = true
		}
		if rec.Raw != nil {
			k.has[addedKey{name: "raw"}] = true
		}
		if len(k.has) > maxKeys { // of others, made up to fill memory
			k.all, k.has = true, nil
			return k, nil
		}
	}
	return k, nil
}

// Beyond names the keys that k has and other lacks, each with its kind, in order: those that Only of other takes away from the tape of
// k.
func (k *Keys) Beyond(other *Keys) (names []string) {
	for key := range k.has {
		if !other.all && !other.has[key] && (!key.end || other.lacksEnds(key.kind)) {
			names = append(names, strings.TrimPrefix(key.kind+"."+key.name, "."))
		}
	}
	slices.Sort(names)
	return names
}

// Only yields records without the keys that are not among k.
func (k *Keys) Only(records Records) Records {
	if k.all {
		return records
	}
	return func(yield func(*tape.Record, error) bool) {
		for rec, err := range records {
			if err == nil {
				rec = k.only(rec)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (k *Keys) only(rec *tape.Record) *tape.Record {
	bare := *rec
	bare.Kind = copied(rec.Kind)
	name := rec.Kind.Name()
	eachAdded(bare.Kind, func(key string, drop func()) {
		if !k.has[addedKey{kind: name, name: key}] {
			drop()
		}
	})
	if k.lacksEnds(name) {
		eachEnd(bare.Kind, func(_ string, drop func()) { drop() })
	}
	if extra := tape.Extras(bare.Kind); extra != nil {
		*extra = k.fields(name, *extra)
	}
	bare.Extra = k.fields("", rec.Extra)
	if !k.has[addedKey{name: "g"}] {
		bare.G = 0
	}
	if !k.has[addedKey{name: "raw"}] {
		bare.Raw = nil
	}
	return &bare
}

func (k *Keys) fields(kind string, fs []tape.Field) []tape.Field {
	other := func(f tape.Field) bool {
		return !isEveryones(kind, f.Name) && !k.has[addedKey{kind: kind, name: f.Name}]
	}
	if !slices.ContainsFunc(fs, other) {
		return fs
	}
	return slices.DeleteFunc(slices.Clone(fs), other)
}

func extraOf(k tape.Kind) []tape.Field {
	if extra := tape.Extras(k); extra != nil {
		return *extra
	}
	return nil
}

// eachEnd calls f as eachAdded does, for how something failed or was ended.
func eachEnd(k tape.Kind, f func(key string, drop func())) {
	switch k := k.(type) {
	case *tape.LLMCall:
		added(f, "error", &k.Error)
	case *tape.ProcessSpawn:
		added(f, "signal", &k.Signal)
	case *tape.MCPJSONRPC:
		added(f, "error", &k.Error)
	}
}

// eachAdded calls f for each key of k that has a value, is ours, and of which nothing follows where it is absent; drop takes it away. An
// error and a signal are none of these: without them there was none.
func eachAdded(k tape.Kind, f func(key string, drop func())) {
	switch k := k.(type) {
	case *tape.LLMCall:
		added(f, "provider", &k.Provider)
		added(f, "endpoint", &k.Endpoint)
		added(f, "model", &k.Model)
		added(f, "params_digest", &k.ParamsDigest)
		addedList(f, "usage", &k.Usage)
		added(f, "connection", &k.Connection)
		added(f, "opcode", &k.Opcode)
		addedExchange(f, &k.Exchange)
	case *tape.FileRead:
		addedFile(f, &k.File)
	case *tape.FileWrite:
		addedFile(f, &k.File)
	case *tape.FileDelete:
		addedFile(f, &k.File)
	case *tape.ProcessSpawn:
		added(f, "spawn_id", &k.SpawnID)
		added(f, "parent_spawn_id", &k.ParentSpawnID)
		added(f, "stdin_payload", &k.Stdin)
		added(f, "stdout_digest", &k.StdoutDigest)
		added(f, "stderr_digest", &k.StderrDigest)
	case *tape.MCPJSONRPC:
		addedMCP(f, k)
	case *tape.DirList:
		added(f, "names", &k.Names)
	case *tape.EnvRead:
		added(f, "value", &k.Value)
	}
}

func addedExchange(f func(key string, drop func()), x *tape.Exchange) {
	added(f, "method", &x.Method)
	added(f, "url", &x.URL)
	addedList(f, "request_headers", &x.RequestHeaders)
	added(f, "request_payload", &x.RequestPayload)
	added(f, "status", &x.Status)
	addedList(f, "response_headers", &x.ResponseHeaders)
	if len(x.Stream)+len(x.StreamExtra) > 0 {
		f("stream", func() { x.Stream, x.StreamExtra = nil, nil })
	}
	added(f, "lane", &x.Lane)
	added(f, "arrival", &x.Arrival)
}

func addedFile(f func(key string, drop func()), file *tape.File) {
	added(f, "content", &file.Content)
	added(f, "before", &file.Before)
	added(f, "content_digest", &file.ContentDigest)
	added(f, "mode", &file.Mode)
	added(f, "spawn_id", &file.SpawnID)
}

func addedMCP(f func(key string, drop func()), k *tape.MCPJSONRPC) {
	added(f, "from", &k.From)
	added(f, "conversation", &k.Conversation)
	added(f, "transport", &k.Transport)
	added(f, "arrival", &k.Arrival)
	added(f, "answered", &k.Answered)
	added(f, "params_digest", &k.ParamsDigest)
	added(f, "result_digest", &k.ResultDigest)
	added(f, "exchange", &k.Exchange)
	added(f, "answer_exchange", &k.AnswerExchange)
}

func added[T comparable](f func(key string, drop func()), key string, at *T) {
	var none T
	if *at != none {
		f(key, func() { *at = none })
	}
}

func addedList[L ~[]T, T any](f func(key string, drop func()), key string, at *L) {
	if len(*at) > 0 {
		f(key, func() { *at = nil })
	}
}

// copied is k, for keys of it to be taken away.
func copied(k tape.Kind) tape.Kind {
	switch k := k.(type) {
	case *tape.LLMCall:
		return new(*k)
	case *tape.FileRead:
		return new(*k)
	case *tape.FileWrite:
		return new(*k)
	case *tape.FileDelete:
		return new(*k)
	case *tape.ProcessSpawn:
		return new(*k)
	case *tape.MCPJSONRPC:
		return new(*k)
	case *tape.DirList:
		return new(*k)
	case *tape.EnvRead:
		return new(*k)
	case *tape.ClockRead:
		return new(*k)
	case *tape.ClockSleep:
		return new(*k)
	case *tape.HTTPExchange:
		return new(*k)
	case *tape.RandomRead:
		return new(*k)
	}
	return k
}
