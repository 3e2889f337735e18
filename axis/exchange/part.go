package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/tape"
)

// A part is the file of one answer that is still streaming, so that a recorder that is killed leaves what has passed:
//
//	part     = request [ response *byte ]
//	request  = {"part":1,"kind":K,"method":S,"url":S,…} newline
//	response = {"status":N,"response_headers":[[S,S]…]} newline
//
// The bytes are the answer's, scrubbed, as far as the scrubber has released them. A part is named by its arrival, in
// decimal, and is removed once the record of its exchange is on the tape.

// partVersion is the version of the format of a part.
const partVersion = 1

// RecorderEnded is the Error of an exchange that was read from a part.
const RecorderEnded = "recorder ended"

// partRequest is the first line of a part.
type partRequest struct {
	Part          int          `json:"part"`
	Kind          string       `json:"kind"` // as a record has it: "llm_call", "http_exchange"
	Provider      string       `json:"provider,omitempty"`
	Endpoint      string       `json:"endpoint,omitempty"`
	Model         string       `json:"model,omitempty"`
	ParamsDigest  *cas.Digest  `json:"params_digest,omitempty"`
	Method        string       `json:"method"`
	URL           string       `json:"url"`
	Headers       [][2]string  `json:"request_headers"`
	RequestDigest cas.Digest   `json:"request_digest"`
	Payload       *partPayload `json:"request_payload"`
	Lane          string       `json:"lane"`
	Arrival       uint64       `json:"arrival"`
}

// partPayload is a payload; Text stands where it is inline.
type partPayload struct {
	Hash cas.Digest `json:"content_hash"`
	Text *string    `json:"text,omitempty"`
	Len  int64      `json:"len_bytes"`
}

// partResponse is the second line of a part.
type partResponse struct {
	Status  int         `json:"status"`
	Headers [][2]string `json:"response_headers"`
}

// newPartRequest says what is known of an exchange before its answer.
func newPartRequest(id *Identity, x *tape.Exchange) *partRequest {
	p := &partRequest{
		Part: partVersion, Kind: (&tape.HTTPExchange{}).Name(),
		Method: x.Method, URL: x.URL, Headers: pairs(x.RequestHeaders), RequestDigest: x.RequestDigest,
		Lane: x.Lane, Arrival: x.Arrival,
	}
	if x.RequestPayload != nil {
		p.Payload = &partPayload{Hash: x.RequestPayload.Hash, Len: x.RequestPayload.Len}
		if x.RequestPayload.Inline {
			p.Payload.Text = &x.RequestPayload.Text
		}
	}
	if id.Key.Kind == LLM {
		p.Kind = (&tape.LLMCall{}).Name()
		p.Provider, p.Endpoint, p.Model, p.ParamsDigest = id.Key.Provider, id.Key.Endpoint, id.Key.Model, &id.Key.Params
	}
	return p
}

// pairs is the form of headers in a part.
func pairs(fields []tape.HeaderField) [][2]string {
	out := make([][2]string, len(fields))
	for i, f := range fields {
		out[i] = [2]string{f.Name, f.Value}
	}
	return out
}

// A spool takes an answer until its exchange ends.
type spool interface {
	// response begins the answer.
	response(status int, header []tape.HeaderField) error
	// Write appends bytes of the answer.
	io.Writer
	// answer reads what was written.
	answer() io.Reader
	// close frees what the process holds; a part stays.
	close() error
	// remove frees everything.
	remove() error
}

// memory is the spool of a run that keeps no parts.
type memory struct{ bytes.Buffer }

func (*memory) response(int, []tape.HeaderField) error { return nil }
func (m *memory) answer() io.Reader                    { return bytes.NewReader(m.Bytes()) }
func (m *memory) close() error                         { return m.remove() }
func (m *memory) remove() error                        { m.Buffer = bytes.Buffer{}; return nil }

// part is the file of one part while it is written.
type part struct {
	f    *os.File
	path string
	body int64 // offset of the answer, once the response line is written
	size int64 // bytes of the answer
}

// createPart begins the part of an exchange, for its owner alone. A file that is there already is left of an earlier
// recorder and an error.
func createPart(dir string, req *partRequest) (*part, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, strconv.FormatUint(req.Arrival, 10))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	p := &part{f: f, path: path}
	if err := p.line(req); err != nil {
		return nil, errors.Join(err, p.remove())
	}
	return p, nil
}

// line writes one line of JSON.
func (p *part) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	_, err = p.f.Write(b)
	p.body += int64(len(b))
	return err
}

// response writes the line that begins the answer.
func (p *part) response(status int, header []tape.HeaderField) error {
	return p.line(partResponse{Status: status, Headers: pairs(header)})
}

// Write appends bytes of the answer. They are with the kernel when it returns.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.f.Write(b)
	p.size += int64(n)
	return n, err
}

// answer reads the answer as far as it is written.
func (p *part) answer() io.Reader { return io.NewSectionReader(p.f, p.body, p.size) }

func (p *part) close() error { return p.f.Close() }

// remove closes the file and removes it.
func (p *part) remove() error { return errors.Join(p.f.Close(), os.Remove(p.path)) }
