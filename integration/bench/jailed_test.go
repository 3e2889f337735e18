package bench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tapedeck-dev/tapedeck/axis/network"
	"github.com/tapedeck-dev/tapedeck/internal/jail"
	"github.com/tapedeck-dev/tapedeck/internal/scriptedllm"
)

// jailedProgram is the argument of the job that runs a program in a jail without a recorder. Its model, where it has one,
// is served over TLS at the jail's own sockets: the program asks it directly.
type jailedProgram struct {
	Argv, Env []string
	Dir       string
	Writable  []string

	Host string        // of the model; "" for none
	Key  string        // that the model wants
	Pace time.Duration // between two events of its stream
	Text string        // of its last answer; "" for the script's own
}

// jailedCA is where the program finds the certificates that it shall trust.
const jailedCA = "/run/bench/ca.pem"

// doJailed is the job.
func doJailed(arg []byte) error {
	var p jailedProgram
	if err := json.Unmarshal(arg, &p); err != nil {
		return err
	}
	ca, err := network.NewCA()
	if err != nil {
		return err
	}
	path, err := exec.LookPath(p.Argv[0])
	if err != nil {
		return err
	}
	j, err := jail.Start(context.Background(), &jail.Config{
		Path: path, Argv: p.Argv, Env: append(p.Env, network.Env(jailedCA)...), Dir: p.Dir, Stdout: os.Stdout, Stderr: os.Stderr, TTY: -1,
		Writable: p.Writable, Files: []jail.File{{Path: jailedCA, Data: ca.Bundle(), Over: network.BundlePaths()}},
	})
	if err != nil {
		return err
	}
	defer j.Close()
	stop := p.serve(j, ca)
	defer stop()
	if err := j.Release(); err != nil {
		return err
	}
	exit, err := j.Wait()
	if err == nil && exit != (jail.Exit{}) {
		err = fmt.Errorf("%s ended with %+v", p.Argv[0], exit)
	}
	return err
}

// modelOptions are those of a model in front of agents, recorded or not.
func modelOptions(key string, pace time.Duration, text string) *scriptedllm.Options {
	return &scriptedllm.Options{Key: key, Delay: pace, Text: text, Gzip: true}
}

// serve answers what the program asks, names and the model, until stop is called.
func (p *jailedProgram) serve(j *jail.Jail, ca *network.CA) (stop func()) {
	model := scriptedllm.New(modelOptions(p.Key, p.Pace, p.Text))
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if host, _, _ := strings.Cut(r.Host, ":"); host != p.Host {
				http.Error(w, "no such host", http.StatusBadGateway)
				return
			}
			if r.Header.Get("Upgrade") != "" { // as the recorder says, and clients then do without
				http.Error(w, "no upgrades here", http.StatusUpgradeRequired)
				return
			}
			model.ServeHTTP(w, r)
		}),
		TLSConfig: &tls.Config{
			NextProtos:     []string{"h2", "http/1.1"}, // said here, for of Serve and ServeTLS the first decides
			GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return ca.Certificate(hello.ServerName) },
		},
		ErrorLog: log.New(os.Stderr, "", 0),
	}
	dns := network.NewDNS(new(network.Names), nil)
	var serving sync.WaitGroup
	begin := func(serve func() error) {
		serving.Go(func() {
			if err := serve(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, http.ErrServerClosed) {
				fmt.Fprintln(os.Stderr, "bench:", err)
			}
		})
	}
	plain, secure := j.Listeners()[0], j.Listeners()[1]
	packets, stream := j.DNS()
	begin(func() error { return srv.Serve(plain) })
	begin(func() error { return srv.ServeTLS(secure, "", "") })
	begin(func() error { return dns.ServeUDP(packets) })
	begin(func() error { return dns.ServeTCP(stream) })
	begin(func() error {
		for range j.Refusals() {
			continue
		}
		return nil
	})
	return func() {
		srv.Close()
		dns.Close()
		j.StopNetwork()
		serving.Wait()
	}
}

// jailed runs the trial's workload in a jail without a recorder; what p lacks is filled in.
func (t *trial) jailed(ctx context.Context, p jailedProgram) (time.Duration, error) {
	if err := t.begin(); err != nil {
		return 0, err
	}
	argv, env := t.load.command(t.place)
	cmd := t.e.command(ctx, t.place.work(), t.e.self)
	cmd.Env = append(append(cmd.Env, t.place.env()...), env...)
	noProxy := func(kv string) bool {
		return strings.HasPrefix(kv, "HTTP_PROXY=") || strings.HasPrefix(kv, "HTTPS_PROXY=")
	} // the recorder's
	p.Argv, p.Env, p.Dir, p.Writable = argv, slices.DeleteFunc(slices.Clone(cmd.Env), noProxy), cmd.Dir, append(t.place.writable(), os.TempDir())
	cmd.Args = t.e.jobArgs("jailed", p)
	return do(cmd)
}
