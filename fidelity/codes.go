package fidelity

import (
	"cmp"
	"strings"
)

// A Category is the stable code of a divergence.
type Category string

// Categories of whole records. KindMismatch ends the comparison of its pair.
const (
	MissingInReplay   Category = "missing_in_replay"
	MissingInRecorded Category = "missing_in_recorded"
	KindMismatch      Category = "kind_mismatch"
	PhaseMismatch     Category = "phase_mismatch"
	VirtualTimeDrift  Category = "virtual_time_drift"
	MonotonicDrift    Category = "monotonic_drift"
	UnknownKind       Category = "unknown_kind"

	// RecordMoved is a record that came in another place, in an aligned comparison.
	RecordMoved Category = "record_moved"

	// Of our own keys: the ordinal g, the true bytes of strings that are not UTF-8, keys that no version of the format
	// names.
	GlobalOrdinalDrift Category = "global_ordinal_drift"
	RawBytes           Category = "raw_bytes"
	ExtraKeys          Category = "extra_keys"
)

// Categories of outcomes.
const (
	OutcomeFSDiff       Category = "outcome_fs_diff"
	OutcomeExitCode     Category = "outcome_exit_code"
	OutcomeLLMCallCount Category = "outcome_llm_call_count"
)

// Categories of what a terminal showed: see Screens.
const (
	ScreenRows      Category = "screen_rows"
	ScreenCursorAt  Category = "screen_cursor"
	ScreenSize      Category = "screen_size"
	ScreenAlternate Category = "screen_alternate"
	ScreenTitle     Category = "screen_title"
	ScreenHistory   Category = "screen_history" // rows that had left the screen
	ScreenInput     Category = "screen_input"   // keys that one side never got
)

// MaskedValue is a value that differs where a mask makes the digests agree, and that the mask does not excuse: both runs were given the
// same time and randomness, or the value is a constant of the program.
const MaskedValue Category = "masked_value"

// Crossed says that replay served an answer to a request of another key, or served one twice.
const Crossed Category = "crossed"

// Categories of fields. Each is named for its kind and the field; these are the ones that something is decided by.
const (
	LLMRequestDigest Category = "llm_request_digest"
	LLMResponseHash  Category = "llm_response_hash"
	HTTPResponseHash Category = "http_response_hash"
	WSMessageHash    Category = "ws_message_hash"

	FileWriteHash  Category = "file_write_hash"
	FileWriteMode  Category = "file_write_mode"
	FileWriteAttrs Category = "file_write_xattrs"
	FileDeletePath Category = "file_delete_path"

	ProcessProgram    Category = "process_program"
	ProcessArgs       Category = "process_args"
	ProcessCwd        Category = "process_cwd"
	ProcessDuration   Category = "process_duration"
	ProcessStdinHash  Category = "process_stdin_hash"
	ProcessStdoutHash Category = "process_stdout_hash"
	ProcessStderrHash Category = "process_stderr_hash"

	// Of MCP the digests are of the redacted bytes, the hashes of the payloads.
	MCPServer         Category = "mcp_server"
	MCPRequestDigest  Category = "mcp_request_digest"
	MCPResponseDigest Category = "mcp_response_digest"
	MCPRequestHash    Category = "mcp_request_hash"
	MCPResponseHash   Category = "mcp_response_hash"
	MCPLatency        Category = "mcp_latency"
	MCPError          Category = "mcp_error"
	MCPOpenServer     Category = "mcp_open_server"
	MCPOpenEnv        Category = "mcp_open_env"
)

// Categories of records that followed from each other and came in another order, in lane mode: requests, models' too; processes of one
// parent; calls of a tool server.
const (
	HTTPOrder    Category = "http_order"
	ProcessOrder Category = "process_order"
	MCPOrder     Category = "mcp_order"
)

