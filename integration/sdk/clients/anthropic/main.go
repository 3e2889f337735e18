// Anthropic plays the scenes with github.com/anthropics/anthropic-sdk-go, its options left as they are.
package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
)

const model = "claude-sonnet-4-5"

var client = anthropic.NewClient()

func main() {
	scene.Main(
		scene.Scene{Name: "transport", Run: transport},
		scene.Scene{Name: "conversation", Run: conversation},
		scene.Scene{Name: "side-by-side", Run: sideBySide},
		scene.Scene{Name: "stream", Run: stream},
		scene.Scene{Name: "thinking", Run: thinking},
		scene.Scene{Name: "count", Run: count},
		scene.Scene{Name: "models", Run: models},
		scene.Scene{Name: "upload", Run: upload},
		scene.Scene{Name: "retry", Run: retry},
		scene.Scene{Name: "batch", Run: batch},
	)
}

// transport prints how two calls went over the wire: the protocol, whether the answer came compressed, and whether the
// connection was kept from a call before.
func transport(ctx context.Context, prompt string) error {
	for range 2 {
		var answer *http.Response
		var kept bool
		ctx := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) { kept = i.Reused },
		})
		m, err := client.Messages.New(ctx, ask("over the wire: "+prompt), option.WithResponseInto(&answer))
		if err != nil {
			return err
		}
		say(m)
		scene.Say("transport", []any{answer.Proto, answer.Uncompressed, kept})
	}
	return nil
}

// ask is a request without tools.
func ask(prompt string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: model, MaxTokens: 4096,
		System:   []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	}
}

// work is a request with the tool.
func work(prompt string) anthropic.MessageNewParams {
	p := ask(prompt)
	p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
		Name: scene.ToolName, Description: anthropic.String(scene.ToolDoc),
		InputSchema: anthropic.ToolInputSchemaParam{Properties: scene.Properties(), Required: scene.Required()},
	}}}
	return p
}

// results runs the tools that a message calls.
func results(m *anthropic.Message) ([]anthropic.ContentBlockParamUnion, error) {
	var out []anthropic.ContentBlockParamUnion
	for _, b := range m.Content {
		if b.Type != "tool_use" {
			continue
		}
		said, err := scene.Tool(b.Name, b.Input)
		if err != nil {
			return nil, err
		}
		out = append(out, anthropic.NewToolResultBlock(b.ID, said, false))
	}
	return out, nil
}

func say(m *anthropic.Message) {
	for _, b := range m.Content {
		scene.Say(b.Type, b.Text+b.Thinking+b.Name)
	}
	scene.Say("message", []any{m.ID, m.StopReason, m.Usage.InputTokens, m.Usage.OutputTokens})
}

// turn is one call with its answer added to the request.
type turn func(ctx context.Context, p *anthropic.MessageNewParams) (*anthropic.Message, error)

// converse goes on until the model calls no tool.
func converse(ctx context.Context, p *anthropic.MessageNewParams, call turn) error {
	for range scene.Turns {
		m, err := call(ctx, p)
		if err != nil {
			return err
		}
		say(m)
		p.Messages = append(p.Messages, m.ToParam())
		told, err := results(m)
		if err != nil || told == nil {
			return err
		}
		p.Messages = append(p.Messages, anthropic.NewUserMessage(told...))
	}
	return errors.New("the model calls tools for ever")
}

func whole(ctx context.Context, p *anthropic.MessageNewParams) (*anthropic.Message, error) {
	return client.Messages.New(ctx, *p)
}

func streamed(ctx context.Context, p *anthropic.MessageNewParams) (*anthropic.Message, error) {
	events := client.Messages.NewStreaming(ctx, *p)
	defer events.Close()
	var m anthropic.Message
	n := 0
	for ; events.Next(); n++ {
		if err := m.Accumulate(events.Current()); err != nil {
			return nil, err
		}
	}
	scene.Say("events", n)
	return &m, events.Err()
}

// conversation has two turns of the user, each with a tool call, whole.
func conversation(ctx context.Context, prompt string) error {
	p := work(prompt)
	if err := converse(ctx, &p, whole); err != nil {
		return err
	}
	p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock("now write second.txt")))
	return converse(ctx, &p, whole)
}

// sideBySide has two tool calls in one answer.
func sideBySide(ctx context.Context, prompt string) error {
	p := work(strings.Replace(prompt, "hello.txt", "one.txt and two.txt", 1))
	return converse(ctx, &p, streamed)
}

func stream(ctx context.Context, prompt string) error {
	p := work("streamed: " + prompt)
	return converse(ctx, &p, streamed)
}

func thinking(ctx context.Context, prompt string) error {
	p := work("thoughtful: " + prompt)
	p.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	return converse(ctx, &p, streamed)
}

func count(ctx context.Context, prompt string) error {
	n, err := client.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{
		Model: model, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	})
	if err == nil {
		scene.Say("tokens", n.InputTokens)
	}
	return err
}

func models(ctx context.Context, _ string) error {
	pages := client.Models.ListAutoPaging(ctx, anthropic.ModelListParams{})
	for pages.Next() {
		scene.Say("model", []any{pages.Current().ID, pages.Current().DisplayName})
	}
	return pages.Err()
}

func upload(ctx context.Context, prompt string) error {
	f, err := client.Files.Upload(ctx, anthropic.FileUploadParams{
		File: anthropic.File(strings.NewReader(prompt+"\n"), "prompt.txt", "text/plain"),
	})
	if err == nil {
		scene.Say("file", []any{f.ID, f.Filename, f.MimeType, f.SizeBytes, f.CreatedAt})
	}
	return err
}

// retry has calls that fail at first, so that the SDK tries again by itself.
func retry(ctx context.Context, prompt string) error {
	for _, status := range []string{"429", "500"} {
		var answer *http.Response
		m, err := client.Messages.New(ctx, ask(prompt+", but fail once with "+status), option.WithResponseInto(&answer))
		if err != nil {
			return err
		}
		say(m)
		scene.Say("retries", answer.Request.Header.Get("X-Stainless-Retry-Count"))
	}
	return nil
}

func batch(ctx context.Context, prompt string) error {
	return scene.Batch(prompt, func(prompt string) (string, error) {
		m, err := client.Messages.New(ctx, ask(prompt))
		if err != nil {
			return "", err
		}
		return m.ID + " " + m.Content[0].Text, nil
	})
}
