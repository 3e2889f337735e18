package deck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// headerNotes says in what the headers of two bare tapes differ: in their arguments always, for two runs that differ in nothing else
// are two; in other keys by name, where a mode asks for the same bytes. A header is no record: what differs there alone is no
// divergence, and is not passed over in silence either.
func headerNotes(mode fidelity.Mode, a, b *tape.Header) (notes []string) {
	if !slices.Equal(a.Argv, b.Argv) {
		notes = append(notes, fmt.Sprintf("the runs were given other arguments (argv): A %s, B %s", argvText(a.Argv), argvText(b.Argv)))
	}
	if mode != fidelity.ByteIdentical {
		return notes
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
		return notes
	}
	return append(notes, "the headers differ in "+strings.Join(keys, ", ")+": a header is no record, so this is no divergence")
}

// argvText is a list of arguments as JSON, cut where it is long.
func argvText(argv []string) string {
	const most = 200
	b, err := json.Marshal(append([]string{}, argv...))
	if err != nil {
		return err.Error()
	}
	if len(b) > most {
		return strings.ToValidUTF8(string(b[:most]), "") + "…"
	}
	return string(b)
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
