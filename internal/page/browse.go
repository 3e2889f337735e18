package page

import (
	"html"
	"os"
	"os/exec"
	"path/filepath"
)

// Browse has a program open the page in a browser. The program is given the name of a file that only this user reads and that leads to the
// page: anybody on the machine sees what programs are started with, and the address has the token. done takes the file away; it is to be
// called in any case. The program may be the browser itself: it goes on as long as it likes.
func (s *Server) Browse(program string) (done func(), err error) {
	dir, err := os.MkdirTemp("", "tapedeck-ui-") // 0700
	if err != nil {
		return func() {}, err
	}
	remove := func() { os.RemoveAll(dir) }
	path := filepath.Join(dir, "open.html")
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=` +
		html.EscapeString(s.URL()) + `"><title>Tapedeck</title>` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return remove, err
	}
	child := exec.Command(program, path)
	if err := child.Start(); err != nil {
		return remove, err
	}
	go child.Wait() // how it ends says nothing: many hand over to a browser that runs
	return remove, nil
}
