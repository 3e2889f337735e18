package sessionlog

import "encoding/json"

// LargeResultSpooled says that a result was too large for the context, in bytes, and where it lies.
type LargeResultSpooled struct {
	Common
	CallID       string
	Tool         string
	OriginalSize int64
	PreviewSize  int64
	SpoolRef     string
}

// Kind implements Event.
func (*LargeResultSpooled) Kind() Kind { return KindLargeResultSpooled }

func (e *LargeResultSpooled) fields(c *codec) {
	e.begin(c, required)
	c.text("call_id", &e.CallID, required)
	c.text("tool", &e.Tool, required)
	number(c, "original_size", &e.OriginalSize, required)
	number(c, "preview_size", &e.PreviewSize, required)
	c.text("spool_ref", &e.SpoolRef, optional)
	e.end(c)
}

// Compressed says that a range of the log left the context.
type Compressed struct {
	Common
	ArchivedSeqRange []uint64 // [from, to]
	Action           string
	Summary          string
	SummaryTokens    int64
	PreservedRefs    []string
}

// Kind implements Event.
func (*Compressed) Kind() Kind { return KindCompressed }

func (e *Compressed) fields(c *codec) {
	e.begin(c, required)
	list(c, "archived_seq_range", &e.ArchivedSeqRange, required, func() uint64 { return c.s.Uint() }, func(n *uint64) { c.buf = appendNumber(c.buf, *n) })
	c.text("action", &e.Action, optional)
	c.text("summary", &e.Summary, optional)
	number(c, "summary_tokens", &e.SummaryTokens, optional)
	c.texts("preserved_refs", &e.PreservedRefs, required)
	e.end(c)
}

// PageOut says that messages left the context for long-term storage.
type PageOut struct {
	Common
	Action       string
	Summary      string
	TierHint     string
	MessageCount int64
	ArchiveRef   string
}

// Kind implements Event.
func (*PageOut) Kind() Kind { return KindPageOut }

func (e *PageOut) fields(c *codec) {
	e.begin(c, required)
	c.text("action", &e.Action, optional)
	c.text("summary", &e.Summary, optional)
	c.text("tier_hint", &e.TierHint, optional)
	number(c, "message_count", &e.MessageCount, required)
	c.text("archive_ref", &e.ArchiveRef, optional)
	e.end(c)
}

// PageIn says that entries came back from there.
type PageIn struct {
	Common
	EntryCount int64
}

// Kind implements Event.
func (*PageIn) Kind() Kind { return KindPageIn }

func (e *PageIn) fields(c *codec) {
	e.begin(c, required)
	number(c, "entry_count", &e.EntryCount, required)
	e.end(c)
}

// ContextRenewed says that the context began anew, with what was handed over.
type ContextRenewed struct {
	Common
	Sprint     int64
	HandoffRef string
}

// Kind implements Event.
func (*ContextRenewed) Kind() Kind { return KindContextRenewed }

func (e *ContextRenewed) fields(c *codec) {
	e.begin(c, required)
	number(c, "sprint", &e.Sprint, required)
	c.text("handoff_ref", &e.HandoffRef, required)
	e.end(c)
}

// MemoryWritten says that an entry was put into long-term memory. Older producers call the record memory_id.
type MemoryWritten struct {
	Common
	RecordID   string
	MemoryID   string
	Scope      json.RawMessage
	MemoryKind string
	Name       string
	SizeBytes  int64
}

// Kind implements Event.
func (*MemoryWritten) Kind() Kind { return KindMemoryWritten }

func (e *MemoryWritten) fields(c *codec) {
	e.begin(c, required)
	c.text("record_id", &e.RecordID, optional)
	c.text("memory_id", &e.MemoryID, optional)
	c.json("scope", &e.Scope, optional)
	c.text("memory_kind", &e.MemoryKind, optional)
	c.text("name", &e.Name, optional)
	number(c, "size_bytes", &e.SizeBytes, optional)
	e.end(c)
}

// MemoryQueried says that long-term memory was asked. Older producers call the query query_context.
type MemoryQueried struct {
	Common
	Scope                 json.RawMessage
	Query                 string
	QueryContext          string
	RequestedK            int64
	RequiresAsyncResponse bool
}

// Kind implements Event.
func (*MemoryQueried) Kind() Kind { return KindMemoryQueried }

func (e *MemoryQueried) fields(c *codec) {
	e.begin(c, required)
	c.json("scope", &e.Scope, optional)
	c.text("query", &e.Query, optional)
	c.text("query_context", &e.QueryContext, optional)
	number(c, "requested_k", &e.RequestedK, optional)
	c.yes("requires_async_response", &e.RequiresAsyncResponse, optional)
	e.end(c)
}

// MemoryValidationFailed says that an entry was refused.
type MemoryValidationFailed struct {
	Common
	RecordID string
	MemoryID string
	Error    string
}

// Kind implements Event.
func (*MemoryValidationFailed) Kind() Kind { return KindMemoryValidationFailed }

func (e *MemoryValidationFailed) fields(c *codec) {
	e.begin(c, required)
	c.text("record_id", &e.RecordID, optional)
	c.text("memory_id", &e.MemoryID, optional)
	c.text("error", &e.Error, optional)
	e.end(c)
}

// MemoryRetrievalResult is what long-term memory gave; retrieval is the form of older producers.
type MemoryRetrievalResult struct {
	Common
	Hits      json.RawMessage
	Retrieval json.RawMessage
}

// Kind implements Event.
func (*MemoryRetrievalResult) Kind() Kind { return KindMemoryRetrievalResult }

func (e *MemoryRetrievalResult) fields(c *codec) {
	e.begin(c, optional)
	c.json("hits", &e.Hits, optional)
	c.json("retrieval", &e.Retrieval, optional)
	e.end(c)
}
