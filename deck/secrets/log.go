package secrets

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/scrub"
)

// Logger returns what the parts of a run log to: what they say beside the recording holds no more secrets than the
// recording does. A URL has its key in its query, an error may quote one, and net/http what it got. Nil is silent.
func Logger(to *slog.Logger, s *scrub.Scrubber) *slog.Logger {
	if to == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&scrubHandler{to.Handler(), s})
}

// A scrubHandler hides secrets in messages and in every attribute but numbers, times and the like.
type scrubHandler struct {
	slog.Handler
	s *scrub.Scrubber
}

// Handle implements slog.Handler.
func (h *scrubHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, h.text(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

// WithAttrs implements slog.Handler.
func (h *scrubHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &scrubHandler{h.Handler.WithAttrs(h.attrs(attrs)), h.s}
}

// WithGroup implements slog.Handler.
func (h *scrubHandler) WithGroup(name string) slog.Handler {
	return &scrubHandler{h.Handler.WithGroup(name), h.s}
}

func (h *scrubHandler) attrs(in []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(in))
	for i, a := range in {
		out[i] = h.attr(a)
	}
	return out
}

func (h *scrubHandler) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(h.text(v.String()))
	case slog.KindAny:
		a.Value = slog.StringValue(h.text(fmt.Sprint(v.Any())))
	case slog.KindGroup:
		a.Value = slog.GroupValue(h.attrs(v.Group())...)
	}
	return a
}

// inText finds what may be a URL, or the target of a request, in a text.
var inText = lazyregexp.New(`[^\s"'<>]*(?:\?|://)[^\s"'<>]*`)

func (h *scrubHandler) text(s string) string {
	return h.s.String(inText.ReplaceAllStringFunc(s, h.s.URL))
}
