// Genai plays the scenes with google.golang.org/genai against the Gemini API, its options left as they are but for
// retries, which it makes only when it is told to.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tapedeck-dev/tapedeck/integration/sdk/scene"
	"google.golang.org/genai"
)

const model = "gemini-2.5-flash"

var client *genai.Client

func main() {
	var err error
	client, err = genai.NewClient(context.Background(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scene.Main(
		scene.Scene{Name: "conversation", Run: conversation},
		scene.Scene{Name: "side-by-side", Run: sideBySide},
		scene.Scene{Name: "stream", Run: stream},
		scene.Scene{Name: "thinking", Run: thinking},
		scene.Scene{Name: "count", Run: count},
		scene.Scene{Name: "embed", Run: embed},
		scene.Scene{Name: "models", Run: models},
		scene.Scene{Name: "upload", Run: upload},
		scene.Scene{Name: "retry", Run: retry},
		scene.Scene{Name: "batch", Run: batch},
	)
}

// config has the tool.
func config() *genai.GenerateContentConfig {
	return &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("Be brief.", genai.RoleUser),
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: scene.ToolName, Description: scene.ToolDoc, ParametersJsonSchema: scene.Schema(),
		}}}},
	}
}

// A talk is a conversation.
type talk struct {
	contents []*genai.Content
	config   *genai.GenerateContentConfig
	call     func(ctx context.Context, t *talk) (*genai.Content, error)
}

// ask adds a turn of the user and goes on until the model calls no tool.
func (t *talk) ask(ctx context.Context, prompt string) error {
	t.contents = append(t.contents, genai.NewContentFromText(prompt, genai.RoleUser))
	for range scene.Turns {
		c, err := t.call(ctx, t)
		if err != nil {
			return err
		}
		t.contents = append(t.contents, c)
		results, err := answers(c)
		if err != nil || results == nil {
			return err
		}
		t.contents = append(t.contents, genai.NewContentFromParts(results, genai.RoleUser))
	}
	return errors.New("the model calls tools for ever")
}

// answers runs the tools that a content calls; nil for none.
func answers(c *genai.Content) ([]*genai.Part, error) {
	var out []*genai.Part
	for _, p := range c.Parts {
		if p.FunctionCall == nil {
			scene.Say("text", []any{p.Thought, p.Text})
			continue
		}
		arguments, err := json.Marshal(p.FunctionCall.Args)
		if err != nil {
			return nil, err
		}
		said, err := scene.Tool(p.FunctionCall.Name, arguments)
		if err != nil {
			return nil, err
		}
		part := genai.NewPartFromFunctionResponse(p.FunctionCall.Name, map[string]any{"output": said})
		part.FunctionResponse.ID = p.FunctionCall.ID
		out = append(out, part)
	}
	return out, nil
}

func say(r *genai.GenerateContentResponse) {
	u := r.UsageMetadata
	scene.Say("response", []any{r.ResponseID, r.ModelVersion, u.PromptTokenCount, u.CandidatesTokenCount})
}

func whole(ctx context.Context, t *talk) (*genai.Content, error) {
	r, err := client.Models.GenerateContent(ctx, model, t.contents, t.config)
	if err != nil {
		return nil, err
	}
	say(r)
	return r.Candidates[0].Content, nil
}

func streamed(ctx context.Context, t *talk) (*genai.Content, error) {
	all := &genai.Content{Role: genai.RoleModel}
	n := 0
	for r, err := range client.Models.GenerateContentStream(ctx, model, t.contents, t.config) {
		if err != nil {
			return nil, err
		}
		n++
		say(r)
		all.Parts = append(all.Parts, r.Candidates[0].Content.Parts...)
	}
	scene.Say("chunks", n)
	return all, nil
}

// conversation has two turns of the user, each with a tool call, whole.
func conversation(ctx context.Context, prompt string) error {
	t := &talk{config: config(), call: whole}
	if err := t.ask(ctx, prompt); err != nil {
		return err
	}
	return t.ask(ctx, "now write second.txt")
}

// sideBySide has two function calls in one answer.
func sideBySide(ctx context.Context, prompt string) error {
	t := &talk{config: config(), call: streamed}
	return t.ask(ctx, strings.Replace(prompt, "hello.txt", "one.txt and two.txt", 1))
}

func stream(ctx context.Context, prompt string) error {
	t := &talk{config: config(), call: streamed}
	return t.ask(ctx, "streamed: "+prompt)
}

func thinking(ctx context.Context, prompt string) error {
	t := &talk{config: config(), call: streamed}
	t.config.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true}
	return t.ask(ctx, "thoughtful: "+prompt)
}

func count(ctx context.Context, prompt string) error {
	n, err := client.Models.CountTokens(ctx, model, genai.Text(prompt), nil)
	if err == nil {
		scene.Say("tokens", n.TotalTokens)
	}
	return err
}

func embed(ctx context.Context, prompt string) error {
	contents := append(genai.Text(prompt), genai.Text("a second text")...)
	e, err := client.Models.EmbedContent(ctx, "gemini-embedding-001", contents, nil)
	if err != nil {
		return err
	}
	for _, x := range e.Embeddings {
		scene.Say("embedding", x.Values)
	}
	return nil
}

func models(ctx context.Context, _ string) error {
	for m, err := range client.Models.All(ctx) {
		if err != nil {
			return err
		}
		scene.Say("model", m.Name)
	}
	return nil
}

func upload(ctx context.Context, prompt string) error {
	f, err := client.Files.Upload(ctx, strings.NewReader(prompt+"\n"), &genai.UploadFileConfig{
		MIMEType: "text/plain", DisplayName: "prompt.txt",
	})
	if err == nil {
		scene.Say("file", []any{f.Name, f.URI, f.SizeBytes, f.CreateTime, f.State})
	}
	return err
}

// retry has calls that fail at first, so that the SDK tries again by itself.
func retry(ctx context.Context, prompt string) error {
	again := &genai.HTTPOptions{RetryOptions: &genai.HTTPRetryOptions{InitialDelay: genai.Ptr(0.01), Jitter: genai.Ptr(0.01)}}
	for _, status := range []string{"429", "500"} {
		r, err := client.Models.GenerateContent(ctx, model, genai.Text(prompt+", but fail once with "+status),
			&genai.GenerateContentConfig{HTTPOptions: again})
		if err != nil {
			return err
		}
		say(r)
		scene.Say("text", r.Text())
	}
	return nil
}

func batch(ctx context.Context, prompt string) error {
	return scene.Batch(prompt, func(prompt string) (string, error) {
		r, err := client.Models.GenerateContent(ctx, model, genai.Text(prompt), nil)
		if err != nil {
			return "", err
		}
		return r.ResponseID + " " + r.Text(), nil
	})
}
