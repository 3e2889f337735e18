//go:build load && linux

package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

// A session is one connection of an agent, as lean as it can be: what is measured is the daemon.
type session struct {
	conn  *websocket.Conn
	agent string
	run   string
	next  int
}

// dial connects and authenticates.
func (d *daemon) dial(ctx context.Context, agent string) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, d.url, &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled, HTTPClient: http.DefaultClient})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(64 << 20)
	s := &session{conn: conn, agent: agent}
	if _, err := s.call(ctx, "session.auth", fmt.Sprintf(`{"token":%q,"agent_id":%q}`, d.token, agent)); err != nil {
		conn.CloseNow()
		return nil, err
	}
	return s, nil
}

// start opens a run. An empty key leaves its name to the daemon.
func (s *session) start(ctx context.Context, key string) error {
	params := `{"intent":"load"}`
	if key != "" {
		params = fmt.Sprintf(`{"intent":"load","idempotency_key":%q}`, key)
	}
	result, err := s.call(ctx, "runs.start", params)
	if err != nil {
		return err
	}
	var r struct {
		RunID string `json:"run_id"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return fmt.Errorf("runs.start answered %s: %w", result, err)
	}
	if r.RunID == "" {
		return fmt.Errorf("runs.start answered %s", result)
	}
	s.run = r.RunID
	return nil
}

// write sends a request without waiting.
func (s *session) write(ctx context.Context, id int, method, params string) error {
	b := make([]byte, 0, len(params)+96)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, int64(id), 10)
	b = append(b, `,"method":"`...)
	b = append(b, method...)
	b = append(b, `","params":`...)
	b = append(append(b, params...), '}')
	return s.conn.Write(ctx, websocket.MessageText, b)
}

// A reply is what answers a request.
type reply struct {
	ID     *int            `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// read returns the next reply, notifications passed over.
func (s *session) read(ctx context.Context) (*reply, error) {
	for {
		_, b, err := s.conn.Read(ctx)
		if err != nil {
			return nil, err
		}
		r := new(reply)
		if err := json.Unmarshal(b, r); err != nil {
			return nil, err
		}
		if r.Method == "" && r.ID != nil {
			return r, nil
		}
	}
}

// call sends a request and waits for its reply; nothing else may be under way.
func (s *session) call(ctx context.Context, method, params string) (json.RawMessage, error) {
	s.next++
	if err := s.write(ctx, s.next, method, params); err != nil {
		return nil, err
	}
	for {
		r, err := s.read(ctx)
		switch {
		case err != nil:
			return nil, err
		case *r.ID != s.next:
		case r.Error != nil:
			return nil, fmt.Errorf("%s: %d %s", method, r.Error.Code, r.Error.Message)
		default:
			return r.Result, nil
		}
	}
}

// record has turns kept and returns the first one's index.
func (s *session) record(ctx context.Context, turns string) (base int, err error) {
	result, err := s.call(ctx, "runs.record_turns", s.batch(turns))
	if err != nil {
		return 0, err
	}
	var r struct {
		OK        bool   `json:"ok"`
		BaseIndex int    `json:"base_index"`
		Dropped   string `json:"dropped"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return 0, fmt.Errorf("runs.record_turns answered %s: %w", result, err)
	}
	if !r.OK {
		return 0, fmt.Errorf("runs.record_turns answered %s", result)
	}
	return r.BaseIndex, nil
}

func (s *session) batch(turns string) string {
	return `{"run_id":"` + s.run + `","turns":` + turns + `}`
}

func (s *session) close() { s.conn.CloseNow() }

// turn is one turn as agents send them: a tool's call with its output, some 300 bytes.
func turn(mark string) string {
	return `{"tool":"search","parameters":{"query":"how does the recorder hold its order","limit":20,"mark":"` + mark +
		`"},"output":{"hits":["recorder.go:41: the lock that appends","recorder.go:77: the ordinal of a record","tape.go:12: order on disk is order of seq"],"took_ms":12},"verifier_verdict":"not_run"}`
}

// batchOf is a list of n equal turns.
func batchOf(n int) string {
	one := turn("load")
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(one)
	}
	b.WriteByte(']')
	return b.String()
}
