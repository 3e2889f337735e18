package llm_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
)

func TestAnsweredBy(t *testing.T) {
	for _, tt := range []struct{ asked, answered, want string }{
		{"gpt-4o", "gpt-4o-2024-08-06", "gpt-4o"},
		{"gpt-4o", "", "gpt-4o"},
		{"gpt-4o", "gpt-4o-mini-2024-07-18", "gpt-4o-mini-2024-07-18"},
		{"claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", "claude-3-5-sonnet-latest"},
		{"models/gemini-2.5-flash", "gemini-2.5-flash", "models/gemini-2.5-flash"},
		{"openai/gpt-4o", "gpt-4o", "openai/gpt-4o"},
		{"claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-4-5"},
	} {
		if got := llm.AnsweredBy(tt.asked, tt.answered); got != tt.want {
			t.Errorf("asked %q, answered %q: %q, want %q", tt.asked, tt.answered, got, tt.want)
		}
	}
}
