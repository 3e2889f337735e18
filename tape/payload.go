package tape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
)

// InlineLimit is the longest payload, in bytes, that stands in the record itself.
const InlineLimit = 4096

// A Payload is a run of bytes that a record holds: inline as text when they are UTF-8 and at most InlineLimit long, else
// by digest in the tape's store.
type Payload struct {
	Hash   cas.Digest
	Text   string // the bytes, when Inline
	Inline bool
	Len    int64   // length in bytes
	Extra  []Field // further keys, as they stood
}

// MakePayload returns the payload of b: inline where the format allows it, else after putting b into s.
func MakePayload(s cas.Store, b []byte) (*Payload, error) {
	p, err := borrow(s, b)
	if err == nil {
		p.Text = strings.Clone(p.Text)
	}
	return p, err
}

// borrow is MakePayload without a copy: the text is b's own memory.
func borrow(s cas.Store, b []byte) (*Payload, error) {
	if len(b) <= InlineLimit && utf8.Valid(b) {
		return inline(b), nil
	}
	d, err := s.Put(b)
	if err != nil {
		return nil, err
	}
	return PayloadOf(d, int64(len(b))), nil
}

// PayloadOf returns the payload of a blob of n bytes that is in the store already.
func PayloadOf(d cas.Digest, n int64) *Payload { return &Payload{Hash: d, Len: n} }

// inline is the payload of b, whose text is b's own memory.
func inline(b []byte) *Payload {
	if len(b) == 0 { // the stderr of most programs
		return &Payload{Hash: nothing, Inline: true}
	}
	return &Payload{Hash: cas.Sum(b), Text: unsafe.String(&b[0], len(b)), Inline: true, Len: int64(len(b))}
}

// nothing is the digest of no bytes.
var nothing = cas.Sum(nil)

// Bytes returns the payload's bytes, verified against its hash. The error is a *cas.MissingError, a *cas.CorruptError, that of
// the store, or of a blob without a digest that of CheckHash: an inline text needs none.
func (p *Payload) Bytes(s cas.Store) ([]byte, error) {
	none := p.CheckHash()
	if !p.Inline {
		if none != nil {
			return nil, none
		}
		return s.Get(p.Hash)
	}
	b := []byte(p.Text)
	if got := cas.Sum(b); got != p.Hash && none == nil {
		return nil, &cas.CorruptError{Digest: p.Hash, Got: got}
	}
	return b, nil
}

