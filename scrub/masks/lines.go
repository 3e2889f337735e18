package masks

import (
	"bytes"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
)

// Lines that a program's log has or not, here or a few lines on, as its tasks in the background come to it. They go without a
// trace: what is around them counts, and they are counted as used.

const (
	maskCodexModels   = "codex-models"
	maskGeminiStartup = "gemini-startup"
	geminiStartup     = "[STARTUP] "
)

var (
	// codexModels is what codex logs whenever it could not ask for its list of models, with the reasons that come of the exchange,
	// which is compared for itself. Any other counts.
	codexModels = lazyregexp.New(`^[12][0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z ERROR codex_models_manager::manager: ` +
		`failed to refresh available models: (stream disconnected before completion: |unexpected status |Connection failed: )`)
	// geminiPhases is what gemini logs where a phase of its start is over sooner or later than its measures are looked at.
	geminiPhases = lazyregexp.New(`^\[STARTUP\] (Phase '\w*' was started but never ended\. Skipping metrics\.` +
		`|Cannot measure phase '\w*': start mark 'startup:\w*:start' not found \(likely cleared by reset\)\.` +
		`|Cannot end phase '\w*': phase was already ended\.)$`)
)

// findLine takes the line that begins at i, with its end, where it is one of lines.
func findLine(mask string, lines *lazyregexp.Regexp) func(s *search, i int) int {
	return func(s *search, i int) int {
		if i > 0 && s.b[i-1] != '\n' {
			return i
		}
		line, _, _ := bytes.Cut(s.b[i:], []byte("\n"))
		if !lines.Match(line) {
			return i
		}
		end := min(i+len(line)+1, len(s.b))
		s.take(i, end, mask)
		s.taken[len(s.taken)-1].Width = -1
		return end
	}
}
