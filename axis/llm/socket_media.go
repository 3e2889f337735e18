package llm

import (
	"slices"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
)

// Sound and pictures pass in every message of a live conversation, and a folded request says all of it again. So there they stand as
// the digest of what was sent: it counts as the sound itself would, and takes no room.

// maxMedia is the longest sound or picture that stands as it was sent, in bytes of base64.
const maxMedia = 256

// mediaKeys are the members that hold sound and pictures.
var mediaKeys = []string{"audio", "data", "image_url"}

// shrink puts digests in the place of sound and pictures. It edits v, which then shares no memory with what held them.
func shrink(v *canonjson.Value) {
	if !named(v) {
		return
	}
	if own, err := canonjson.Parse(v.Append(nil)); err == nil { // which it always is
		*v = own
	}
}

// named names sound and pictures by their digests, and reports whether there were any.
func named(v *canonjson.Value) (any bool) {
	for i := range v.Elems {
		any = named(&v.Elems[i]) || any
	}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Value.Kind == canonjson.String && len(m.Value.Str) > maxMedia && slices.Contains(mediaKeys, m.Key) {
			m.Value = text(mediaDigest(cas.Sum([]byte(m.Value.Str)), len(m.Value.Str)))
			any = true
			continue
		}
		any = named(&m.Value) || any
	}
	return any
}

// mediaDigest names what was sent as so many bytes of base64.
func mediaDigest(d cas.Digest, n int) string { return d.String() + " of " + strconv.Itoa(n) + " bytes" }

// A stream is sound that comes in pieces.
type stream struct {
	pieces []byte // the digests of the pieces
	bytes  int
}

// add takes one piece.
func (s *stream) add(piece string) {
	sum := cas.Sum([]byte(piece))
	s.pieces = append(s.pieces, sum.String()...)
	s.bytes += len(piece)
	const many = 64 << 10 // bytes of digests
	if len(s.pieces) > many {
		sum = cas.Sum(s.pieces)
		s.pieces = append(s.pieces[:0], sum.String()...)
	}
}

// end names what came, "" for nothing, and begins anew.
func (s *stream) end() string {
	if s.bytes == 0 {
		return ""
	}
	name := mediaDigest(cas.Sum(s.pieces), s.bytes)
	*s = stream{}
	return name
}

// merge puts the members of more into those of an object, deep: what more does not name stays.
func merge(into, more *canonjson.Value) {
	for _, m := range more.Members {
		was := get(into, m.Key)
		switch {
		case was == nil:
			into.Members = append(into.Members, m)
		case was.Kind == canonjson.Object && m.Value.Kind == canonjson.Object:
			merge(was, &m.Value)
		default:
			*was = m.Value
		}
	}
}

// copyOf is a copy that can be edited.
func copyOf(v *canonjson.Value) canonjson.Value {
	out := *v
	out.Members, out.Elems = slices.Clone(v.Members), slices.Clone(v.Elems)
	for i := range out.Members {
		out.Members[i].Value = copyOf(&out.Members[i].Value)
	}
	for i := range out.Elems {
		out.Elems[i] = copyOf(&out.Elems[i])
	}
	return out
}
