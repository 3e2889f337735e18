package foreign

import (
	"encoding/binary"
	"errors"
	"net/http"
	"time"
)

// A message is one exchange as a foreign file tells it.
type message struct {
	where  string // in the file, for people
	method string
	url    string // absolute
	header http.Header
	body   []byte
	unsent string // why there is no body; "" where there is, or none was sent

	status  int // 0 where nothing answered
	answer  http.Header
	content []byte // the body of the answer
	lost    string // why there is no content; "" where there is
	proto   string // of the answer, as the file says it; "" for HTTP/1.1
	trailer http.Header
	cut     string // what cut the exchange, in the words of a tape; "" for nothing

	at   time.Time     // when the request was sent; zero where the file does not say
	took time.Duration // until the answer had come
}

// appendTo appends m in the form that read takes: numbers and texts behind their length.
func (m *message) appendTo(b []byte) []byte {
	for _, s := range []string{m.where, m.method, m.url, m.lost, m.proto, m.cut, m.unsent} {
		b = appendText(b, s)
	}
	b = appendHeader(b, m.header)
	b = appendText(b, m.body)
	b = binary.AppendVarint(b, int64(m.status))
	b = appendHeader(b, m.answer)
	b = appendText(b, m.content)
	b = appendHeader(b, m.trailer)
	at := int64(0)
	if !m.at.IsZero() {
		at = m.at.UnixNano()
	}
	b = binary.AppendVarint(b, at)
	return binary.AppendVarint(b, int64(m.took))
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendHeader(b []byte, h http.Header) []byte {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	b = binary.AppendUvarint(b, uint64(n))
	for name, values := range h {
		for _, v := range values {
			b = appendText(appendText(b, name), v)
		}
	}
	return b
}

// errAside is what is wrong with something that was put aside; only a disk that lies makes it.
var errAside = errors.New("what was put aside came back otherwise")

// readMessage reads what appendTo wrote. Bodies share memory with b.
func readMessage(b []byte) (*message, error) {
	r := &asideReader{b: b}
	m := &message{where: r.text(), method: r.text(), url: r.text(), lost: r.text(), proto: r.text(), cut: r.text(), unsent: r.text()}
	m.header, m.body, m.status = r.header(), r.bytes(), int(r.number())
	m.answer, m.content, m.trailer = r.header(), r.bytes(), r.header()
	if at := r.number(); at != 0 {
		m.at = time.Unix(0, at)
	}
	m.took = time.Duration(r.number())
	if r.bad || len(r.b) > 0 {
		return nil, errAside
	}
	return m, nil
}

// An asideReader reads numbers and texts. Once it failed it gives nothing.
type asideReader struct {
	b   []byte
	bad bool
}

func (r *asideReader) fail() { r.b, r.bad = nil, true }

func (r *asideReader) number() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *asideReader) count() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *asideReader) bytes() []byte {
	n := r.count()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	s := r.b[:n:n]
	r.b = r.b[n:]
	return s
}

func (r *asideReader) text() string { return string(r.bytes()) }

func (r *asideReader) header() http.Header {
	h := make(http.Header)
	for n := r.count(); n > 0 && !r.bad; n-- {
		name := r.text()
		h[name] = append(h[name], r.text())
	}
	return h
}
