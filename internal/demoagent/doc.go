// Package demoagent is a small agent: a model, two tools, a loop. The quickstart records it, and it stands here as an
// agent looks from outside: it speaks to api.anthropic.com over TLS through net/http's defaults, streams, retries as
// the provider's SDKs do, and knows nothing of being recorded.
//
// Its tools read and write files in its directory, and nowhere else. It keeps no history between runs.
package demoagent
