// Package derive makes things of a recording: the session log of its program's conversation with a model, the work tree as the run
// found it or left it, the answers of its tool servers for other clients.
//
// The session log tells what was said in order: prompts, answers, tool calls, results, verdicts of policies, sub-agents. It is
// derived from the tape alone, so that the same tape gives the same log; what cannot be read is left out, and said.
package derive
