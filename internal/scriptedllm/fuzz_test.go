package scriptedllm

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzEndpoint checks that no body brings the endpoint down, whatever the dialect.
func FuzzEndpoint(f *testing.F) {
	paths := []string{
		"/v1/messages", "/v1/chat/completions", "/v1/responses", geminiPath + "streamGenerateContent",
		"/api/chat", modelPath + "converse-stream", modelPath + "invoke",
	}
	for i, body := range []string{anthropicTurn, chatTurn, responsesTurn, geminiTurn, ollamaTurn, converseTurn, anthropicTurn} {
		f.Add(uint8(i), fillIn(body, "true", ""))
		f.Add(uint8(i), fillIn(body, "false", ""))
	}
	f.Add(uint8(2), `{"model":"m","input":[{"role":"user","content":null}],"tools":[{"type":"function","parameters":{"anyOf":[null]}}]}`)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, paths[int(which)%len(paths)], strings.NewReader(body))
		New(nil).ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	})
}
