// Package bench has the providers' official SDKs speak to a testbench: in one process, with no key, no network and no server.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/tapedeck-dev/tapedeck/axis/llm/fixture"
	"github.com/tapedeck-dev/tapedeck/fidelity"
	"github.com/tapedeck-dev/tapedeck/tape"
	"github.com/tapedeck-dev/tapedeck/testbench"
)

const (
	system   = "Be brief."
	question = "What is the weather?"
	toolDoc  = "Looks out of the window."
	seen     = "rain"
)

var (
	properties = map[string]any{"at": map[string]any{"type": "string"}}
	parameters = map[string]any{"type": "object", "properties": properties, "required": []string{"at"}}
	advice     = []string{"Take", " an", " umbrella."}
)

// script is what the model says: it looks, then it advises, in pieces of which each takes its time; then it is overloaded.
func script() []fixture.Rule {
	call := fixture.ToolCall{ID: "call_a", Name: "look", Arguments: json.RawMessage(`{"at":"window"}`)}
	var stream []fixture.Piece
	for _, text := range advice {
		stream = append(stream, fixture.Piece{Text: text, DelayMS: 400})
	}
	return []fixture.Rule{
		{Match: fixture.Match{Contains: "weather"}, Response: &fixture.Response{ToolCalls: []fixture.ToolCall{call}, Usage: fixture.Usage{InputTokens: 11, OutputTokens: 7}}},
		{Match: fixture.Match{Contains: "weather"}, Stream: stream, Response: &fixture.Response{Usage: fixture.Usage{InputTokens: 23, OutputTokens: 5}}},
		{Match: fixture.Match{Contains: "weather"}, Error: &fixture.ModelError{Status: 529, Message: "too many umbrellas"}},
	}
}

// An sdk plays a conversation: a whole answer that calls a tool, one in a stream, one that fails. It returns the pieces of the
// stream, the tokens that the first answer and the stream say they used, and how the last one failed.
type sdk struct {
	name string
	play func(ctx context.Context, client *http.Client, look func(args string) string) (pieces []string, tokens [4]int64, failed error)
}

var sdks = []sdk{{"anthropic", playAnthropic}, {"openai chat", playChat}, {"openai responses", playResponses}, {"genai", playGenai}, {"bedrock", playBedrock}}

// TestSDKs has five APIs of four SDKs hold one conversation: each gets what the rules say, and all write the same calls on their
// tapes, which a replay answers.
func TestSDKs(t *testing.T) {
	var first []*tape.LLMCall
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			path := t.TempDir() + "/run.tape"
			b := testbench.New(t, &testbench.Config{LLM: testbench.LLM{Rules: script()}, Emit: path})
			s.try(t, b)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			calls := callsOf(t, b)
			if first == nil {
				first = calls
			}
			for i, k := range calls {
				if i < len(first) && k.RequestDigest != first[i].RequestDigest {
					t.Errorf("call %d\n%s\nis not that of the first SDK\n%s", i, k.RequestPayload.Text, first[i].RequestPayload.Text)
				}
			}
			if len(calls) != 3 {
				t.Errorf("%d calls", len(calls))
			}
			again := testbench.NewReplay(t, path, nil)
			s.try(t, again)
			if r, err := again.Verdict(fidelity.ByteIdentical); err != nil || len(r.Divergences) > 0 {
				t.Errorf("replay: %+v, %v", r, err)
			}
		})
	}
}

func (s *sdk) try(t *testing.T, b *testbench.Bench) {
	t.Helper()
	looked := 0
	began := b.Clock().Now()
	pieces, tokens, failed := s.play(t.Context(), b.Client(), func(args string) string {
		looked++
		var got map[string]string
		if err := json.Unmarshal([]byte(args), &got); err != nil || got["at"] != "window" {
			t.Errorf("the tool got %s", args)
		}
		return seen
	})
	if looked != 1 || !slices.Equal(pieces, advice) || tokens != [4]int64{11, 7, 23, 5} {
		t.Errorf("looked %d times, pieces %q, tokens %v", looked, pieces, tokens)
	}
	if text := textOf(failed); !strings.Contains(text, "529") || !strings.Contains(text, "too many umbrellas") {
		t.Errorf("the last call failed with %s", text)
	}
	if took := b.Clock().Now().Sub(began); took != 1200*time.Millisecond {
		t.Errorf("took %s on the run's clock", took)
	}
}

