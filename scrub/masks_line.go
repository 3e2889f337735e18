package scrub

// Lines that a program's log has or not, here or a few lines on, as its tasks in the background come to it. They go without a
// trace: what is around them counts, and they are counted as used.

const (
	maskCodexModels   = "codex-models"
	maskGeminiStartup = "gemini-startup"
)

// The line, behind its time, that codex logs whenever it got no answer for its list of models, and what may stand behind that.
// An answer that it did not like reads otherwise.
const (
	codexModels = " ERROR codex_models_manager::manager: failed to refresh available models: " +
		"stream disconnected before completion: error sending request"
	codexURL = " for url ("
)

func findCodexModels(p *masking, i int) int {
	c := cursor{b: p.b, i: i}
	if isoDate(&c); c.failed || !p.beginsLine(i) {
		return i
	}
	c.one("T")
	c.clock()
	c.one("Z")
	c.text(codexModels)
	c.try(func(c *cursor) {
		c.text(codexURL)
		c.i = runOf(c.b, c.i, urlChars)
		c.text(")")
	})
	return p.cutLine(i, &c, maskCodexModels)
}

// The line that gemini logs for each phase of its start that was not over when its measures were looked at.
const (
	geminiPhase = "[STARTUP] Phase '"
	geminiEnd   = "' was started but never ended. Skipping metrics."
)

func findGeminiStartup(p *masking, i int) int {
	c := cursor{b: p.b, i: i}
	if c.text(geminiPhase); c.failed || !p.beginsLine(i) {
		return i
	}
	c.i = runOf(p.b, c.i, wordChars)
	c.text(geminiEnd)
	return p.cutLine(i, &c, maskGeminiStartup)
}

var urlChars = newSet("_-.:/?=&%~+,;@!$*")

// text reads s.
func (c *cursor) text(s string) {
	if c.failed || !hasPrefix(c.b, c.i, s) {
		c.failed = true
		return
	}
	c.i += len(s)
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
