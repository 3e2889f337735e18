package main

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
)

const responsesModel = "gpt-5"

// response makes one call of the responses API.
type response func(ctx context.Context, p *responses.ResponseNewParams) (*responses.Response, error)

func respond(ctx context.Context, prompt string) error {
	return discuss(ctx, prompt, func(ctx context.Context, p *responses.ResponseNewParams) (*responses.Response, error) {
		return client.Responses.New(ctx, *p)
	})
}

func respondStreamed(ctx context.Context, prompt string) error {
	return discuss(ctx, "streamed: "+prompt, func(ctx context.Context, p *responses.ResponseNewParams) (*responses.Response, error) {
		events := client.Responses.NewStreaming(ctx, *p)
		defer events.Close()
		var last *responses.Response
		n := 0
		for ; events.Next(); n++ {
			if e := events.Current(); e.Type == "response.completed" {
				last = &e.Response
			}
		}
		scene.Say("events", n)
		if last == nil && events.Err() == nil {
			return nil, errors.New("the stream has no response.completed")
		}
		return last, events.Err()
	})
}

// discuss goes on until the model calls no tool. The client keeps the conversation.
func discuss(ctx context.Context, prompt string, call response) error {
	input := responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(prompt, responses.EasyInputMessageRoleUser),
	}
	p := &responses.ResponseNewParams{
		Model: responsesModel, Instructions: openai.String("Be brief."),
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction(scene.ToolName, scene.Schema(), false)},
	}
	for range scene.Turns {
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		r, err := call(ctx, p)
		if err != nil {
			return err
		}
		scene.Say("text", r.OutputText())
		scene.Say("response", []any{r.ID, r.CreatedAt, r.Status, r.Usage.InputTokens, r.Usage.OutputTokens})
		told, err := answers(r)
		if err != nil || told == nil {
			return err
		}
		input = append(input, told...)
	}
	return errors.New("the model calls tools for ever")
}

// answers are the calls of a response and their results; nil for none.
func answers(r *responses.Response) (responses.ResponseInputParam, error) {
	var out responses.ResponseInputParam
	for _, item := range r.Output {
		if item.Type != "function_call" {
			continue
		}
		c := item.AsFunctionCall()
		said, err := scene.Tool(c.Name, []byte(c.Arguments))
		if err != nil {
			return nil, err
		}
		result := responses.ResponseInputItemParamOfFunctionCallOutput(said)
		result.OfFunctionCallOutput.CallID = openai.String(c.CallID)
		out = append(out, responses.ResponseInputItemParamOfFunctionCall(c.Arguments, c.CallID, c.Name), result)
	}
	return out, nil
}

func count(ctx context.Context, prompt string) error {
	n, err := client.Responses.InputTokens.Count(ctx, responses.InputTokenCountParams{
		Model: openai.String(responsesModel), Input: responses.InputTokenCountParamsInputUnion{OfString: openai.String(prompt)},
	})
	if err == nil {
		scene.Say("tokens", n.InputTokens)
	}
	return err
}
