// Bedrock plays the scenes with github.com/aws/aws-sdk-go-v2/service/bedrockruntime: Converse and InvokeModel, each
// request signed, streams in Amazon's framing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
)

const (
	region = "us-east-1"
	model  = "anthropic.claude-sonnet-4-5-20250929-v1:0"
	titan  = "amazon.titan-embed-text-v2:0"
)

var client = bedrockruntime.New(bedrockruntime.Options{
	Region: region,
	Credentials: credentials.NewStaticCredentialsProvider(
		os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
})

func main() {
	scene.Main(
		scene.Scene{Name: "conversation", Run: conversation},
		scene.Scene{Name: "stream", Run: stream},
		scene.Scene{Name: "invoke", Run: invoke},
		scene.Scene{Name: "invoke-stream", Run: invokeStream},
		scene.Scene{Name: "embed", Run: embed},
		scene.Scene{Name: "retry", Run: retry},
		scene.Scene{Name: "batch", Run: batch},
	)
}

func user(blocks ...types.ContentBlock) types.Message {
	return types.Message{Role: types.ConversationRoleUser, Content: blocks}
}

func text(s string) types.ContentBlock { return &types.ContentBlockMemberText{Value: s} }

// conversation has a tool call and the turn after it.
func conversation(ctx context.Context, prompt string) error {
	in := &bedrockruntime.ConverseInput{
		ModelId: aws.String(model), Messages: []types.Message{user(text(prompt))},
		System: []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: "Be brief."}},
		ToolConfig: &types.ToolConfiguration{Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String(scene.ToolName), Description: aws.String(scene.ToolDoc),
			InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(scene.Schema())},
		}}}},
	}
	for range scene.Turns {
		out, err := client.Converse(ctx, in)
		if err != nil {
			return err
		}
		m := out.Output.(*types.ConverseOutputMemberMessage).Value
		scene.Say("answer", []any{out.StopReason, *out.Usage.InputTokens, *out.Usage.OutputTokens, *out.Metrics.LatencyMs})
		results, err := answers(m)
		if err != nil || results == nil {
			return err
		}
		in.Messages = append(in.Messages, m, user(results...))
	}
	return errors.New("the model calls tools for ever")
}

// answers prints what a message says and runs the tools that it calls; nil for none.
func answers(m types.Message) ([]types.ContentBlock, error) {
	var out []types.ContentBlock
	for _, b := range m.Content {
		switch b := b.(type) {
		case *types.ContentBlockMemberText:
			scene.Say("text", b.Value)
		case *types.ContentBlockMemberToolUse:
			arguments, err := b.Value.Input.MarshalSmithyDocument()
			if err != nil {
				return nil, err
			}
			said, err := scene.Tool(*b.Value.Name, arguments)
			if err != nil {
				return nil, err
			}
			out = append(out, &types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
				ToolUseId: b.Value.ToolUseId,
				Content:   []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: said}},
			}})
		}
	}
	return out, nil
}

func stream(ctx context.Context, prompt string) error {
	out, err := client.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
		ModelId: aws.String(model), Messages: []types.Message{user(text("streamed: " + prompt))},
	})
	if err != nil {
		return err
	}
	events := out.GetStream()
	defer events.Close()
	n, said := 0, ""
	for event := range events.Events() {
		n++
		switch e := event.(type) {
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			if d, ok := e.Value.Delta.(*types.ContentBlockDeltaMemberText); ok {
				said += d.Value
			}
		case *types.ConverseStreamOutputMemberMetadata:
			scene.Say("usage", []any{*e.Value.Usage.InputTokens, *e.Value.Usage.OutputTokens})
		}
	}
	scene.Say("text", []any{n, said})
	return events.Err()
}

// native is a request in the format of Anthropic's models.
func native(prompt string) []byte {
	body, err := json.Marshal(map[string]any{
		"anthropic_version": "bedrock-2023-05-31", "max_tokens": 1024,
		"messages": []any{map[string]any{"role": "user", "content": prompt}},
	})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return body
}

func invoke(ctx context.Context, prompt string) error {
	out, err := client.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{
		ModelId: aws.String(model), Body: native(prompt), ContentType: aws.String("application/json"),
	})
	if err == nil {
		scene.Say("body", json.RawMessage(out.Body))
	}
	return err
}

func invokeStream(ctx context.Context, prompt string) error {
	out, err := client.InvokeModelWithResponseStream(ctx, &bedrockruntime.InvokeModelWithResponseStreamInput{
		ModelId: aws.String(model), Body: native("streamed: " + prompt), ContentType: aws.String("application/json"),
	})
	if err != nil {
		return err
	}
	events := out.GetStream()
	defer events.Close()
	for event := range events.Events() {
		if chunk, ok := event.(*types.ResponseStreamMemberChunk); ok {
			scene.Say("chunk", json.RawMessage(chunk.Value.Bytes))
		}
	}
	return events.Err()
}

func embed(ctx context.Context, prompt string) error {
	body, err := json.Marshal(map[string]any{"inputText": prompt})
	if err != nil {
		return err
	}
	out, err := client.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{
		ModelId: aws.String(titan), Body: body, ContentType: aws.String("application/json"),
	})
	if err == nil {
		scene.Say("body", json.RawMessage(out.Body))
	}
	return err
}

// say asks and returns the text of the answer.
func say(ctx context.Context, prompt string) (string, error) {
	out, err := client.Converse(ctx, &bedrockruntime.ConverseInput{
		ModelId: aws.String(model), Messages: []types.Message{user(text(prompt))},
	})
	if err != nil {
		return "", err
	}
	return out.Output.(*types.ConverseOutputMemberMessage).Value.Content[0].(*types.ContentBlockMemberText).Value, nil
}

// retry has calls that fail at first, so that the SDK tries again by itself.
func retry(ctx context.Context, prompt string) error {
	for _, status := range []string{"429", "500"} {
		said, err := say(ctx, prompt+", but fail once with "+status)
		if err != nil {
			return err
		}
		scene.Say("text", said)
	}
	return nil
}

func batch(ctx context.Context, prompt string) error {
	return scene.Batch(prompt, func(prompt string) (string, error) { return say(ctx, prompt) })
}