// textOf is what an SDK's error says. OpenAI's shows the message that came in a field alone.
func textOf(err error) string {
	var own *openai.Error
	switch {
	case err == nil:
		return "nothing"
	case errors.As(err, &own):
		return err.Error() + " " + own.Message
	}
	return err.Error()
}

func callsOf(t *testing.T, b *testbench.Bench) (calls []*tape.LLMCall) {
	t.Helper()
	records, err := b.Records()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if k, ok := r.Kind.(*tape.LLMCall); ok {
			calls = append(calls, k)
		}
	}
	return calls
}

func playAnthropic(ctx context.Context, hc *http.Client, look func(string) string) (pieces []string, tokens [4]int64, failed error) {
	client := anthropic.NewClient(anthropicoption.WithHTTPClient(hc), anthropicoption.WithAPIKey("none"), anthropicoption.WithMaxRetries(0))
	p := anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 100,
		System:   []anthropic.TextBlockParam{{Text: system}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "look", Description: anthropic.String(toolDoc),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: properties, Required: []string{"at"}},
		}}},
	}
	m, err := client.Messages.New(ctx, p)
	if err != nil {
		return nil, tokens, err
	}
	tokens[0], tokens[1] = m.Usage.InputTokens, m.Usage.OutputTokens
	p.Messages = append(p.Messages, m.ToParam())
	for _, block := range m.Content {
		if block.Type == "tool_use" {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewToolResultBlock(block.ID, look(string(block.Input)), false)))
		}
	}
	events := client.Messages.NewStreaming(ctx, p)
	defer events.Close()
	var all anthropic.Message
	for events.Next() {
		if err := all.Accumulate(events.Current()); err != nil {
			return nil, tokens, err
		}
		if e, ok := events.Current().AsAny().(anthropic.ContentBlockDeltaEvent); ok {
			pieces = append(pieces, e.Delta.Text)
		}
	}
	tokens[2], tokens[3] = all.Usage.InputTokens, all.Usage.OutputTokens
	if err := events.Err(); err != nil {
		return pieces, tokens, err
	}
	p.Messages = append(p.Messages, all.ToParam())
	_, err = client.Messages.New(ctx, p)
	return pieces, tokens, err
}

func playChat(ctx context.Context, hc *http.Client, look func(string) string) (pieces []string, tokens [4]int64, failed error) {
	client := openai.NewClient(openaioption.WithHTTPClient(hc), openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
	p := openai.ChatCompletionNewParams{
		Model:    openai.ChatModelGPT4o,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage(question)},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "look", Description: openai.String(toolDoc), Parameters: parameters,
		})},
	}
	c, err := client.Chat.Completions.New(ctx, p)
	if err != nil {
		return nil, tokens, err
	}
	tokens[0], tokens[1] = c.Usage.PromptTokens, c.Usage.CompletionTokens
	p.Messages = append(p.Messages, c.Choices[0].Message.ToParam())
	for _, call := range c.Choices[0].Message.ToolCalls {
		p.Messages = append(p.Messages, openai.ToolMessage(look(call.Function.Arguments), call.ID))
	}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	chunks := client.Chat.Completions.NewStreaming(ctx, p)
	defer chunks.Close()
	var all openai.ChatCompletionAccumulator
	for chunks.Next() {
		if !all.AddChunk(chunks.Current()) {
			return nil, tokens, errors.New("the SDK cannot add a chunk up")
		}
		for _, choice := range chunks.Current().Choices {
			if choice.Delta.Content != "" {
				pieces = append(pieces, choice.Delta.Content)
			}
		}
	}
	tokens[2], tokens[3] = all.Usage.PromptTokens, all.Usage.CompletionTokens
	if err := chunks.Err(); err != nil {
		return pieces, tokens, err
	}
	p.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
	p.Messages = append(p.Messages, all.Choices[0].Message.ToParam())
	_, err = client.Chat.Completions.New(ctx, p)
	return pieces, tokens, err
}