// Open streams the payload's bytes. What a blob's bytes do not hash to is found out at their end, as cas.Store.Open says.
func (p *Payload) Open(s cas.Store) (io.ReadCloser, error) {
	if !p.Inline {
		if err := p.CheckHash(); err != nil {
			return nil, err
		}
		return s.Open(p.Hash)
	}
	b, err := p.Bytes(s)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// Same reports whether p and q hold the same bytes by what their digests say; nil is the same as nil alone.
func (p *Payload) Same(q *Payload) bool {
	if p == nil || q == nil {
		return p == q
	}
	return p.Hash == q.Hash
}

// AppendJSON appends the payload as the format writes it. A nil payload is null. It uses dst's memory as AppendRecord does.
func (p *Payload) AppendJSON(dst []byte) []byte {
	if p == nil {
		return append(dst, "null"...)
	}
	c := codec{buf: dst}
	c.writePayload(p)
	return c.buf
}

// ParsePayload reads what AppendJSON wrote; null is a nil payload.
func ParsePayload(b []byte) (*Payload, error) {
	s := scannerOf(b)
	var p *Payload
	if !s.Null() {
		p = s.payload(false)
	}
	if err := cmp.Or(s.End(), jsonscan.ValidUTF8(b)); err != nil {
		return nil, err
	}
	return p, nil
}

// Payloads lists the payloads that a record names, in the order of its keys. Those of an unknown kind are not known.
func Payloads(k Kind) []*Payload {
	var all []*Payload
	switch k := k.(type) {
	case *LLMCall:
		all = []*Payload{k.Response, k.RequestPayload}
	case *HTTPExchange:
		all = []*Payload{k.RequestPayload, k.Response}
	case *FileRead:
		all = k.payloads()
	case *FileWrite:
		all = k.payloads()
	case *FileDelete:
		all = k.payloads()
	case *ProcessSpawn:
		all = []*Payload{k.Stdout, k.Stderr, k.Stdin}
	case *MCPJSONRPC:
		all = []*Payload{k.Request, k.Response}
	case *MCPText:
		all = []*Payload{k.Payload}
	case *WSMessage:
		all = []*Payload{k.Payload}
	case *DirList:
		all = []*Payload{k.Names}
	case *EnvRead:
		all = []*Payload{k.Value}
	case *RandomRead:
		all = []*Payload{k.Payload}
	case *PolicyVerdict:
		all = []*Payload{k.ParamsPayload}
	}
	out := all[:0]
	for _, p := range all {
		if p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (f *File) payloads() []*Payload { return []*Payload{f.Content, f.Before} }

// SafeString returns b as a string that a tape can hold: as it is where it is UTF-8, with raw nil; else with U+FFFD in
// place of every byte that is not, and the true bytes as raw, for a record's Raw.
func SafeString(b string) (text string, raw []byte) {
	if utf8.ValidString(b) {
		return b, nil
	}
	return string([]rune(b)), []byte(b)
}

// appendDigest appends d as a JSON string. With encoding/hex a short record took a tenth longer.
func appendDigest(dst []byte, d cas.Digest) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	n := len(dst)
	dst = slices.Grow(dst, 2*len(d)+1)[:n+2*len(d)]
	for i, text := 0, (*[2 * len(d)]byte)(dst[n:]); i < len(d); i++ {
		text[2*i], text[2*i+1] = digits[d[i]>>4], digits[d[i]&15]
	}
	return append(dst, '"')
}

// Strings lists the strings that a record of the kind k holds, in the order of its keys: pointers, through which they may be
// changed in place. Left out are what Payloads lists, the digests, the phase of the record, its Raw and its Extra, and all of
// an unknown kind.
func Strings(k Kind) []*string {
	switch k := k.(type) {
	case *LLMCall:
		return append(append([]*string{&k.Provider, &k.Endpoint, &k.Model}, k.strings()...), &k.Opcode)
	case *HTTPExchange:
		return k.strings()
	case *FileRead:
		return k.strings()
	case *FileWrite:
		return k.strings()
	case *FileDelete:
		return k.strings()
	case *ProcessSpawn:
		return k.strings()
	case *MCPJSONRPC:
		return []*string{&k.Server, &k.Method, &k.From, &k.Transport, &k.Error}
	case *MCPOpen:
		return k.strings()
	case *MCPText:
		return []*string{&k.Server, &k.From}
	case *MCPClose:
		return []*string{&k.Server, &k.Signal, &k.Error, &k.By}
	case *WSOpen:
		return headerStrings(headerStrings([]*string{&k.URL, &k.Lane}, k.RequestHeaders), k.ResponseHeaders)
	case *WSMessage:
		return []*string{&k.Direction, &k.Opcode}
	case *WSClose:
		return []*string{&k.Reason}
	}
	return plainStrings(k)
}

// plainStrings is Strings of the kinds that are nothing but a few values.
func plainStrings(k Kind) []*string {
	switch k := k.(type) {
	case *ClockRead:
		return []*string{&k.Source}
	case *TLSRefused:
		return []*string{&k.Host, &k.Reason}
	case *NetRefused:
		return []*string{&k.Addr, &k.Reason}
	case *NameLookup:
		return []*string{&k.Host, &k.Type, &k.Result}
	case *DirList:
		return []*string{&k.Path}
	case *EnvRead:
		return []*string{&k.VarName}
	case *FileStat:
		return []*string{&k.Path, &k.Type, &k.Mode}
	case *PolicyVerdict:
		return []*string{&k.PolicySet, &k.ActionID, &k.Tool}
	}
	return nil
}

func (x *Exchange) strings() []*string {
	out := headerStrings([]*string{&x.Method, &x.URL}, x.RequestHeaders)
	return append(headerStrings(out, x.ResponseHeaders), &x.Lane, &x.Error)
}

func (f *File) strings() []*string { return []*string{&f.Path, &f.Mode} }

func (k *ProcessSpawn) strings() []*string {
	out := []*string{&k.Program}
	for i := range k.Args {
		out = append(out, &k.Args[i])
	}
	if k.Cwd != nil {
		out = append(out, k.Cwd)
	}
	return append(out, &k.Signal)
}

func (k *MCPOpen) strings() []*string {
	out := []*string{&k.Server, &k.Transport, &k.Program}
	for i := range k.Args {
		out = append(out, &k.Args[i])
	}
	for i := range k.Env {
		out = append(out, &k.Env[i])
	}
	return append(out, &k.Cwd, &k.URL, &k.Protocol)
}

func headerStrings(out []*string, fields []HeaderField) []*string {
	for i := range fields {
		out = append(out, &fields[i].Name, &fields[i].Value)
	}
	return out
}

// Extras returns the further keys of the kind k, which may be changed in place; nil of an unknown kind, which has none.
func Extras(k Kind) *[]Field {
	if k, ok := k.(known); ok {
		return k.extra()
	}
	return nil
}

// FieldValue returns the value of the first field called name; nil for none.
func FieldValue(fields []Field, name string) json.RawMessage {
	for _, f := range fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}
