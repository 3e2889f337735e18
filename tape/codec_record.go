package tape

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// line is a walker for a whole line, whose first key is its type.
type line struct {
	typ    string // "record" or "header"
	record *Record
	header *Header
}

func (l *line) fields(c *codec) {
	c.text("type", &l.typ, required)
	if l.header != nil {
		l.header.fields(c)
		return
	}
	l.record.fields(c)
}

func (h *Header) fields(c *codec) {
	number(c, "version", &h.Version, required)
	c.text("harn_version", &h.Producer, required)
	c.numberOrNull("started_at_unix_ms", &h.StartedAtUnixMS)
	c.textOrNull("script_path", &h.ScriptPath)
	c.texts("argv", &h.Argv, always)
}

func (r *Record) fields(c *codec) {
	number(c, "seq", &r.Seq, required)
	c.phase(&r.Phase)
	number(c, "virtual_time_ms", &r.VirtualTimeMS, required)
	number(c, "monotonic_ms", &r.MonotonicMS, required)
	c.kind(&r.Kind)
	number(c, "g", &r.G, optional)
	c.rest() // raw is the last key
	c.rawBytes(&r.Raw)
}

func (c *codec) phase(p *Phase) {
	if c.mode == writing {
		c.key("phase")
		c.buf = append(c.buf, '"')
		c.buf = append(c.buf, p.String()...)
		c.buf = append(c.buf, '"')
		return
	}
	if c.take("phase", always) {
		*p = PhaseUserScript
		if c.scan.text() == "runtime_finalize" {
			*p = PhaseRuntimeFinalize
		}
	}
}

func (c *codec) kind(k *Kind) {
	if c.mode == writing {
		c.key("kind")
		outer := c.object
		c.writeKind(*k)
		c.object = outer
		return
	}
	if c.take("kind", required) {
		outer := c.object
		*k = c.readKind()
		c.object = outer
	}
}

func (c *codec) readKind() Kind {
	name := c.scan.peekKind()
	k := newKind(name)
	if k == nil {
		return &Unknown{KindName: string(name), JSON: bytes.Clone(c.scan.Raw())}
	}
	c.readObject(k, true)
	*k.extra() = c.kept
	return k
}

var (
	errNoKind      = errors.New("record has no kind")
	errForeignKind = errors.New("kind is none of this package")
	errUnknownJSON = errors.New("JSON of an unknown kind is not an object with its name")
)

// writeKind writes the object of a kind, and walks each kind by its own type: what is handed to the methods of an interface is
// allocated, and most of what is recorded is made for its record alone.
func (c *codec) writeKind(k Kind) {
	switch k := k.(type) {
	case *ClockRead:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *ClockSleep:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *LLMCall:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *HTTPExchange:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *FileRead:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *FileWrite:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *FileDelete:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *ProcessSpawn:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *MCPJSONRPC:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *Unknown:
		c.writeUnknown(k)
		return
	case nil:
		c.refuse(errNoKind)
		return
	default:
		c.writeOwnKind(k)
		return
	}
	c.close()
}

// writeOwnKind is writeKind for the kinds that recordings add to the format.
func (c *codec) writeOwnKind(k Kind) {
	switch k := k.(type) {
	case *MCPOpen:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *MCPText:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *MCPClose:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *WSOpen:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *WSMessage:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *WSClose:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *TLSRefused:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *NetRefused:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *NameLookup:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *DirList:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *EnvRead:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *FileStat:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *RandomRead:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	case *PolicyVerdict:
		c.openKnown(k.Name(), k.Extra)
		k.fields(c)
	default:
		c.refuse(fmt.Errorf("%w: %v", errForeignKind, reflect.TypeOf(k)))
		return
	}
	c.close()
}

// close writes the further keys of the object that openKnown began, and ends it.
func (c *codec) close() {
	c.rest()
	c.buf = append(c.buf, '}')
}

// refuse says that the record cannot be written, with err.
func (c *codec) refuse(err error) {
	c.err = err
	c.buf = append(c.buf, "{}"...)
}

// openKnown begins the object of a known kind, whose name needs no escape, with further keys extra. Of the object, a codec that
// writes has these alone.
func (c *codec) openKnown(name string, extra []Field) {
	if len(extra) > 0 || c.kept != nil {
		c.kept = extra
		c.claim("kind")
	}
	buf := c.buf
	buf = append(buf, `{"kind":"`...)
	buf = append(buf, name...)
	c.set(append(buf, '"'))
}