func playResponses(ctx context.Context, hc *http.Client, look func(string) string) (pieces []string, tokens [4]int64, failed error) {
	client := openai.NewClient(openaioption.WithHTTPClient(hc), openaioption.WithAPIKey("none"), openaioption.WithMaxRetries(0))
	items := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(question, responses.EasyInputMessageRoleUser)}
	p := responses.ResponseNewParams{
		Model: openai.ChatModelGPT4o, Instructions: openai.String(system),
		Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
			Name: "look", Description: openai.String(toolDoc), Parameters: parameters,
		}}},
	}
	p.Input.OfInputItemList = items
	r, err := client.Responses.New(ctx, p)
	if err != nil {
		return nil, tokens, err
	}
	tokens[0], tokens[1] = r.Usage.InputTokens, r.Usage.OutputTokens
	for _, item := range r.Output {
		if call, ok := item.AsAny().(responses.ResponseFunctionToolCall); ok {
			result := responses.ResponseInputItemParamOfFunctionCallOutput(look(call.Arguments))
			result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
			items = append(items, responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name), result)
		}
	}
	p.Input.OfInputItemList = items
	events := client.Responses.NewStreaming(ctx, p)
	defer events.Close()
	for events.Next() {
		switch e := events.Current().AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			pieces = append(pieces, e.Delta)
		case responses.ResponseCompletedEvent:
			tokens[2], tokens[3] = e.Response.Usage.InputTokens, e.Response.Usage.OutputTokens
		}
	}
	if err := events.Err(); err != nil {
		return pieces, tokens, err
	}
	p.Input.OfInputItemList = append(items, responses.ResponseInputItemParamOfMessage(strings.Join(pieces, ""), responses.EasyInputMessageRoleAssistant))
	_, err = client.Responses.New(ctx, p)
	return pieces, tokens, err
}

func playGenai(ctx context.Context, hc *http.Client, look func(string) string) (pieces []string, tokens [4]int64, failed error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: hc})
	if err != nil {
		return nil, tokens, err
	}
	conf := &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText(system, genai.RoleUser),
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: "look", Description: toolDoc, ParametersJsonSchema: parameters,
		}}}},
	}
	talk := genai.Text(question)
	const model = "gemini-2.5-flash"
	r, err := client.Models.GenerateContent(ctx, model, talk, conf)
	if err != nil {
		return nil, tokens, err
	}
	tokens[0], tokens[1] = int64(r.UsageMetadata.PromptTokenCount), int64(r.UsageMetadata.CandidatesTokenCount)
	talk = append(talk, r.Candidates[0].Content)
	for _, call := range r.FunctionCalls() {
		args, err := json.Marshal(call.Args)
		if err != nil {
			return nil, tokens, err
		}
		part := genai.NewPartFromFunctionResponse(call.Name, map[string]any{"output": look(string(args))})
		part.FunctionResponse.ID = call.ID
		talk = append(talk, genai.NewContentFromParts([]*genai.Part{part}, genai.RoleUser))
	}
	for r, err := range client.Models.GenerateContentStream(ctx, model, talk, conf) {
		if err != nil {
			return pieces, tokens, err
		}
		pieces = append(pieces, r.Text())
		tokens[2], tokens[3] = int64(r.UsageMetadata.PromptTokenCount), int64(r.UsageMetadata.CandidatesTokenCount)
	}
	talk = append(talk, genai.NewContentFromText(strings.Join(pieces, ""), genai.RoleModel))
	_, err = client.Models.GenerateContent(ctx, model, talk, conf)
	return pieces, tokens, err
}

