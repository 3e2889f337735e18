package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// upstreamHost is the host that recorded programs ask; while recording, a server of this process answers for it.
const upstreamHost = "api.anthropic.com"

// A recorder is a work directory, in which programs are run and recorded over and over.
type recorder struct {
	e    *env
	work string // the program's working directory and work tree
	env  []string
	made int
}

func (e *env) newRecorder(env ...string) (*recorder, error) {
	work, err := e.dir("work")
	return &recorder{e: e, work: work, env: env}, err
}

// A deck is a recording and who made it.
type deck struct {
	path string
	by   *recorder
}

// plain runs a program without a recorder.
func (r *recorder) plain(ctx context.Context, env []string, argv ...string) (time.Duration, error) {
	cmd := r.e.command(ctx, r.work, argv[0], argv[1:]...)
	cmd.Env = append(append(cmd.Env, r.env...), env...)
	return do(cmd)
}

// record records a program, whose upstream is at a URL, "" for none, and returns the recording and how long it took.
func (r *recorder) record(ctx context.Context, upstream string, flags []string, argv ...string) (string, time.Duration, error) {
	tapedeck, err := r.e.tapedeck(ctx)
	if err != nil {
		return "", 0, err
	}
	r.made++
	rec := filepath.Join(filepath.Dir(r.work), fmt.Sprintf("%s-%d.rec", filepath.Base(r.work), r.made))
	args := append([]string{tapedeck, "record", "-o", rec, "--tty", "off"}, flags...)
	if upstream != "" {
		args = append(args, "--upstream", upstreamHost+"="+upstream)
	}
	took, err := r.plain(ctx, nil, append(append(args, "--"), argv...)...)
	return rec, took, err
}

// replay replays a recording; a divergence is an error.
func (r *recorder) replay(ctx context.Context, rec string, flags ...string) (time.Duration, error) {
	tapedeck, err := r.e.tapedeck(ctx)
	if err != nil {
		return 0, err
	}
	return r.plain(ctx, nil, append([]string{tapedeck, "replay", rec}, flags...)...)
}

// world is the flag that records where the jail does not work, nothing where it does, and what people call it.
func (e *env) world(ctx context.Context) (flags []string, called string, err error) {
	jailed, err := e.jailed(ctx)
	if err != nil || jailed {
		return nil, "in the jail", err
	}
	return []string{"--proxy"}, "with --proxy, since the jail does not work here", nil
}

// fill writes n small files below the work directory.
func (r *recorder) fill(n int) error {
	for i := range n {
		dir := filepath.Join(r.work, fmt.Sprintf("d%d", i%20))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.txt", i)), []byte(words(2000)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
