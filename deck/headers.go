package deck

import (
	"bytes"
	"reflect"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// headerNotes names the header keys in which two bare tapes differ, where a mode asks for the same bytes. A header is no
// record: what differs there alone is no divergence, and is not passed over in silence either.
func headerNotes(mode fidelity.Mode, a, b *tape.Header) []string {
	if mode != fidelity.ByteIdentical {
		return nil
	}
	var keys []string
	for _, k := range []struct {
		name string
		a, b any
	}{
		{"harn_version", a.Producer, b.Producer},
		{"started_at_unix_ms", a.StartedAtUnixMS, b.StartedAtUnixMS},
		{"script_path", a.ScriptPath, b.ScriptPath},
		{"argv", append([]string{}, a.Argv...), append([]string{}, b.Argv...)},
	} {
		if !reflect.DeepEqual(k.a, k.b) {
			keys = append(keys, k.name)
		}
	}
	if keys = append(keys, extraKeys(a.Extra, b.Extra)...); keys == nil {
		return nil
	}
	return []string{"the headers differ in " + strings.Join(keys, ", ") + ": a header is no record, so this is no divergence"}
}

// extraKeys names the further keys that do not stand in both lists with the same value.
func extraKeys(a, b []tape.Field) []string {
	had := make(map[string][]byte, len(a))
	for _, f := range a {
		had[f.Name] = f.Value
	}
	var out []string
	for _, f := range b {
		if was, ok := had[f.Name]; !ok || !bytes.Equal(was, f.Value) {
			out = append(out, f.Name)
		}
		delete(had, f.Name)
	}
	for _, f := range a {
		if _, left := had[f.Name]; left {
			out = append(out, f.Name)
		}
	}
	return out
}
