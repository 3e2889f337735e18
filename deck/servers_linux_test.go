package deck

import (
	"os"
	"os/exec"
	"testing"
)

// What a server starts and talks with over pipes is the server's while it has no conversation of its own: an agent runs git so.
func TestChildOfAServer(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	var s servers
	server := s.add(os.Getpid())
	inner := s.add(child.Process.Pid)
	if n := s.conversation(inner); n != 0 {
		t.Errorf("it is of conversation %d before there is one", n)
	}
	s.talks(server, 7)
	if n := s.conversation(inner); n != 7 {
		t.Errorf("it is of conversation %d, want 7", n)
	}
	s.talks(inner, 8)
	if n := s.conversation(inner); n != 8 {
		t.Errorf("a server within a server is of conversation %d, want its own", n)
	}
}
