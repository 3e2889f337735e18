//go:build load && linux

package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// strangersWord as the first argument makes this program the process of those that behave badly: what they take of a machine
// they take from each of its processes alike, as they would from elsewhere.
const strangersWord = "strangers"

// strangers starts few that flood the daemon and as many that never read; they are at it when it returns, until they are
// killed.
func (st *stage) strangers(ctx context.Context, d *daemon, few int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, strangersWord, d.url, fmt.Sprint(few))
	cmd.Env = append(os.Environ(), "TAPEDECK_LOAD_TOKEN="+d.token)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go cmd.Wait() // ends with the process
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, fmt.Errorf("those that behave badly did not start: %w", err)
	}
	return cmd, nil
}

// beStrangers is that process.
func beStrangers(ctx context.Context, url, few string, stdout, stderr io.Writer) int {
	var n int
	fmt.Sscan(few, &n)
	d := &daemon{url: url, token: os.Getenv("TAPEDECK_LOAD_TOKEN")}
	floods, err := d.sessions(ctx, n, "floods")
	if err == nil {
		var deaf []*session
		deaf, err = d.sessions(ctx, n, "deaf")
		for _, s := range deaf {
			go neverRead(ctx, s)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	for _, s := range floods {
		go flooding(ctx, s)
	}
	fmt.Fprintln(stdout, "at it")
	<-ctx.Done()
	return 0
}

// flooding sends requests as fast as the daemon takes them, and reads the replies.
func flooding(ctx context.Context, s *session) {
	go func() { // ends with the connection
		for {
			if _, _, err := s.conn.Read(ctx); err != nil {
				return
			}
		}
	}()
	for i := 1_000_000; ctx.Err() == nil; i++ {
		if s.write(ctx, i, "state.set", `{"key":"k","value":"`+turnText+`"}`) != nil {
			return
		}
	}
}

// neverRead asks for a run's trace again and again and takes no answer.
func neverRead(ctx context.Context, s *session) {
	for i := 1_000_000; ctx.Err() == nil; i++ {
		if s.write(ctx, i, "runs.get_trace", `{"run_id":"`+s.run+`"}`) != nil {
			return
		}
	}
}

// turnText is text as long as an output.
var turnText = func() string {
	b := make([]byte, 512)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return string(b)
}()
