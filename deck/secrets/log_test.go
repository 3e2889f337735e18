package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tapedeck-dev/tapedeck/scrub"
)

type secretStringer struct{ s string }

func (s secretStringer) LogValue() slog.Value { return slog.StringValue(s.s) }

func TestScrubbedLog(t *testing.T) {
	const known, named = "hunter2-hunter2-hunter2", "qWeRtY-not-known-1"
	s := scrub.New(scrub.Key{1}, nil)
	s.AddSecret("test", known)
	var b bytes.Buffer
	l := Logger(slog.New(slog.NewTextHandler(&b, nil)), s)
	l.Error("http: said "+known, "n", 7, "url", "https://api.example.com/v1?alt=sse&key="+named,
		"err", fmt.Errorf(`Get "https://u:p4ssw0rd-of-u@example.com/?api_key=%s": %w`, named+"2", errors.New(known)),
		"later", secretStringer{known}, slog.Group("g", "target", "/v1/models?key="+named))
	l.With("with", known).WithGroup("in").Error(`"GET /x?key=`+named+`3 HTTP/1.1"`, "x", known)
	slog.NewLogLogger(l.Handler(), slog.LevelError).Printf("http: panic at %s", known)
	for _, secret := range []string{known, named, "p4ssw0rd"} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%s stands in\n%s", secret, &b)
		}
	}
	if n := strings.Count(b.String(), "\n"); n != 3 || !strings.Contains(b.String(), "n=7") || !strings.Contains(b.String(), "alt=sse") {
		t.Errorf("%d lines:\n%s", n, &b)
	}
	Logger(nil, s).Error("to nobody")
}
