package exchange

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// maxPartLine bounds a line of a part, in bytes: it holds headers and at most tape.InlineLimit bytes of a body.
const maxPartLine = 4 << 20

// A Part is one answer that was still streaming when its recorder ended.
type Part struct {
	// Kind is the exchange as a record would hold it: *tape.LLMCall or *tape.HTTPExchange, its Error RecorderEnded. Its
	// Response has the digest of the bytes that are there, and the text where it is short; no store holds longer ones.
	Kind tape.Kind
	*tape.Exchange
	Path string // of the part
	Len  int64  // bytes of the answer that are there

	body int64 // offset of the answer in the file
}

// Open streams the bytes of the answer that are there.
func (p *Part) Open() (io.ReadCloser, error) {
	f, err := os.Open(p.Path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(p.body, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Parts reads the parts of a directory in order of arrival, those of a recorder that still runs too. A directory that does
// not exist has none. A part whose first line is not whole is skipped: its request had not been sent.
func Parts(dir string) ([]*Part, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var parts []*Part
	for _, e := range entries {
		if _, err := strconv.ParseUint(e.Name(), 10, 64); err != nil || !e.Type().IsRegular() {
			continue
		}
		p, err := readPart(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) { // its exchange ended meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b *Part) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return parts, nil
}

// readPart reads one part; nil where its first line is torn.
func readPart(path string) (*Part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	p := &Part{Path: path}
	var req partRequest
	whole, err := p.line(r, &req)
	if err != nil || !whole {
		return nil, err
	}
	if req.Part != partVersion {
		return nil, fmt.Errorf("part %s has version %d, this reads %d", path, req.Part, partVersion)
	}
	p.Kind, p.Exchange = req.kind()
	p.Error = RecorderEnded
	var resp partResponse
	if whole, err = p.line(r, &resp); err != nil || !whole {
		return p, err
	}
	p.Status, p.ResponseHeaders = resp.Status, fields(resp.Headers)
	p.Response, err = payloadOf(r)
	if p.Response != nil {
		p.Len = p.Response.Len
	}
	return p, err
}

// line reads one line into v. whole is false where the file ends before the line does.
func (p *Part) line(r *bufio.Reader, v any) (whole bool, err error) {
	var line []byte
	for {
		more, err := r.ReadSlice('\n')
		line = append(line, more...)
		if err == nil {
			break
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return false, err
		}
		if len(line) > maxPartLine {
			return false, fmt.Errorf("part %s: a line of more than %d bytes", p.Path, maxPartLine)
		}
	}
	p.body += int64(len(line))
	if err := json.Unmarshal(line, v); err != nil {
		return false, fmt.Errorf("part %s: %w", p.Path, err)
	}
	return true, nil
}

// kind is the exchange so far.
func (p *partRequest) kind() (tape.Kind, *tape.Exchange) {
	x := tape.Exchange{
		Method: p.Method, URL: p.URL, RequestHeaders: fields(p.Headers), RequestDigest: p.RequestDigest,
		Lane: p.Lane, Arrival: p.Arrival,
	}
	if p.Payload != nil {
		x.RequestPayload = &tape.Payload{Hash: p.Payload.Hash, Len: p.Payload.Len}
		if p.Payload.Text != nil {
			x.RequestPayload.Inline, x.RequestPayload.Text = true, *p.Payload.Text
		}
	}
	if p.Kind != (&tape.LLMCall{}).Name() {
		h := &tape.HTTPExchange{Exchange: x}
		return h, &h.Exchange
	}
	l := &tape.LLMCall{Provider: p.Provider, Endpoint: p.Endpoint, Model: p.Model, Exchange: x}
	if p.ParamsDigest != nil {
		l.ParamsDigest = *p.ParamsDigest
	}
	return l, &l.Exchange
}

// payloadOf returns the payload that everything that r gives would be, in bounded memory.
func payloadOf(r io.Reader) (*tape.Payload, error) {
	head, err := io.ReadAll(io.LimitReader(r, tape.InlineLimit+1))
	if err != nil {
		return nil, err
	}
	h := cas.NewHasher()
	h.Write(head)
	n, err := io.Copy(h, r)
	if err != nil {
		return nil, err
	}
	p := &tape.Payload{Hash: h.Sum(), Len: int64(len(head)) + n}
	if p.Len <= tape.InlineLimit && utf8.Valid(head) {
		p.Inline, p.Text = true, string(head)
	}
	return p, nil
}

// fields reads what pairs wrote.
func fields(pairs [][2]string) []tape.HeaderField {
	var out []tape.HeaderField
	for _, p := range pairs {
		out = append(out, tape.HeaderField{Name: p[0], Value: p[1]})
	}
	return out
}