func playBedrock(ctx context.Context, hc *http.Client, look func(string) string) (pieces []string, tokens [4]int64, failed error) {
	client := bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", HTTPClient: hc, Credentials: credentials.NewStaticCredentialsProvider("none", "none", ""), RetryMaxAttempts: 1,
	})
	text := func(s string) types.ContentBlock { return &types.ContentBlockMemberText{Value: s} }
	in := &bedrockruntime.ConverseInput{
		ModelId:  aws.String("anthropic.claude-sonnet-4-5-20250929-v1:0"),
		System:   []types.SystemContentBlock{&types.SystemContentBlockMemberText{Value: system}},
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{text(question)}}},
		ToolConfig: &types.ToolConfiguration{Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String("look"), Description: aws.String(toolDoc),
			InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(parameters)},
		}}}},
	}
	out, err := client.Converse(ctx, in)
	if err != nil {
		return nil, tokens, err
	}
	tokens[0], tokens[1] = int64(*out.Usage.InputTokens), int64(*out.Usage.OutputTokens)
	said := out.Output.(*types.ConverseOutputMemberMessage).Value
	in.Messages = append(in.Messages, said)
	for _, block := range said.Content {
		use, ok := block.(*types.ContentBlockMemberToolUse)
		if !ok {
			continue
		}
		args, err := use.Value.Input.MarshalSmithyDocument()
		if err != nil {
			return nil, tokens, err
		}
		result := types.ToolResultBlock{ToolUseId: use.Value.ToolUseId, Content: []types.ToolResultContentBlock{
			&types.ToolResultContentBlockMemberText{Value: look(string(args))},
		}}
		in.Messages = append(in.Messages, types.Message{Role: types.ConversationRoleUser, Content: []types.ContentBlock{
			&types.ContentBlockMemberToolResult{Value: result},
		}})
	}
	streamed, err := client.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
		ModelId: in.ModelId, System: in.System, Messages: in.Messages, ToolConfig: in.ToolConfig,
	})
	if err != nil {
		return nil, tokens, err
	}
	events := streamed.GetStream()
	defer events.Close()
	for event := range events.Events() {
		switch e := event.(type) {
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			if d, ok := e.Value.Delta.(*types.ContentBlockDeltaMemberText); ok {
				pieces = append(pieces, d.Value)
			}
		case *types.ConverseStreamOutputMemberMetadata:
			tokens[2], tokens[3] = int64(*e.Value.Usage.InputTokens), int64(*e.Value.Usage.OutputTokens)
		}
	}
	if err := events.Err(); err != nil {
		return pieces, tokens, err
	}
	in.Messages = append(in.Messages, types.Message{Role: types.ConversationRoleAssistant, Content: []types.ContentBlock{text(strings.Join(pieces, ""))}})
	_, err = client.Converse(ctx, in)
	return pieces, tokens, err
}

// TestNoRule has an SDK's own retries left on: a call that nothing answers is not tried again, and its error has the rule to paste.
func TestNoRule(t *testing.T) {
	b, err := testbench.Open(&testbench.Config{LLM: testbench.LLM{Rules: []fixture.Rule{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	anthropicClient := anthropic.NewClient(anthropicoption.WithHTTPClient(b.Client()), anthropicoption.WithAPIKey("none"))
	_, err = anthropicClient.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 1, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	})
	var refused *anthropic.Error
	if !errors.As(err, &refused) || refused.StatusCode != 400 || !strings.Contains(err.Error(), "call 1 of the model") {
		t.Errorf("anthropic: %v", err)
	}
	openaiClient := openai.NewClient(openaioption.WithHTTPClient(b.Client()), openaioption.WithAPIKey("none"))
	_, err = openaiClient.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: openai.ChatModelGPT4o, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
	})
	if text := textOf(err); !strings.Contains(text, "call 2 of the model") || !strings.Contains(text, `{"match":{"digest":"`) {
		t.Errorf("openai: %s", text)
	}
}

// TestRetries has an SDK try an overloaded model again by itself, without waiting for seconds.
func TestRetries(t *testing.T) {
	b := testbench.New(t, &testbench.Config{LLM: testbench.LLM{Rules: []fixture.Rule{
		{Match: fixture.Match{Any: true}, Times: 2, Error: &fixture.ModelError{Status: 529, Message: "busy"}},
		{Match: fixture.Match{Any: true}, Response: &fixture.Response{Text: "here"}},
	}}})
	client := anthropic.NewClient(anthropicoption.WithHTTPClient(b.Client()), anthropicoption.WithAPIKey("none"))
	began := time.Now()
	m, err := client.Messages.New(t.Context(), anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 1, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	})
	if err != nil || m.Content[0].Text != "here" {
		t.Fatalf("%+v, %v", m, err)
	}
	if took := time.Since(began); took > 400*time.Millisecond {
		t.Errorf("took %s", took)
	}
	if n := len(callsOf(t, b)); n != 3 {
		t.Errorf("%d calls", n)
	}
}
