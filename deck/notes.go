package deck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/fidelity/annotations"
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

// offOnOneSide lists the axes that two recordings do not both have: what one of them did not look at cannot be compared.
func offOnOneSide(a, b *recording.Manifest) []string {
	var out []string
	for _, name := range sortedNames(a.Axes, b.Axes) {
		if name == "terminal" || name == recording.AxisDaemon || name == recording.AxisMCP {
			continue // a stream that was no terminal was recorded as a stream, what was told to a daemon is no input, and of MCP see mcpOnOneSide
		}
		if a.Axes[name].On != b.Axes[name].On {
			out = append(out, fmt.Sprintf("axis %s was on in one recording only", name))
		}
	}
	return out
}

// annotate puts beside the divergences of r what people noted about the records of either tape. A sidecar that cannot be read
// changes no verdict: a note says so.
func annotate(r *fidelity.Report, recorded, replay string) {
	r.Annotate(noted(r, recorded), noted(r, replay))
}

func noted(r *fidelity.Report, tapePath string) func(seq uint64) []string {
	s, err := annotations.Open(tapePath)
	if err != nil {
		r.Notes = append(r.Notes, "annotations are left out: "+err.Error())
	}
	if s == nil {
		return nil
	}
	if of, err := s.Of(tapePath); err == nil && !of && len(s.Annotations) > 0 {
		r.Notes = append(r.Notes, "annotations of "+tapePath+" were made for another tape")
	}
	return func(seq uint64) (said []string) {
		for _, a := range s.About(seq) {
			said = append(said, a.String())
		}
		return said
	}
}

// mcpOnOneSide reports whether one recording holds conversations with MCP servers and the other one does not follow them, as older
// ones do not. Where there is none nothing was left out.
func mcpOnOneSide(a, b *side) (bool, error) {
	on := a
	switch first, second := a.rec.Manifest.FollowsMCP(), b.rec.Manifest.FollowsMCP(); {
	case first == second:
		return false, nil
	case second:
		on = b
	}
	for rec, err := range on.rec.Records() {
		if err != nil {
			return false, err
		}
		if _, ok := rec.Kind.(*tape.MCPOpen); ok {
			return true, nil
		}
	}
	return false, nil
}
