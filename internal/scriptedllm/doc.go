// Package scriptedllm is an LLM endpoint that follows a script: it speaks the wire formats of the real providers,
// streaming included, and needs neither a key nor a network.
//
// It speaks Anthropic messages, OpenAI chat completions and responses, Gemini generateContent and streamGenerateContent,
// Ollama's chat, OpenAI's formats under Azure's paths, Bedrock's Converse and InvokeModel, and responses, Realtime and Gemini Live over WebSockets, as
// their public references describe them; and beside them lists of models, token counts, embeddings and uploads of files where the provider has
// them. Tests put real agents and SDKs in front of it, and the quickstart records its own small agent against it.
//
// The script: a turn that declares tools and carries no tool result yet is answered with one tool call, its arguments
// built from the declared schema, so that the agent writes the file which the prompt names ("write hello.txt"), by the tool that it
// names, if any ("write hello.txt by mcp_files_write_file"). A turn that carries results is answered with a text that mentions
// the outcome. A turn that declares no tools, as requests for a title do, gets a short text, or an object of the wanted schema.
//
// Answers depend on the request alone, but for what real providers vary: ids and times. Options.Seed fixes those too.
//
// Non-goals: it has no state between requests (but for Options.Faults, which fail a request once, and for what was said on one
// WebSocket), refuses no odd parameter, and counts tokens by the length of the text.
package scriptedllm
