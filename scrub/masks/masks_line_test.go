package masks_test

import (
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub/masks"
)

const (
	codexLine = "2026-11-22T06:23:50.627899Z ERROR codex_models_manager::manager: failed to refresh available models: " +
		"stream disconnected before completion: error sending request"
	codex401 = "2026-11-22T06:23:50.627899Z ERROR codex_models_manager::manager: failed to refresh available models: " +
		"unexpected status 401 Unauthorized: no key, url: https://chatgpt.com/backend-api/codex/models"
	codexURL      = " for url (https://chatgpt.com/backend-api/codex/models?client_version=0.169.0)"
	geminiMeasure = "[STARTUP] Cannot measure phase 'cleanup_ops': start mark 'startup:cleanup_ops:start' not found (likely cleared by reset)."
	geminiStart   = "[STARTUP] Phase 'cleanup_ops' was started but never ended. Skipping metrics."
)

// TestLinesGo: what logs say in some runs and not in others goes without a trace, its place too, and is counted.
func TestLinesGo(t *testing.T) {
	m := masks.New(&maskOptions)
	for _, in := range []string{
		codexLine + "\none\ntwo\n", "one\n" + codexLine + "\ntwo\n", "one\ntwo\n" + codexLine, "one\n" + codexLine + codexURL + "\ntwo\n",
		codexLine + "\n" + codexLine + codexURL + "\none\ntwo\n", codex401 + "\none\ntwo\n", geminiStart + "\none\n" + geminiMeasure + "\ntwo\n", "one\n" + geminiStart + "\ntwo\n",
	} {
		if got := string(m.Mask([]byte(in))); got != "one\ntwo\n" {
			t.Errorf("Mask(%q) = %q", in, got)
		}
	}
	if used := m.Used(); used["codex-models"] != 7 || used["gemini-startup"] != 3 || used["timestamp"] != 0 {
		t.Errorf("used: %v", used)
	}
}

// TestLinesStay: what else stands in such a line, or where such a line may not, still counts.
func TestLinesStay(t *testing.T) {
	m := masks.New(&maskOptions)
	const after = "<timestamp> ERROR codex_models_manager::manager: "
	const failed = after + "failed to refresh available models: "
	at := codexLine[:len("2026-11-22T06:23:50.627899Z")]
	for _, tt := range []struct{ in, want string }{
		{at + " ERROR codex_models_manager::manager: failed to refresh available models: no model is left", failed + "no model is left"},
		{at + " ERROR codex_models_manager::manager: failed to load models cache", after + "failed to load models cache"},
		{at + " WARN" + codexLine[len(at)+len(" ERROR"):], "<timestamp> WARN" + codexLine[len(at)+len(" ERROR"):]},
		{"said: " + codexLine, "said: " + failed + "stream disconnected before completion: error sending request"},
		{`"` + codexLine + `"`, `"` + failed + `stream disconnected before completion: error sending request"`},
		{codexLine[len(at):], codexLine[len(at):]},
		{"[STARTUP] Phase 'cleanup_ops' failed.", "[STARTUP] Phase 'cleanup_ops' failed."},
		{"[STARTUP] Cannot measure phase 'x': no clock.", "[STARTUP] Cannot measure phase 'x': no clock."},
		{geminiStart + " Really.", geminiStart + " Really."},
		{"  " + geminiStart, "  " + geminiStart},
	} {
		if got := string(m.Mask([]byte(tt.in))); got != tt.want {
			t.Errorf("Mask(%q)\n got %q\nwant %q", tt.in, got, tt.want)
		}
	}
	off := masks.New(&masks.Options{Disabled: []string{"codex-models", "gemini-startup", "timestamp"}})
	for _, in := range []string{codexLine, geminiStart} {
		if got := string(off.Mask([]byte(in))); got != in {
			t.Errorf("switched off: Mask(%q) = %q", in, got)
		}
	}
}

// TestLinksOfListings: how many links a listing says that a file has, which a replay's directories have otherwise, is masked with
// its alignment; nothing else of the line is, nor what only looks like one.
func TestLinksOfListings(t *testing.T) {
	m := masks.New(&maskOptions)
	for in, want := range map[string]string{
		"drwxr-xr-x 5 anna users 40 src":              "drwxr-xr-x <links> anna users 40 src",
		"total 8\ndrwxr-xr-x   12 anna users 40 src":  "total 8\ndrwxr-xr-x <links> anna users 40 src",
		`{"text":"total 8\ndrwxrwsr-t+ 1 anna 40 ."}`: `{"text":"total 8\ndrwxrwsr-t+ <links> anna 40 ."}`,
		"-rw-r--r--.  1 0 0 7 f":                      "-rw-r--r--. <links> 0 0 7 f",
		"lrwxrwxrwx 1 a a 3 l -> f":                   "lrwxrwxrwx <links> a a 3 l -> f",
		"drwxr-xr-x anna":                             "drwxr-xr-x anna",
		"drwxr-xr-x":                                  "drwxr-xr-x",
		"---------- 5 x":                              "---------- <links> x",
		"--------------- 5 x":                         "--------------- 5 x",
		"xdrwxr-xr-x 5 anna":                          "xdrwxr-xr-x 5 anna",
		"drwxr-xr-x 5":                                "drwxr-xr-x 5",
	} {
		if got := string(m.Mask([]byte(in))); got != want {
			t.Errorf("Mask(%q) = %q, want %q", in, got, want)
		}
	}
}
