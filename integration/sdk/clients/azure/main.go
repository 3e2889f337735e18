// Azure plays the scenes with the azure package of github.com/openai/openai-go: OpenAI's formats under Azure's paths.
package main

import (
	"context"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
)

const (
	endpoint   = "https://scripted.openai.azure.com"
	version    = "2024-10-21"
	deployment = "our-gpt-4o"
)

var client = openai.NewClient(azure.WithEndpoint(endpoint, version), azure.WithAPIKey(os.Getenv("AZURE_OPENAI_API_KEY")))

func main() {
	scene.Main(
		scene.Scene{Name: "conversation", Run: conversation},
		scene.Scene{Name: "stream", Run: stream},
		scene.Scene{Name: "embed", Run: embed},
		scene.Scene{Name: "retry", Run: retry},
		scene.Scene{Name: "batch", Run: batch},
	)
}

func ask(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: deployment, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
	}
}

// conversation has a tool call and the turn after it.
func conversation(ctx context.Context, prompt string) error {
	p := ask(prompt)
	p.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: scene.ToolName, Parameters: scene.Schema()}),
	}
	for range scene.Turns {
		c, err := client.Chat.Completions.New(ctx, p)
		if err != nil {
			return err
		}
		m := c.Choices[0].Message
		scene.Say("completion", []any{c.ID, m.Content, c.Usage.PromptTokens, c.Usage.CompletionTokens})
		if len(m.ToolCalls) == 0 {
			break
		}
		p.Messages = append(p.Messages, m.ToParam())
		for _, t := range m.ToolCalls {
			said, err := scene.Tool(t.Function.Name, []byte(t.Function.Arguments))
			if err != nil {
				return err
			}
			p.Messages = append(p.Messages, openai.ToolMessage(said, t.ID))
		}
	}
	return nil
}

func stream(ctx context.Context, prompt string) error {
	p := ask("streamed: " + prompt)
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
	chunks := client.Chat.Completions.NewStreaming(ctx, p)
	defer chunks.Close()
	var all openai.ChatCompletionAccumulator
	for chunks.Next() {
		all.AddChunk(chunks.Current())
	}
	if err := chunks.Err(); err != nil {
		return err
	}
	scene.Say("completion", []any{all.ID, all.Choices[0].Message.Content})
	return nil
}

func embed(ctx context.Context, prompt string) error {
	e, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: "our-embedding", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(prompt)},
	})
	if err == nil {
		scene.Say("embedding", e.Data[0].Embedding)
	}
	return err
}

// retry has calls that fail at first, so that the SDK tries again by itself.
func retry(ctx context.Context, prompt string) error {
	for _, status := range []string{"429", "500"} {
		c, err := client.Chat.Completions.New(ctx, ask(prompt+", but fail once with "+status))
		if err != nil {
			return err
		}
		scene.Say("completion", []any{c.ID, c.Choices[0].Message.Content})
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
