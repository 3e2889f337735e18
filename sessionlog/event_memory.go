package sessionlog

import "encoding/json"

// LargeResultSpooled says that a result was too large for the context, in bytes, and where it lies.
type LargeResultSpooled struct {
	Common
	CallID       string `json:"call_id"`
	Tool         string `json:"tool"`
	OriginalSize int64  `json:"original_size"`
	PreviewSize  int64  `json:"preview_size"`
	SpoolRef     string `json:"spool_ref,omitempty"`
}

// Compressed says that a range of the log left the context.
type Compressed struct {
	Common
	ArchivedSeqRange []uint64 `json:"archived_seq_range"` // [from, to]
	Action           string   `json:"action,omitempty"`
	Summary          string   `json:"summary,omitempty"`
	SummaryTokens    int64    `json:"summary_tokens,omitempty"`
	PreservedRefs    []string `json:"preserved_refs"`
}

// PageOut says that messages left the context for long-term storage.
type PageOut struct {
	Common
	Action       string `json:"action,omitempty"`
	Summary      string `json:"summary,omitempty"`
	TierHint     string `json:"tier_hint,omitempty"`
	MessageCount int64  `json:"message_count"`
	ArchiveRef   string `json:"archive_ref,omitempty"`
}

// PageIn says that entries came back from there.
type PageIn struct {
	Common
	EntryCount int64 `json:"entry_count"`
}

// ContextRenewed says that the context began anew, with what was handed over.
type ContextRenewed struct {
	Common
	Sprint     int64  `json:"sprint"`
	HandoffRef string `json:"handoff_ref"`
}

// MemoryWritten says that an entry was put into long-term memory. Older producers call the record memory_id.
type MemoryWritten struct {
	Common
	RecordID   string          `json:"record_id,omitempty"`
	MemoryID   string          `json:"memory_id,omitempty"`
	Scope      json.RawMessage `json:"scope,omitempty"`
	MemoryKind string          `json:"memory_kind,omitempty"`
	Name       string          `json:"name,omitempty"`
	SizeBytes  int64           `json:"size_bytes,omitempty"`
}

// MemoryQueried says that long-term memory was asked. Older producers call the query query_context.
type MemoryQueried struct {
	Common
	Scope                 json.RawMessage `json:"scope,omitempty"`
	Query                 string          `json:"query,omitempty"`
	QueryContext          string          `json:"query_context,omitempty"`
	RequestedK            int64           `json:"requested_k,omitempty"`
	RequiresAsyncResponse bool            `json:"requires_async_response,omitempty"`
}

// MemoryValidationFailed says that an entry was refused.
type MemoryValidationFailed struct {
	Common
	RecordID string `json:"record_id,omitempty"`
	MemoryID string `json:"memory_id,omitempty"`
	Error    string `json:"error,omitempty"`
}

// MemoryRetrievalResult is what long-term memory gave; retrieval is the form of older producers.
type MemoryRetrievalResult struct {
	Common    `turn:"optional"`
	Hits      json.RawMessage `json:"hits,omitempty"`
	Retrieval json.RawMessage `json:"retrieval,omitempty"`
}
