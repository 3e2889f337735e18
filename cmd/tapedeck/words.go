package main

// typedFor are words that people type who come from other tools, and what does that here.
var typedFor = map[string][]string{
	"view": {"show"}, "ui": {"show"}, "inspect": {"show"}, "cat": {"show"}, "open": {"show"}, "dump": {"show"}, "trace": {"show"},
	"timeline": {"show"}, "watch": {"show --follow"}, "tail": {"show --follow"}, "cost": {"show", "compare"}, "usage": {"show", "compare"},
	"log": {"list"}, "logs": {"list"}, "history": {"list"}, "recordings": {"list"},
	"run": {"record"}, "exec": {"record"}, "capture": {"record"}, "start": {"record"}, "rec": {"record"},
	"play": {"replay", "cassette play"}, "playback": {"replay"}, "rerun": {"replay", "rerecord"}, "repeat": {"replay", "fork --times"},
	"branch": {"fork"}, "resume": {"fork"}, "rewind": {"fork"}, "edit": {"fork --edit"},
	"benchmark": {"compare"}, "bench": {"compare"}, "eval": {"compare --verify"}, "stats": {"compare"}, "versus": {"compare"},
	"check": {"test", "verify"}, "ci": {"test"}, "gate": {"test"}, "validate": {"verify"}, "fsck": {"verify"},
	"approve": {"accept"}, "update": {"accept", "rerecord"}, "bless": {"accept"},
	"remove": {"rm"}, "delete": {"rm"}, "del": {"rm"}, "prune": {"gc"}, "clean": {"gc"},
	"undo": {"apply --reverse"}, "revert": {"apply --reverse"}, "rollback": {"apply --reverse"}, "checkout": {"restore"},
	"export": {"session export", "pack", "cassette export"}, "import": {"session import", "unpack", "cassette import"},
	"zip": {"pack"}, "archive": {"pack"}, "share": {"pack"}, "unzip": {"unpack"}, "sign": {"seal"},
	"daemon": {"serve"}, "server": {"serve"}, "agents": {"runs"}, "note": {"annotate"}, "comment": {"annotate"},
	"init": {"quickstart"}, "demo": {"quickstart"}, "tutorial": {"quickstart"}, "setup": {"doctor"}, "doc": {"man"}, "docs": {"man"},
}
