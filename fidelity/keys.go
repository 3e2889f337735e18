package fidelity

import (
	"reflect"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/tape"
)

// Keys are the keys, beyond those that every producer writes, that the records of one tape have. What a tape never says of a kind
// cannot differ: that tape, and another without these keys (Only), compare by what both say. A tape may be a copy of another, which a producer
// saved that knows none of these keys: of a kind of which it says nothing beyond what every producer writes, it lacks an error and a signal too.
type Keys struct {
	has  map[addedKey]bool
	all  bool            // has is full: the tape counts as one that has every key
	says map[string]bool // kinds of which the tape has such keys
}

// everyones are the keys that every producer writes of a kind, and that a tape of another may hold as further fields of that name, where they
// have no form here: a digest of another kind, a number beyond 63 bits. Such a key is of both tapes, always.
var everyones = map[string][]string{
	"llm_call":      {"request_digest"},
	"clock_sleep":   {"duration_ms"},
	"process_spawn": {"duration_ms"},
	"file_read":     {"content_hash", "len_bytes"},
	"file_write":    {"content_hash", "len_bytes"},
	"mcp_json_rpc":  {"request_digest", "response_digest", "latency_ms"},
}

func isEveryones(kind, key string) bool { return slices.Contains(everyones[kind], key) }

// An addedKey is a key of a kind; of the record itself where kind is "".
type addedKey struct{ kind, name string }

// isEnd reports whether a key is that of an error or a signal: without it there was none.
func (a addedKey) isEnd() bool {
	return addedKeys[a.kind][a.name] != "" && (a.name == "error" || a.name == "signal")
}

// lacks reports whether a key may have been dropped from the tape. An error or a signal is where nothing else of its kind is said.
func (k *Keys) lacks(key addedKey) bool {
	return !k.all && !k.has[key] && (!key.isEnd() || !k.says[key.kind])
}

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
		note := func(key string) { k.has[addedKey{name, key}], k.says[name] = true, true }
		each(rec.Kind, func(key string, _ func()) { note(key) })
		for _, f := range extraOf(rec.Kind) {
			if !isEveryones(name, f.Name) {
				note(f.Name)
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
		if other.lacks(key) {
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
	each(bare.Kind, func(key string, drop func()) {
		if k.lacks(addedKey{name, key}) {
			drop()
		}
	})
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
	return slices.DeleteFunc(slices.Clone(fs), func(f tape.Field) bool {
		return !isEveryones(kind, f.Name) && !k.has[addedKey{kind, f.Name}]
	})
}

// addedKeys are, by kind, the keys that are ours and of which nothing follows where they are absent, and those of an error or a signal, with
// the fields that hold them.
var addedKeys = map[string]map[string]string{
	"llm_call": {
		"provider": "Provider", "endpoint": "Endpoint", "model": "Model", "params_digest": "ParamsDigest", "usage": "Usage",
		"connection": "Connection", "opcode": "Opcode", "method": "Method", "url": "URL", "request_headers": "RequestHeaders",
		"request_payload": "RequestPayload", "status": "Status", "response_headers": "ResponseHeaders", "stream": "Stream",
		"lane": "Lane", "arrival": "Arrival", "error": "Error",
	},
	"file_read":   addedToFiles,
	"file_write":  addedToFiles,
	"file_delete": addedToFiles,
	"process_spawn": {
		"spawn_id": "SpawnID", "parent_spawn_id": "ParentSpawnID", "stdin_payload": "Stdin", "stdout_digest": "StdoutDigest",
		"stderr_digest": "StderrDigest", "signal": "Signal",
	},
	"mcp_json_rpc": {
		"from": "From", "conversation": "Conversation", "transport": "Transport", "arrival": "Arrival", "answered": "Answered",
		"params_digest": "ParamsDigest", "result_digest": "ResultDigest", "exchange": "Exchange", "answer_exchange": "AnswerExchange",
		"error": "Error",
	},
	"dir_list": {"names": "Names"},
	"env_read": {"value": "Value"},
}

var addedToFiles = map[string]string{
	"content": "Content", "before": "Before", "content_digest": "ContentDigest", "mode": "Mode", "spawn_id": "SpawnID",
}

// each calls f for those of addedKeys that have a value in k; drop takes it away.
func each(k tape.Kind, f func(key string, drop func())) {
	of := addedKeys[k.Name()]
	if _, unknown := k.(*tape.Unknown); unknown || len(of) == 0 {
		return
	}
	record := reflect.ValueOf(k).Elem()
	for key, name := range of {
		field := record.FieldByName(name)
		chunks := key == "stream" && record.FieldByName("StreamExtra").Len() > 0
		if field.IsZero() && !chunks || field.Kind() == reflect.Slice && field.Len() == 0 && !chunks {
			continue
		}
		f(key, func() {
			field.SetZero()
			if key == "stream" {
				record.FieldByName("StreamExtra").SetZero()
			}
		})
	}
}

// copied is k, for keys of it to be taken away.
func copied(k tape.Kind) tape.Kind {
	c := reflect.New(reflect.TypeOf(k).Elem())
	c.Elem().Set(reflect.ValueOf(k).Elem())
	return c.Interface().(tape.Kind)
}
