package deck

import (
	"fmt"
	"path/filepath"

	"github.com/tapedeck-dev/tapedeck/cassette"
)

// terminal hides what became known late in what the program's terminal showed and was given. It is masked where it stands, with as
// many bytes, and the whole is scanned again before it takes the place of what was there.
func (l *late) terminal() error {
	dir := filepath.Join(l.s.dir, terminalName)
	if !exists(dir) {
		return nil
	}
	if _, err := cassette.Scrub(dir, &cassette.ScrubOptions{Scrub: l.find, KeepEmail: true}); err != nil {
		return fmt.Errorf("%s: %w", terminalName, err)
	}
	return nil
}
