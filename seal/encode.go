package seal

import (
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"golang.org/x/mod/sumdb/tlog"
)

// What is written here has one form, RFC 8785, so each function writes its keys in their order.

func appendHash(b []byte, h tlog.Hash) []byte {
	b = append(b, '"')
	b = hex.AppendEncode(b, h[:])
	return append(b, '"')
}

func appendHashes(b []byte, hs []tlog.Hash) []byte {
	b = append(b, '[')
	for i, h := range hs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendHash(b, h)
	}
	return append(b, ']')
}

// leaf is what the root tree has of a stream.
func (s *Stream) leaf() []byte { return s.append(nil) }

func (s *Stream) append(b []byte) []byte {
	b = append(b, `{"bytes":`...)
	b = strconv.AppendInt(b, s.Bytes, 10)
	b = append(b, `,"kind":`...)
	b = canonjson.AppendString(b, string(s.Kind))
	b = append(b, `,"leaves":`...)
	b = strconv.AppendInt(b, s.Leaves, 10)
	b = append(b, `,"path":`...)
	b = canonjson.AppendString(b, s.Path)
	b = append(b, `,"root":`...)
	b = appendHash(b, s.Root)
	return append(b, '}')
}

// MarshalJSON writes a stream as it stands in seal.json.
func (s *Stream) MarshalJSON() ([]byte, error) { return s.leaf(), nil }

// leaf is what the stream of files has of a file.
func (f *File) leaf() []byte { return f.append(nil) }

func (f *File) append(b []byte) []byte {
	b = append(b, `{"blake3":"`...)
	b, _ = f.BLAKE3.AppendText(b) // never fails
	b = append(b, `","path":`...)
	b = canonjson.AppendString(b, f.Path)
	b = append(b, `,"size":`...)
	b = strconv.AppendInt(b, f.Size, 10)
	return append(b, '}')
}

// Encode returns the bytes of seal.json.
func (d *Document) Encode() []byte {
	b := append([]byte(`{"checkpoint":`), canonjson.AppendString(nil, d.Checkpoint)...)
	b = append(b, `,"files":[`...)
	for i := range d.Files {
		if i > 0 {
			b = append(b, ',')
		}
		b = d.Files[i].append(b)
	}
	b = append(b, `],"format":1,"id":`...)
	b = canonjson.AppendString(b, d.ID)
	b = append(b, `,"key":`...)
	b = canonjson.AppendString(b, d.Key.String())
	b = append(b, `,"streams":[`...)
	for i := range d.Streams {
		if i > 0 {
			b = append(b, ',')
		}
		b = d.Streams[i].append(b)
	}
	return append(b, "]}"...)
}

// Encode returns the bytes of proof.json.
func (p *Proof) Encode() []byte {
	b := append([]byte(`{"checkpoint":`), canonjson.AppendString(nil, p.Checkpoint)...)
	b = append(b, `,"format":1,"id":`...)
	b = canonjson.AppendString(b, p.ID)
	b = append(b, `,"key":`...)
	b = canonjson.AppendString(b, p.Key.String())
	b = append(b, `,"leaf":{"at":`...)
	b = strconv.AppendInt(b, p.Leaf, 10)
	if !utf8.Valid(p.Data) {
		b = appendData(append(b, ','), p.Data)
		b = appendHashes(append(b, `,"path":`...), p.LeafPath)
	} else {
		b = appendHashes(append(b, `,"path":`...), p.LeafPath)
		b = appendData(append(b, ','), p.Data)
	}
	b = append(b, `},"payloads":[`...)
	for i := range p.Payloads {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.Payloads[i].append(b)
	}
	b = append(b, `],"stream":`...)
	b = p.Stream.append(b)
	b = append(b, `,"streamAt":`...)
	b = strconv.AppendInt(b, p.StreamAt, 10)
	b = appendHashes(append(b, `,"streamPath":`...), p.StreamPath)
	return append(b, '}')
}

// append keeps the keys sorted: "base64" before "blake3", "text" behind it.
func (p *Payload) append(b []byte) []byte {
	digest := `"blake3":"` + p.Digest.String() + `"`
	b = append(b, '{')
	if utf8.Valid(p.Bytes) {
		b = append(append(b, digest...), ',')
		return append(appendData(b, p.Bytes), '}')
	}
	b = append(appendData(b, p.Bytes), ',')
	return append(append(b, digest...), '}')
}

// appendData appends the member that holds bytes: "text" where they are UTF-8, else "base64".
func appendData(b, data []byte) []byte {
	if utf8.Valid(data) {
		return canonjson.AppendString(append(b, `"text":`...), string(data))
	}
	b = append(b, `"base64":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	return append(b, '"')
}