// open begins an object whose first key names what it is.
func (c *codec) open(key, name string) {
	c.object = object{mode: writing}
	c.buf = append(c.buf, '{')
	c.key(key)
	c.set(jsonscan.AppendText(c.buf, name))
}

func (c *codec) writeUnknown(u *Unknown) {
	if len(u.JSON) > 0 && isKindObject(u.JSON, u.KindName) {
		c.buf = append(c.buf, c.cleaned(u.JSON)...)
		return
	}
	if len(u.JSON) > 0 {
		c.err = errUnknownJSON
	}
	c.open("kind", u.KindName)
	c.buf = append(c.buf, '}')
}

// isKindObject reports whether b is the object of the named kind, on one line.
func isKindObject(b []byte, name string) bool {
	s := scannerOf(b)
	got := s.peekKind()
	return string(got) == name && jsonscan.Valid(b) == nil && bytes.IndexByte(b, '\n') < 0 && newKind(got) == nil
}

// rawBytes is the way of the key raw.
func (c *codec) rawBytes(p *[]RawBytes) {
	if c.mode != writing {
		if c.take("raw", optional) {
			for c.scan.Begin('{'); c.scan.More('}'); {
				*p = append(*p, RawBytes{Key: string(c.scan.Key()), Bytes: c.scan.base64()})
			}
			c.took("raw", optional, len(*p) == 0)
		}
		return
	}
	if !c.put("raw", optional, len(*p) == 0) {
		return
	}
	c.buf = append(c.buf, '{')
	for _, raw := range *p {
		c.comma()
		c.set(jsonscan.AppendText(c.buf, raw.Key))
		c.buf = append(c.buf, ':', '"')
		c.buf = base64.StdEncoding.AppendEncode(c.buf, c.cleaned(raw.Bytes))
		c.buf = append(c.buf, '"')
	}
	c.buf = append(c.buf, '}')
}

func (c *codec) writeLine(l *line, extra []Field) {
	if l.record != nil && len(extra) == 0 {
		c.writeRecord(l.record, l.record.Kind)
		return
	}
	c.open("type", l.typ)
	c.kept = slices.Clip(extra)
	c.claim("type")
	if l.header != nil {
		l.header.fields(c)
	} else {
		l.record.fields(c)
	}
	c.rest()
	c.buf = append(c.buf, '}')
}

// writeRecord is the walk of Record.fields for a record without keys of others, which every record of ours is: most of the
// time of a short one went into walking. Its kind is k.
func (c *codec) writeRecord(r *Record, k Kind) {
	buf := c.buf
	buf = append(buf, `{"type":"record","seq":`...)
	buf = appendNumber(buf, r.Seq)
	c.set(append(buf, c.stamp.text(r)...))
	c.writeKind(k)
	if r.G != 0 {
		c.buf = append(c.buf, `,"g":`...)
		c.set(appendNumber(c.buf, r.G))
	}
	if len(r.Raw) > 0 {
		c.object = object{mode: writing}
		c.rawBytes(&r.Raw)
	}
	c.buf = append(c.buf, '}')
}

// A stamp is what stands between the seq and the kind of a record, which many have in common: they come by the thousand in a millisecond.
type stamp struct {
	phase      Phase
	wall, mono int64
	written    []byte
}

// text is the stamp of r. The next call overwrites it.
func (s *stamp) text(r *Record) []byte {
	if len(s.written) == 0 || s.wall != r.VirtualTimeMS || s.mono != r.MonotonicMS || s.phase != r.Phase {
		s.phase, s.wall, s.mono = r.Phase, r.VirtualTimeMS, r.MonotonicMS
		s.written = append(s.written[:0], `,"phase":"`...)
		s.written = append(s.written, r.Phase.String()...)
		s.written = append(s.written, `","virtual_time_ms":`...)
		s.written = appendNumber(s.written, r.VirtualTimeMS)
		s.written = append(s.written, `,"monotonic_ms":`...)
		s.written = appendNumber(s.written, r.MonotonicMS)
		s.written = append(s.written, `,"kind":`...)
	}
	return s.written
}
