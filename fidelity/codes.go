package fidelity

import (
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

// Categories of clocks.
const (
	ClockReadSource    Category = "clock_read_source"
	ClockReadValue     Category = "clock_read_value"
	ClockSleepDuration Category = "clock_sleep_duration"
)

// Categories of model calls.
const (
	LLMProvider        Category = "llm_provider"
	LLMEndpoint        Category = "llm_endpoint"
	LLMModel           Category = "llm_model"
	LLMParamsDigest    Category = "llm_params_digest"
	LLMUsage           Category = "llm_usage"
	LLMMethod          Category = "llm_method"
	LLMURL             Category = "llm_url"
	LLMRequestHeaders  Category = "llm_request_headers"
	LLMRequestDigest   Category = "llm_request_digest"
	LLMRequestHash     Category = "llm_request_hash"
	LLMStatus          Category = "llm_status"
	LLMResponseHeaders Category = "llm_response_headers"
	LLMResponseHash    Category = "llm_response_hash"
	LLMStream          Category = "llm_stream"
	LLMLane            Category = "llm_lane"
	LLMArrival         Category = "llm_arrival"
	LLMError           Category = "llm_error"
	LLMConnection      Category = "llm_connection" // of a turn in a WebSocket conversation
	LLMOpcode          Category = "llm_opcode"
)

// Categories of plain HTTP exchanges.
const (
	HTTPMethod          Category = "http_method"
	HTTPURL             Category = "http_url"
	HTTPRequestHeaders  Category = "http_request_headers"
	HTTPRequestDigest   Category = "http_request_digest"
	HTTPRequestHash     Category = "http_request_hash"
	HTTPStatus          Category = "http_status"
	HTTPResponseHeaders Category = "http_response_headers"
	HTTPResponseHash    Category = "http_response_hash"
	HTTPStream          Category = "http_stream"
	HTTPLane            Category = "http_lane"
	HTTPArrival         Category = "http_arrival"
	HTTPError           Category = "http_error"
	HTTPOrder           Category = "http_order" // lane mode: requests that followed from each other, models' too, came in another order
)

// Categories of WebSockets.
const (
	WSOpenURL             Category = "ws_open_url"
	WSOpenLane            Category = "ws_open_lane"
	WSOpenArrival         Category = "ws_open_arrival"
	WSOpenRequestHeaders  Category = "ws_open_request_headers"
	WSOpenResponseHeaders Category = "ws_open_response_headers"
	WSOpenStatus          Category = "ws_open_status"
	WSOpenConnection      Category = "ws_open_connection"
	WSMessageConnection   Category = "ws_message_connection"
	WSMessageDirection    Category = "ws_message_direction"
	WSMessageOpcode       Category = "ws_message_opcode"
	WSMessageHash         Category = "ws_message_hash"
	WSCloseConnection     Category = "ws_close_connection"
	WSCloseCode           Category = "ws_close_code"
	WSCloseReason         Category = "ws_close_reason"
)

// Categories of refused connections, and of names that were looked up.
const (
	TLSRefusedHost   Category = "tls_refused_host"
	TLSRefusedPort   Category = "tls_refused_port"
	TLSRefusedReason Category = "tls_refused_reason"
	NetRefusedAddr   Category = "net_refused_addr"
	NetRefusedPort   Category = "net_refused_port"
	NetRefusedReason Category = "net_refused_reason"
	NameLookupHost   Category = "name_lookup_host"
	NameLookupType   Category = "name_lookup_type"
	NameLookupResult Category = "name_lookup_result"
)

// Categories of files. Content and Before are payloads, Digest is content_digest.
const (
	FileReadPath      Category = "file_read_path"
	FileReadHash      Category = "file_read_hash"
	FileReadLen       Category = "file_read_len"
	FileReadContent   Category = "file_read_content"
	FileReadBefore    Category = "file_read_before"
	FileReadDigest    Category = "file_read_digest"
	FileReadMode      Category = "file_read_mode"
	FileReadSpawn     Category = "file_read_spawn"
	FileWritePath     Category = "file_write_path"
	FileWriteHash     Category = "file_write_hash"
	FileWriteLen      Category = "file_write_len"
	FileWriteContent  Category = "file_write_content"
	FileWriteBefore   Category = "file_write_before"
	FileWriteDigest   Category = "file_write_digest"
	FileWriteMode     Category = "file_write_mode"
	FileWriteAttrs    Category = "file_write_xattrs"
	FileWriteSpawn    Category = "file_write_spawn"
	FileDeletePath    Category = "file_delete_path"
	FileDeleteHash    Category = "file_delete_hash"
	FileDeleteLen     Category = "file_delete_len"
	FileDeleteContent Category = "file_delete_content"
	FileDeleteBefore  Category = "file_delete_before"
	FileDeleteDigest  Category = "file_delete_digest"
	FileDeleteMode    Category = "file_delete_mode"
	FileDeleteSpawn   Category = "file_delete_spawn"
)

// Categories of processes.
const (
	ProcessProgram      Category = "process_program"
	ProcessOrder        Category = "process_order" // lane mode: processes of one parent that followed from each other came in another order
	ProcessArgs         Category = "process_args"
	ProcessCwd          Category = "process_cwd"
	ProcessExitCode     Category = "process_exit_code"
	ProcessDuration     Category = "process_duration"
	ProcessStdoutHash   Category = "process_stdout_hash"
	ProcessStderrHash   Category = "process_stderr_hash"
	ProcessSpawnID      Category = "process_spawn_id"
	ProcessParent       Category = "process_parent"
	ProcessSignal       Category = "process_signal"
	ProcessStdinHash    Category = "process_stdin_hash"
	ProcessStdoutDigest Category = "process_stdout_digest"
	ProcessStderrDigest Category = "process_stderr_digest"
	ProcessPID          Category = "process_pid"
	ProcessAnswers      Category = "process_answers"
	ProcessTicks        Category = "process_ticks"
	ProcessTimes        Category = "process_times"
)

// Categories of MCP. The digests are of the redacted bytes, the hashes of the payloads.
const (
	MCPServer         Category = "mcp_server"
	MCPMethod         Category = "mcp_method"
	MCPRequestDigest  Category = "mcp_request_digest"
	MCPResponseDigest Category = "mcp_response_digest"
	MCPLatency        Category = "mcp_latency"
	MCPRequestHash    Category = "mcp_request_hash"
	MCPResponseHash   Category = "mcp_response_hash"
)

// Further categories of MCP, of our own keys. The digests of parameters and results only count by position: between lanes they
// are what MCPRequestDigest and MCPResponseDigest compare.
const (
	MCPFrom           Category = "mcp_from"
	MCPConversation   Category = "mcp_conversation"
	MCPTransport      Category = "mcp_transport"
	MCPArrival        Category = "mcp_arrival"
	MCPAnswered       Category = "mcp_answered"
	MCPParamsDigest   Category = "mcp_params_digest"
	MCPResultDigest   Category = "mcp_result_digest"
	MCPExchange       Category = "mcp_exchange"
	MCPAnswerExchange Category = "mcp_answer_exchange"
	MCPOrder          Category = "mcp_order" // lane mode: calls that followed from each other came in another order
	MCPError          Category = "mcp_error"
)

// Categories of conversations with MCP servers: how they began, what in them is no message, how they ended.
const (
	MCPOpenServer        Category = "mcp_open_server"
	MCPOpenConversation  Category = "mcp_open_conversation"
	MCPOpenTransport     Category = "mcp_open_transport"
	MCPOpenProgram       Category = "mcp_open_program"
	MCPOpenArgs          Category = "mcp_open_args"
	MCPOpenEnv           Category = "mcp_open_env"
	MCPOpenCwd           Category = "mcp_open_cwd"
	MCPOpenURL           Category = "mcp_open_url"
	MCPOpenProtocol      Category = "mcp_open_protocol"
	MCPTextServer        Category = "mcp_text_server"
	MCPTextConversation  Category = "mcp_text_conversation"
	MCPTextFrom          Category = "mcp_text_from"
	MCPTextArrival       Category = "mcp_text_arrival"
	MCPTextHash          Category = "mcp_text_hash"
	MCPCloseServer       Category = "mcp_close_server"
	MCPCloseConversation Category = "mcp_close_conversation"
	MCPCloseArrival      Category = "mcp_close_arrival"
	MCPCloseExitCode     Category = "mcp_close_exit_code"
	MCPCloseSignal       Category = "mcp_close_signal"
	MCPCloseError        Category = "mcp_close_error"
	MCPCloseBy           Category = "mcp_close_by"
)

// Categories of other inputs, and of policy.
const (
	DirListPath        Category = "dir_list_path"
	DirListNames       Category = "dir_list_names"
	EnvReadName        Category = "env_read_name"
	EnvReadValue       Category = "env_read_value"
	FileStatPath       Category = "file_stat_path"
	FileStatType       Category = "file_stat_type"
	FileStatLen        Category = "file_stat_len"
	FileStatMode       Category = "file_stat_mode"
	RandomReadLength   Category = "random_read_length"
	RandomReadHash     Category = "random_read_hash"
	PolicySet          Category = "policy_set"
	PolicyActionID     Category = "policy_action_id"
	PolicyTool         Category = "policy_tool"
	PolicyParamsDigest Category = "policy_params_digest"
	PolicyParamsHash   Category = "policy_params_hash"
	PolicyState        Category = "policy_state"
	PolicyVerdict      Category = "policy_verdict"
)

// titles say in people's words what a category is about, where its code does not.
var titles = map[Category]string{
	LLMProvider:        "the provider changed",
	LLMEndpoint:        "the endpoint changed",
	LLMModel:           "the model changed",
	LLMParamsDigest:    "the parameters of the model call changed",
	LLMRequestDigest:   "the request to the model changed",
	LLMRequestHash:     "the bytes of the request to the model changed",
	LLMResponseHash:    "the model's answer changed",
	LLMStatus:          "the status of the model's answer changed",
	HTTPRequestDigest:  "the request changed",
	HTTPRequestHash:    "the bytes of the request changed",
	HTTPResponseHash:   "the answer changed",
	HTTPStatus:         "the status of the answer changed",
	HTTPURL:            "the URL changed",
	HTTPMethod:         "the method changed",
	FileReadHash:       "another content was read",
	FileReadContent:    "another content was read",
	FileWriteHash:      "another content was written",
	FileWriteContent:   "another content was written",
	FileWriteMode:      "the file's mode changed",
	MCPOrder:           "calls came in another order",
	ProcessOrder:       "processes came in another order",
	HTTPOrder:          "requests came in another order",
	FileWriteAttrs:     "the file's extended attributes changed",
	FileReadBefore:     "what stood there before changed",
	FileWriteBefore:    "what stood there before changed",
	FileDeleteBefore:   "what stood there before changed",
	FileReadPath:       "another file was read",
	FileWritePath:      "another file was written",
	FileDeletePath:     "another file was deleted",
	ProcessProgram:     "another program ran",
	ProcessArgs:        "the arguments changed",
	ProcessCwd:         "the working directory changed",
	ProcessExitCode:    "the exit code changed",
	ProcessSignal:      "the signal that ended it changed",
	ProcessStdoutHash:  "stdout changed",
	ProcessStderrHash:  "stderr changed",
	ProcessStdinHash:   "stdin changed",
	MCPMethod:          "the MCP method changed",
	MCPRequestDigest:   "the MCP request changed",
	MCPResponseDigest:  "the MCP answer changed",
	MCPRequestHash:     "the MCP request changed",
	MCPResponseHash:    "the MCP answer changed",
	KindMismatch:       "something else happened",
	ClockReadValue:     "the clock's value changed",
	ClockSleepDuration: "the length of a sleep changed",
	EnvReadName:        "another variable was read",
	EnvReadValue:       "the variable's value changed",
	DirListPath:        "another directory was listed",
	DirListNames:       "the names in the directory changed",
	FileStatPath:       "another path was looked at",
	FileStatType:       "what stands at the path changed",
	FileStatLen:        "the length of the file changed",
	FileStatMode:       "the file's mode changed",
	ScreenCursorAt:     "the cursor stands elsewhere",
	ScreenSize:         "the terminal has another size",
	ScreenAlternate:    "another screen is shown",
	ScreenTitle:        "the terminal's title changed",
	WSMessageHash:      "the message changed",
	WSMessageDirection: "the other side sent the message",
	WSCloseCode:        "the code that ended the conversation changed",
	WSCloseReason:      "the reason that ended the conversation changed",
	MCPServer:          "the server calls itself otherwise",
	MCPOpenServer:      "the server calls itself otherwise",
	MCPOpenProgram:     "the server is another program",
	MCPOpenArgs:        "the server was started with other arguments",
	MCPOpenEnv:         "the server was given other variables",
	MCPOpenURL:         "the server has another URL",
	MCPOpenProtocol:    "another version of the protocol was agreed on",
	MCPError:           "why there is no answer changed",
	MCPTextHash:        "what came beside the messages changed",
	MCPCloseExitCode:   "the server's exit code changed",
	MCPCloseSignal:     "the signal that ended the server changed",
	MCPCloseError:      "how the conversation ended changed",
	MCPCloseBy:         "who ended the conversation changed",
}

// titleOf is what a category reads as in a message.
func titleOf(c Category) string {
	if t, ok := titles[c]; ok {
		return t
	}
	return strings.ReplaceAll(string(c), "_", " ")
}

// drift reports whether a category is about nothing but when something happened.
func drift(c Category) bool {
	switch c {
	case VirtualTimeDrift, MonotonicDrift, GlobalOrdinalDrift, ProcessDuration, MCPLatency:
		return true
	}
	return false
}
