package jail

import (
	"reflect"
	"testing"
)

// TestForks has each process and thread get the PID that it is to have, whoever comes first: of processes that have executed nothing, of those
// of threads, and of threads themselves. Instead of one that is taken it gets the next that is free.
func TestForks(t *testing.T) {
	t.Parallel()
	s := &still{pids: map[string][]int{"100": {2000, 3000}, "3000": {1500, 2000}}}
	r := s.run(t, shellConfig(t, "sleep 1000 & a=$!; sh -c 'sh -c \"echo \\$\\$\"; sh -c \"echo \\$\\$\"; echo $$' & wait $!; echo $a $!; kill $a"))
	r.want(t, "1500\n2001\n3000\n2000 3000\n")
	if want := map[string][]int{"100": {2000, 3000}, "3000": {1500, 2001}}; !reflect.DeepEqual(s.made, want) {
		t.Errorf("made %v", s.made)
	}

	s = &still{pids: map[string][]int{"100": {3000, 3001}, "100 thread": {2000, 1500}, "1500": {4000}, "2000": {1200}}}
	r = s.run(t, pythonConfig(t, `
import os, threading
turn = [threading.Event(), threading.Event()]
def work(of):
    turn[of].wait()
    if (pid := os.fork()) == 0: os._exit(0)
    os.waitpid(pid, 0); print(threading.get_native_id(), pid, flush=True)
    turn[of - 1].set()
all = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for t in all: t.start()
turn[1].set()
for t in all: t.join()
if (pid := os.fork()) == 0: os._exit(0)
os.waitpid(pid, 0); print(pid, flush=True)
`))
	r.want(t, "1500 4000\n2000 1200\n3000\n")
}
