package page

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tapedeck-dev/tapedeck/axis/llm"
	"github.com/tapedeck-dev/tapedeck/cas"
	"github.com/tapedeck-dev/tapedeck/internal/canonjson"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// maxText bounds a text in a turn, in bytes: all of it stands in the request or the answer.
const maxText = 256 << 10

func textPart(kind, text string) Part {
	p := Part{Type: kind, Text: strings.ToValidUTF8(text, "\uFFFD")}
	if n := len(p.Text); n > maxText {
		p.Text = strings.ToValidUTF8(p.Text[:maxText], "")
		p.More = int64(n - len(p.Text))
	}
	return p
}

// textIn is the text of a value: a string, or a list of which some elements are.
func textIn(v *canonjson.Value) string {
	if v.Kind != canonjson.Array {
		return v.Text()
	}
	var texts []string
	for i := range v.Elems {
		if v.Elems[i].Kind == canonjson.String {
			texts = append(texts, v.Elems[i].Str)
		} else {
			texts = append(texts, string(v.Elems[i].Append(nil)))
		}
	}
	return strings.Join(texts, "\n")
}

func toolOf(v *canonjson.Value) Tool {
	name, ok := v.Get("name")
	description, _ := v.Get("description")
	schema, has := v.Get("input_schema")
	t := Tool{Name: name.Text(), Description: description.Text(), Schema: json.RawMessage("null")}
	switch {
	case has:
		t.Schema = schema.Append(nil)
	case !ok: // one that the provider runs
		kind, _ := v.Get("type")
		t.Name, t.Schema = kind.Text(), v.Append(nil)
	}
	return t
}

// messageOf is one message of a history.
func messageOf(t *llm.Turn, names map[string]string) Message {
	m := Message{Role: t.Role, Parts: []Part{}}
	if t.Role == llm.RoleTool {
		result := textPart("result", strings.Join(t.Texts(), "\n"))
		result.ID, result.Name, result.Fail = t.Of, names[t.Of], t.Failed
		m.Parts = append(m.Parts, result)
	}
	for i := range t.Parts {
		if t.Role != llm.RoleTool || t.Parts[i].Kind != canonjson.String {
			m.Parts = append(m.Parts, partOf(&t.Parts[i]))
		}
	}
	for _, c := range t.Calls {
		m.Parts = append(m.Parts, Part{Type: "call", ID: c.ID, Name: c.Name, Args: c.Arguments.Append(nil)})
	}
	for _, extra := range t.Extra {
		if text := extra.Value.Text(); extra.Key == "reasoning_content" || extra.Key == "reasoning" {
			m.Parts = append(m.Parts, textPart("thinking", text))
		}
	}
	return m
}

// partOf is a part of a message that may be anything.
func partOf(v *canonjson.Value) Part {
	if v.Kind == canonjson.String {
		return textPart("text", v.Str)
	}
	if mime, data := imageIn(v); data != "" {
		return imagePart(mime, data)
	}
	if text, ok := v.Get("text"); ok && text.Kind == canonjson.String {
		return textPart("text", text.Str)
	}
	return textPart("other", string(v.Append(nil)))
}

// maxImage bounds an image that stands in a turn, in bytes of base64.
const maxImage = 64 << 10

// imagePart is an image. One that no page shows, or that is large, is named alone.
func imagePart(mime, data string) Part {
	p := Part{Type: "image", ID: cas.Sum([]byte(data)).String(), Mime: strings.ToValidUTF8(mime, "\uFFFD"), More: int64(len(data))}
	if len(data) > maxImage {
		return p
	}
	if b, err := base64.StdEncoding.DecodeString(data); err == nil {
		switch found := http.DetectContentType(b); found {
		case "image/png", "image/jpeg", "image/gif", "image/webp":
			p.Mime, p.Text, p.More = found, data, 0
		}
	}
	return p
}

// imageIn returns an image in base64, in the forms of all providers; "" where a part is none, or names one elsewhere.
func imageIn(v *canonjson.Value) (mime, data string) {
	at := func(keys ...string) string {
		v, _ := v.Path(keys...)
		return v.Text()
	}
	for _, form := range [][2][]string{
		{{"source", "media_type"}, {"source", "data"}}, {{"inlineData", "mimeType"}, {"inlineData", "data"}},
		{{"inline_data", "mime_type"}, {"inline_data", "data"}}, {{"mimeType"}, {"data"}}, {{"image", "format"}, {"image", "source", "bytes"}},
	} {
		if mime, data = at(form[0]...), at(form[1]...); data != "" {
			return mime, data
		}
	}
	for _, url := range []string{at("image_url", "url"), at("image_url")} {
		if head, rest, ok := strings.Cut(url, ";base64,"); ok && strings.HasPrefix(head, "data:") {
			return strings.TrimPrefix(head, "data:"), rest
		}
	}
	return "", ""
}

// answerOf is what a model said.
func answerOf(a *llm.Answer) *Message {
	m := &Message{Role: llm.RoleAssistant, Parts: []Part{}}
	if a.Reasoning != "" {
		m.Parts = append(m.Parts, textPart("thinking", a.Reasoning))
	}
	if v, err := canonjson.Parse(a.Message.Content); err == nil {
		switch {
		case v.Kind == canonjson.Array:
			for i := range v.Elems {
				m.Parts = append(m.Parts, partOf(&v.Elems[i]))
			}
		case v.Text() != "":
			m.Parts = append(m.Parts, textPart("text", v.Text()))
		}
	}
	for _, c := range a.Message.ToolCalls {
		m.Parts = append(m.Parts, callOf(&c))
	}
	return m
}

// callOf is a call in the form that histories are read in, so that one repeats the other.
func callOf(c *sessionlog.ToolCall) Part {
	p := Part{Type: "call", ID: c.ID, Name: c.Name, Args: json.RawMessage("{}")}
	if v, err := canonjson.Parse(c.Arguments); err == nil {
		v = llm.ArgumentsOf(v)
		p.Args = v.Append(nil)
	}
	return p
}
