package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/deck/otlp"
	"github.com/tapedeck-dev/tapedeck/deck/recording"
	"github.com/tapedeck-dev/tapedeck/internal/visible"
)

// otlpOptions say who gets spans, and how much is in them.
type otlpOptions struct {
	to      string
	content bool
}

// otlpPatience is how long a command waits at its end for a receiver that does not answer.
const otlpPatience = 2 * time.Second

// contentVar is OpenTelemetry's variable that asks for content.
const contentVar = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

func (o *otlpOptions) add(f *pflag.FlagSet, usage string) {
	f.StringVar(&o.to, "otlp", "", usage)
	f.BoolVar(&o.content, "otlp-content", false, "with --otlp: prompts, answers, arguments and results too, without secrets and bounded")
}

// receiver is the receiver that is named; nil for none.
func (o *otlpOptions) receiver() (*otlp.Receiver, error) {
	if o.to == "" {
		if o.content {
			return nil, errors.New("--otlp-content says what is in spans: name who gets them with --otlp URL")
		}
		return nil, nil
	}
	return otlp.To(o.to, os.Getenv)
}

func (o *otlpOptions) wantsContent() bool {
	return o.content || strings.EqualFold(os.Getenv(contentVar), "true")
}

// export gives recordings to a receiver, or to a file.
func (o *otlpOptions) export(ctx context.Context, names []string, std *console) error {
	return withRecordings(ctx, names, std.progress(), func(ctx context.Context, recs []*recording.Recording, prices *llm.Prices) error {
		spans := 0
		give := func(to otlp.Sink) error {
			for _, rec := range recs {
				n, err := otlp.Export(rec, &otlp.Options{Prices: prices, Content: o.wantsContent()}, to)
				if err != nil {
					return err
				}
				spans += n
			}
			return nil
		}
		to, err := o.give(ctx, give)
		if err != nil {
			return err
		}
		if std.json {
			return printJSON(std.out, map[string]any{"to": to, "spans": spans, "traces": len(recs)})
		}
		_, err = visible.Fprintf(std.out, "%s: %s in %s\n", to, plural(spans, "span", "spans"), plural(len(recs), "trace", "traces"))
		return err
	})
}

// give has what is exported given to what --otlp names, and returns what that is.
func (o *otlpOptions) give(ctx context.Context, give func(otlp.Sink) error) (to string, err error) {
	if o.to != otlp.FromEnv && !strings.Contains(o.to, "://") {
		return o.to, recording.WritePrivate(o.to, func(w io.Writer) error { return give(otlp.ToFile(w)) })
	}
	r, err := o.receiver()
	if err != nil {
		return "", err
	}
	return r.String(), give(func(request []byte) error { return r.Send(ctx, request) })
}

// liveSpans sends the spans of a run while it is recorded. The zero value sends none.
type liveSpans struct {
	o    *otlpOptions
	to   *otlp.Receiver
	live *otlp.Live
	err  error // why there is none
}

// live makes ready to send the spans of a run, and says to whom.
func (o *otlpOptions) live(std *console) (*liveSpans, error) {
	to, err := o.receiver()
	if err == nil && to != nil {
		std.say("spans go to %s while it runs%s", to, o.with())
	}
	return &liveSpans{o: o, to: to}, err
}

// with says what of content goes with spans.
func (o *otlpOptions) with() string {
	if o.wantsContent() {
		return ", with prompts, answers, arguments and results"
	}
	return ""
}

// begin sends the recording in dir from here on.
func (s *liveSpans) begin(dir string) {
	if s.to == nil {
		return
	}
	prices, err := projectPrices()
	if err == nil {
		s.live, err = otlp.Begin(dir, &otlp.Options{Prices: prices, Content: s.o.wantsContent()}, s.to)
	}
	s.err = err
}

// end sends the rest, and says what was not sent. rec is what the recorder left, nil where it failed.
func (s *liveSpans) end(rec *recording.Recording, std *console) {
	why := ""
	switch {
	case s.live != nil:
		t := s.live.End(rec, otlpPatience)
		why = t.Lost()
	case s.err != nil:
		why = "no spans were sent: " + s.err.Error()
	}
	if why == "" {
		return
	}
	if rec == nil { // none that an export could name: the last may be another one
		std.say("%s", why)
		return
	}
	to := s.to.String() // what was given may have keys
	if s.o.to == otlp.FromEnv {
		to = otlp.FromEnv
	}
	std.say("%s; tapedeck export %s --otlp %s sends them all, and doubles none", why, shortPath(rec.Dir), to)
}
