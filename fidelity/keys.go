package fidelity

import (
	"reflect"
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
		each(rec.Kind, addedKeys, func(key string, _ func()) { note(key, false) })
		each(rec.Kind, endKeys, func(key string, _ func()) { note(key, true) })
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
	each(bare.Kind, addedKeys, func(key string, drop func()) {
		if !k.has[addedKey{kind: name, name: key}] {
			drop()
		}
	})
	if k.lacksEnds(name) {
		each(bare.Kind, endKeys, func(_ string, drop func()) { drop() })
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

// addedKeys are, by kind, the keys that are ours and of which nothing follows where they are absent, with the fields that hold them.
var addedKeys = map[string]map[string]string{
	"llm_call": {
		"provider": "Provider", "endpoint": "Endpoint", "model": "Model", "params_digest": "ParamsDigest", "usage": "Usage",
		"connection": "Connection", "opcode": "Opcode", "method": "Method", "url": "URL", "request_headers": "RequestHeaders",
		"request_payload": "RequestPayload", "status": "Status", "response_headers": "ResponseHeaders", "stream": "Stream",
		"lane": "Lane", "arrival": "Arrival",
	},
	"file_read":   addedToFiles,
	"file_write":  addedToFiles,
	"file_delete": addedToFiles,
	"process_spawn": {
		"spawn_id": "SpawnID", "parent_spawn_id": "ParentSpawnID", "stdin_payload": "Stdin", "stdout_digest": "StdoutDigest",
		"stderr_digest": "StderrDigest",
	},
	"mcp_json_rpc": {
		"from": "From", "conversation": "Conversation", "transport": "Transport", "arrival": "Arrival", "answered": "Answered",
		"params_digest": "ParamsDigest", "result_digest": "ResultDigest", "exchange": "Exchange", "answer_exchange": "AnswerExchange",
	},
	"dir_list": {"names": "Names"},
	"env_read": {"value": "Value"},
}

var addedToFiles = map[string]string{
	"content": "Content", "before": "Before", "content_digest": "ContentDigest", "mode": "Mode", "spawn_id": "SpawnID",
}

// endKeys are those of an error or a signal: without them there was none.
var endKeys = map[string]map[string]string{
	"llm_call": {"error": "Error"}, "process_spawn": {"signal": "Signal"}, "mcp_json_rpc": {"error": "Error"},
}

// each calls f for those of keys that have a value in k; drop takes it away.
func each(k tape.Kind, keys map[string]map[string]string, f func(key string, drop func())) {
	of := keys[k.Name()]
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
