// Package foreign reads the transcripts that other agents keep of themselves, as the events of a session log.
//
// Read are the sessions of Claude Code, Codex and gemini-cli, of opencode, pi and qwen-code, and ATIF, each by one Importer. Every
// importer hands what was asked, answered, called and given to a sessionlog.Dialog, which numbers the turns: the log of a
// transcript is that of a recording of the same conversation, but for what only one of the two knows (see below).
//
// Goals: one transcript, however long, streams through with bounded memory: one line, and a few bytes for each line where a
// format makes a tree of them. What an importer does not know is counted and named in its Report, never an error: these
// formats change every week and none is written down. What it does know and finds broken is an error with file and line. What a
// crash leaves at the end of a file is said in a note. Nothing in the transcript is ever guessed at: a call without its result
// stays open.
//
// Grammar: a turn is one answer of the model, all of whose parts (text, thoughts, calls), however many lines they took, are
// one llm_completed. What was thought stands in its content as the agent kept it; where a part has no place in the event form
// it is counted. A file's name is never taken from what stands in it, but for folders that an agent made of its own session's
// id, which are held against the letters of such ids.
//
// Not in a transcript, and so not in its log: tape_seq; the system prompt, where the agent does not keep it. In a transcript
// alone: sub-agents that a tape shows as lanes only, compressions, the time at which something was said.
//
// Secrets: nothing is taken out here. The caller passes the events through package scrub before they reach a disk.
//
// Not goals: writing these formats; resuming an agent; what an agent keeps beside the conversation (settings, snapshots of files,
// to-do lists, telemetry).
package foreign