// words say in people's words what a category is about, where its code does not: what differs, and what the bytes behind it are.
var words = map[Category]struct{ title, noun string }{
	"llm_provider":         {"the provider changed", ""},
	"llm_endpoint":         {"the endpoint changed", ""},
	"llm_model":            {"the model changed", ""},
	"llm_params_digest":    {"the parameters of the model call changed", "the request"},
	LLMRequestDigest:       {"the request to the model changed", "the request"},
	"llm_request_hash":     {"the bytes of the request to the model changed", "the request"},
	LLMResponseHash:        {"the model's answer changed", "the answer"},
	"llm_status":           {"the status of the model's answer changed", ""},
	"http_request_digest":  {"the request changed", "the request"},
	"http_request_hash":    {"the bytes of the request changed", "the request"},
	HTTPResponseHash:       {"the answer changed", "the answer"},
	"http_status":          {"the status of the answer changed", ""},
	"http_url":             {"the URL changed", ""},
	"http_method":          {"the method changed", ""},
	"file_read_hash":       {"another content was read", "the file"},
	"file_read_content":    {"another content was read", "the file"},
	FileWriteHash:          {"another content was written", "the file"},
	"file_write_content":   {"another content was written", "the file"},
	FileWriteMode:          {"the file's mode changed", ""},
	MCPOrder:               {"calls came in another order", ""},
	ProcessOrder:           {"processes came in another order", ""},
	HTTPOrder:              {"requests came in another order", ""},
	FileWriteAttrs:         {"the file's extended attributes changed", ""},
	"file_read_before":     {"what stood there before changed", ""},
	"file_write_before":    {"what stood there before changed", ""},
	"file_delete_before":   {"what stood there before changed", ""},
	"file_read_path":       {"another file was read", ""},
	"file_write_path":      {"another file was written", ""},
	FileDeletePath:         {"another file was deleted", ""},
	ProcessProgram:         {"another program ran", ""},
	ProcessArgs:            {"the arguments changed", ""},
	ProcessCwd:             {"the working directory changed", ""},
	"process_exit_code":    {"the exit code changed", ""},
	"process_signal":       {"the signal that ended it changed", ""},
	ProcessStdoutHash:      {"stdout changed", "stdout"},
	ProcessStderrHash:      {"stderr changed", "stderr"},
	ProcessStdinHash:       {"stdin changed", ""},
	"mcp_method":           {"the MCP method changed", ""},
	MCPRequestDigest:       {"the MCP request changed", "the MCP request"},
	MCPResponseDigest:      {"the MCP answer changed", "the MCP answer"},
	MCPRequestHash:         {"the MCP request changed", "the MCP request"},
	MCPResponseHash:        {"the MCP answer changed", "the MCP answer"},
	KindMismatch:           {"something else happened", ""},
	"clock_read_value":     {"the clock's value changed", ""},
	"clock_sleep_duration": {"the length of a sleep changed", ""},
	"env_read_name":        {"another variable was read", ""},
	"env_read_value":       {"the variable's value changed", "the variable"},
	"dir_list_path":        {"another directory was listed", ""},
	"dir_list_names":       {"the names in the directory changed", "the names in the directory"},
	"file_stat_path":       {"another path was looked at", ""},
	"file_stat_type":       {"what stands at the path changed", ""},
	"file_stat_len":        {"the length of the file changed", ""},
	"file_stat_mode":       {"the file's mode changed", ""},
	ScreenCursorAt:         {"the cursor stands elsewhere", ""},
	ScreenSize:             {"the terminal has another size", ""},
	ScreenAlternate:        {"another screen is shown", ""},
	ScreenTitle:            {"the terminal's title changed", ""},
	WSMessageHash:          {"the message changed", "the message"},
	"ws_message_direction": {"the other side sent the message", ""},
	"ws_close_code":        {"the code that ended the conversation changed", ""},
	"ws_close_reason":      {"the reason that ended the conversation changed", ""},
	MCPServer:              {"the server calls itself otherwise", ""},
	MCPOpenServer:          {"the server calls itself otherwise", ""},
	"mcp_open_program":     {"the server is another program", ""},
	"mcp_open_args":        {"the server was started with other arguments", ""},
	MCPOpenEnv:             {"the server was given other variables", ""},
	"mcp_open_url":         {"the server has another URL", ""},
	"mcp_open_protocol":    {"another version of the protocol was agreed on", ""},
	MCPError:               {"why there is no answer changed", ""},
	"mcp_text_hash":        {"what came beside the messages changed", ""},
	"mcp_close_exit_code":  {"the server's exit code changed", ""},
	"mcp_close_signal":     {"the signal that ended the server changed", ""},
	"mcp_close_error":      {"how the conversation ended changed", ""},
	"mcp_close_by":         {"who ended the conversation changed", ""},
}

// titleOf is what a category reads as in a message.
func titleOf(c Category) string {
	return cmp.Or(words[c].title, strings.ReplaceAll(string(c), "_", " "))
}

// nounOf names the bytes behind a category.
func nounOf(c Category) string { return cmp.Or(words[c].noun, strings.ReplaceAll(string(c), "_", " ")) }

// drift reports whether a category is about nothing but when something happened.
func drift(c Category) bool {
	switch c {
	case VirtualTimeDrift, MonotonicDrift, GlobalOrdinalDrift, ProcessDuration, MCPLatency:
		return true
	}
	return false
}
