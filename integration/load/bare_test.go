//go:build load && linux

package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/internal/jsonrpc/websock"
	"github.com/tapedeck-dev/tapedeck/internal/store/seglog"
)

// bareWord as the first argument makes this program a server that makes the daemon's system calls and nothing more: a frame
// comes off its socket, goes into the segment log, then into its session's file, and is answered. It reads no JSON. What it takes
// is what sockets, two files and those who drive them take of the machine.
const bareWord = "bare"

// bare starts one.
func (st *stage) bare(ctx context.Context, data string) (*daemon, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return st.start(ctx, data, exec.Command(self, bareWord, data))
}

// beBare is that process.
func beBare(data string, stdout io.Writer) error {
	l, err := seglog.Open(filepath.Join(data, "log"), &seglog.Options{Prepare: true})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, `{"url":"ws://%s/"}`+"\n", listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s, err := websock.Accept(w, r, nil); err == nil {
			defer s.Close(0, "")
			_ = bareSession(l, data, s)
		}
	}))
}

func bareSession(l *seglog.Log, data string, s *websock.Stream) error {
	f, err := os.CreateTemp(data, "run-*.jsonl")
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		frame, _, err := s.Read()
		if err != nil {
			return err
		}
		_, rest, _ := bytes.Cut(frame, []byte(`"id":`))
		id, rest, _ := bytes.Cut(rest, []byte(","))
		if bytes.HasPrefix(rest, []byte(`"method":"runs.record_turns"`)) {
			if err := appendWait(l, frame); err != nil {
				return err
			}
			if _, err := f.Write(frame); err != nil {
				return err
			}
		}
		if err := s.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"run_id":"bare","ok":true}}`, id), false); err != nil {
			return err
		}
	}
}
