//go:build load && linux

package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A daemon is one process of the program.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has been waited for
	url   string
	token string
	data  string
}

// serve starts a daemon over a directory and waits until it is ready.
func (st *stage) serve(ctx context.Context, data string) (*daemon, error) {
	return st.start(ctx, data, exec.Command(st.program, "serve", "--listen", "127.0.0.1:0", "--data", data, "--json", "--log-level", "error"))
}

// start starts a process that says where it listens and where its token is, if it asks for one.
func (st *stage) start(ctx context.Context, data string, cmd *exec.Cmd) (*daemon, error) {
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+filepath.Join(st.dir, "runtime"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	d := &daemon{cmd: cmd, ended: make(chan struct{}), data: data}
	line, errRead := bufio.NewReader(out).ReadBytes('\n')
	go func() { // ends with the process
		io.Copy(io.Discard, out)
		cmd.Wait()
		close(d.ended)
	}()
	var ready struct {
		URL       string `json:"url"`
		TokenFile string `json:"token_file"`
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		d.kill()
		return nil, fmt.Errorf("the daemon said %q: %w", line, errors.Join(err, errRead))
	}
	d.url = ready.URL
	if ready.TokenFile == "" {
		return d, ctx.Err()
	}
	token, err := os.ReadFile(ready.TokenFile)
	if err != nil {
		d.kill()
		return nil, err
	}
	d.token = strings.TrimSpace(string(token))
	return d, ctx.Err()
}

// kill ends the process at once.
func (d *daemon) kill() {
	d.cmd.Process.Kill()
	<-d.ended
}

// stop ends it as an operator does, and returns what it took.
func (d *daemon) stop() (time.Duration, error) {
	begun := time.Now()
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(2 * time.Minute):
		d.kill()
		return 0, errors.New("the daemon did not end within two minutes of SIGTERM")
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		return 0, fmt.Errorf("the daemon ended with status %d", code)
	}
	return time.Since(begun), nil
}

// metrics returns the daemon's own figures by name; those with labels are summed.
func (d *daemon) metrics(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(strings.TrimSuffix(d.url, "/"), "ws")+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	out := map[string]float64{}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		v, _ := strconv.ParseFloat(value, 64)
		out[name] += v
	}
	return out, lines.Err()
}
