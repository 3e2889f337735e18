package scrub

import "bytes"

// Lines that a program's log has or not, here or a few lines on, as its tasks in the background come to it. They go without a
// trace: what is around them counts, and they are counted as used.

const (
	maskCodexModels   = "codex-models"
	maskGeminiStartup = "gemini-startup"
)

// The line, behind its time, that codex logs whenever it could not ask for its list of models, and the reasons that come of the
// exchange, which is compared for itself. Any other counts.
const codexModels = " ERROR codex_models_manager::manager: failed to refresh available models: "

var codexReasons = []string{"stream disconnected before completion: ", "unexpected status ", "Connection failed: "}

func findCodexModels(p *masking, i int) int {
	c := cursor{b: p.b, i: i}
	if isoDate(&c); c.failed || !p.beginsLine(i) {
		return i
	}
	c.one("T")
	c.clock()
	c.one("Z")
	c.text(codexModels)
	if !c.failed && prefixAt(p.b, c.i, codexReasons) == "" {
		return i
	}
	c.restOfLine()
	return p.cutLine(i, &c, maskCodexModels)
}

// geminiStartup is what the lines of gemini's start-up profiler begin with.
const geminiStartup = "[STARTUP] "

// geminiLines are those that it logs where a phase of the start is over sooner or later than its measures are looked at, in
// pieces between which the name of the phase stands.
var geminiLines = [][]string{
	{geminiStartup + "Phase '", "' was started but never ended. Skipping metrics."},
	{geminiStartup + "Cannot measure phase '", "': start mark 'startup:", ":start' not found (likely cleared by reset)."},
	{geminiStartup + "Cannot end phase '", "': phase was already ended."},
}

func findGeminiStartup(p *masking, i int) int {
	if !p.beginsLine(i) {
		return i
	}
	for _, pieces := range geminiLines {
		c := cursor{b: p.b, i: i}
		for n, piece := range pieces {
			if n > 0 {
				c.i = runOf(p.b, c.i, wordChars)
			}
			c.text(piece)
		}
		if next := p.cutLine(i, &c, maskGeminiStartup); next > i {
			return next
		}
	}
	return i
}

// text reads s.
func (c *cursor) text(s string) {
	if c.failed || !hasPrefix(c.b, c.i, s) {
		c.failed = true
		return
	}
	c.i += len(s)
}

// restOfLine reads to the end of the line.
func (c *cursor) restOfLine() {
	if n := bytes.IndexByte(c.b[c.i:], '\n'); n >= 0 {
		c.i += n
	} else {
		c.i = len(c.b)
	}
}

// beginsLine tells whether a line begins at i.
func (p *masking) beginsLine(i int) bool { return i == 0 || p.b[i-1] == '\n' }

// cutLine takes out the line that begins at i, with its end; nothing where c failed to read it to there. It returns where to go
// on.
func (p *masking) cutLine(i int, c *cursor, name string) int {
	if c.failed || c.i < len(p.b) && p.b[c.i] != '\n' {
		return i
	}
	end := min(c.i+1, len(p.b))
	p.put(i, end, name)
	if p.only == nil {
		p.unname(name)
	}
	return end
}
