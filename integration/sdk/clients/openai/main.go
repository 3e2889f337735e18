// Openai plays the scenes with github.com/openai/openai-go, its options left as they are: chat completions and responses.
package main

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
)

var client = openai.NewClient()

func main() {
	scene.Main(
		scene.Scene{Name: "conversation", Run: conversation},
		scene.Scene{Name: "side-by-side", Run: sideBySide},
		scene.Scene{Name: "stream", Run: stream},
		scene.Scene{Name: "responses", Run: respond},
		scene.Scene{Name: "responses-stream", Run: respondStreamed},
		scene.Scene{Name: "count", Run: count},
		scene.Scene{Name: "embed", Run: embed},
		scene.Scene{Name: "models", Run: models},
		scene.Scene{Name: "upload", Run: upload},
		scene.Scene{Name: "retry", Run: retry},
		scene.Scene{Name: "batch", Run: batch},
	)
}

// ask is a request without tools.
func ask(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: openai.ChatModelGPT4o,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("Be brief."), openai.UserMessage(prompt),
		},
	}
}

// work is a request with the tool.
func work(prompt string) openai.ChatCompletionNewParams {
	p := ask(prompt)
	p.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: scene.ToolName, Description: openai.String(scene.ToolDoc), Parameters: scene.Schema(),
		}),
	}
	return p
}

func say(c *openai.ChatCompletion) {
	m := c.Choices[0].Message
	scene.Say("text", m.Content)
	scene.Say("completion", []any{
		c.ID, c.Created, c.Choices[0].FinishReason, c.Usage.PromptTokens, c.Usage.CompletionTokens,
	})
}

type turn func(ctx context.Context, p *openai.ChatCompletionNewParams) (*openai.ChatCompletion, error)

// converse goes on until the model calls no tool.
func converse(ctx context.Context, p *openai.ChatCompletionNewParams, call turn) error {
	for range scene.Turns {
		c, err := call(ctx, p)
		if err != nil {
			return err
		}
		say(c)
		m := c.Choices[0].Message
		p.Messages = append(p.Messages, m.ToParam())
		for _, t := range m.ToolCalls {
			said, err := scene.Tool(t.Function.Name, []byte(t.Function.Arguments))
			if err != nil {
				return err
			}
			p.Messages = append(p.Messages, openai.ToolMessage(said, t.ID))
		}
		if len(m.ToolCalls) == 0 {
			return nil
		}
	}
	return errors.New("the model calls tools for ever")
}

func whole(ctx context.Context, p *openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	return client.Chat.Completions.New(ctx, *p)
}

func streamed(ctx context.Context, p *openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	chunks := client.Chat.Completions.NewStreaming(ctx, *p)
	defer chunks.Close()
	var all openai.ChatCompletionAccumulator
	n := 0
	for ; chunks.Next(); n++ {
		if !all.AddChunk(chunks.Current()) {
			return nil, errors.New("the SDK cannot add a chunk up")
		}
	}
	scene.Say("chunks", n)
	return &all.ChatCompletion, chunks.Err()
}

// conversation has two turns of the user, each with a tool call, whole.
func conversation(ctx context.Context, prompt string) error {
	p := work(prompt)
	if err := converse(ctx, &p, whole); err != nil {
		return err
	}
	p.Messages = append(p.Messages, openai.UserMessage("now write second.txt"))
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

func embed(ctx context.Context, prompt string) error {
	e, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: openai.EmbeddingModelTextEmbedding3Small,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{prompt, "a second text"}},
	})
	if err != nil {
		return err
	}
	for _, d := range e.Data {
		scene.Say("embedding", d.Embedding)
	}
	scene.Say("tokens", e.Usage.TotalTokens)
	return nil
}

func models(ctx context.Context, _ string) error {
	pages := client.Models.ListAutoPaging(ctx)
	for pages.Next() {
		scene.Say("model", pages.Current().ID)
	}
	return pages.Err()
}

func upload(ctx context.Context, prompt string) error {
	f, err := client.Files.New(ctx, openai.FileNewParams{
		File: openai.File(strings.NewReader(prompt+"\n"), "prompt.txt", "text/plain"), Purpose: openai.FilePurposeUserData,
	})
	if err == nil {
		scene.Say("file", []any{f.ID, f.Filename, f.Purpose, f.Bytes, f.CreatedAt})
	}
	return err
}

// retry has calls that fail at first, so that the SDK tries again by itself.
func retry(ctx context.Context, prompt string) error {
	for _, status := range []string{"429", "500"} {
		var answer *http.Response
		c, err := client.Chat.Completions.New(ctx, ask(prompt+", but fail once with "+status), option.WithResponseInto(&answer))
		if err != nil {
			return err
		}
		say(c)
		scene.Say("retries", answer.Request.Header.Get("X-Stainless-Retry-Count"))
	}
	return nil
}

func batch(ctx context.Context, prompt string) error {
	return scene.Batch(prompt, func(prompt string) (string, error) {
		c, err := client.Chat.Completions.New(ctx, ask(prompt))
		if err != nil {
			return "", err
		}
		return c.ID + " " + c.Choices[0].Message.Content, nil
	})
}
