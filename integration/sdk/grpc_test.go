//go:build linux

package sdk

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
)

// TestGRPC records calls of every sort to a real gRPC server, and replays them with the server gone: as they were, and with other
// messages in the one that is answered while it still comes.
func TestGRPC(t *testing.T) {
	b := newBox(t, map[string]string{"GRPC_TOKEN": key})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := scene.NewGRPC()
	go server.Serve(l)
	defer server.Stop()
	argv := []string{filepath.Join(built, "grpc"), "dns:///grpc.test:50051"}
	upstream := "grpc.test:50051=http://" + l.Addr().String()
	rec := b.tapedeck(append([]string{"record", "-o", b.recording, "--upstream", upstream, "--"}, argv...)...)
	for _, want := range []string{"echo unary [unary]", "NotFound no such thing: ü", "19 many", "50 parts", "0 turn 99"} {
		if rec.status != 0 || !strings.Contains(rec.stdout, want) {
			t.Fatalf("record, want %q: %v", want, rec)
		}
	}
	server.Stop()
	if found := b.holds(key); found != nil {
		t.Errorf("the token stands in %v", found)
	}
	if res := b.replay(); res.status != 0 || res.stdout != rec.stdout {
		t.Errorf("replay: %v", res)
	}
	t.Logf("%v", b.tapedeck("show", b.recording))
	if res := b.replay(append(argv, "changed")...); res.status != 2 || !strings.Contains(res.stdout+res.stderr, "scene.Scene/Chat") {
		t.Errorf("replay with other messages, want status 2: %v", res)
	}
}
