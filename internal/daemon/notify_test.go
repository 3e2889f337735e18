//go:build unix

package daemon

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// manager listens as a service manager does.
func manager(t *testing.T) (socket string, next func() string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return socket, func() string {
		t.Helper()
		buf := make([]byte, 256)
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func TestTheServiceManagerIsTold(t *testing.T) {
	socket, next := manager(t)
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", strconv.Itoa(20_000))
	d, err := Open(t.Context(), &Options{Listen: "127.0.0.1:0", NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- d.Serve(ctx) }()
	if got := next(); got != "READY=1" {
		t.Fatalf("first came %s", got)
	}
	for range 2 {
		if got := next(); got != "WATCHDOG=1" {
			t.Fatalf("then came %s", got)
		}
	}
	cancel()
	for got := next(); got != "STOPPING=1"; got = next() {
		if got != "WATCHDOG=1" {
			t.Fatalf("then came %s", got)
		}
	}
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func TestAWatchdogOfAnotherProcessIsNotOurs(t *testing.T) {
	env := map[string]string{"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}
	if n := newNotifier(func(k string) string { return env[k] }); n.watchdog != 0 {
		t.Errorf("%+v", n)
	}
}
