package foreign

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tapedeck-dev/tapedeck/internal/jsonscan"
	"github.com/tapedeck-dev/tapedeck/internal/lazyregexp"
	"github.com/tapedeck-dev/tapedeck/sessionlog"
)

// opencode reads the sessions of opencode in each of the three forms that it writes: its database ~/.local/share/opencode/opencode.db
// (from 1.2 on), the files below ~/.local/share/opencode/storage before that, and what "opencode export" prints.
//
// A session is a list of messages, and a message a list of parts. The assistant's parts are cut into answers where a step begins:
// one a message now, several in older versions. A tool's part holds the call and what came of it. A sub-agent's session is one of
// its own: where a database or folder holds several sessions, the one that changed last is read, or that which PATH#SESSION names.
//
// What a command's exit status was stands in its output alone, as the model sees it. A call of a tool that does not exist is
// kept by opencode as one of its own tool "invalid". Titles and summaries are no turns. What the person took back is left out.
type opencode struct{}

func (opencode) Name() string { return "opencode" }

const sqliteMagic = "SQLite format 3\x00"

var (
	opencodeExport  = lazyregexp.New(`^\s*\{\s*"info"\s*:\s*\{\s*"id"\s*:\s*"ses_`)
	opencodeSession = lazyregexp.New(`^\s*\{\s*"id"\s*:\s*"ses_[0-9A-Za-z]+"`)
	opencodeID      = lazyregexp.New(`^(ses|msg|prt)_[0-9A-Za-z]+$`)
)

func (opencode) Looks(path string, head []byte) bool {
	switch {
	case head == nil:
		return isFile(filepath.Join(path, opencodeDB)) || opencodeStorage(path) != ""
	case bytes.HasPrefix(head, []byte(sqliteMagic)):
		return strings.HasPrefix(filepath.Base(path), "opencode")
	}
	return opencodeExport.Match(head) || opencodeSession.Match(head)
}

const opencodeDB = "opencode.db"

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// chosen cuts the session that PATH#SESSION names off a path, unless a file of that whole name is there.
func chosen(path string) (file, session string) {
	at := strings.LastIndexByte(path, '#')
	if at < 0 || !opencodeID.MatchString(path[at+1:]) {
		return path, ""
	}
	if _, err := os.Lstat(path); err == nil {
		return path, ""
	}
	return path[:at], path[at+1:]
}

// Import reads a session out of a database, a folder or a file.
func (opencode) Import(ctx context.Context, path string, emit func(sessionlog.Event) error) (*Report, error) {
	path, session := chosen(path)
	r := newReport("opencode", path)
	o := &opencodeReader{r: r, emit: emit}
	err := o.read(ctx, path, session)
	err = r.ended(o.chat, err)
	if fault, ok := errors.AsType[broken](err); ok {
		err = &Error{Path: r.File, Err: fault.error}
	}
	return r, err
}

// read finds out which of the forms path has.
func (o *opencodeReader) read(ctx context.Context, path, session string) error {
	head, err := headOf(path)
	switch {
	case err != nil:
		return err
	case head == nil && isFile(filepath.Join(path, opencodeDB)):
		o.r.File = filepath.Join(path, opencodeDB)
		return o.database(ctx, o.r.File, session)
	case head == nil:
		if storage := opencodeStorage(path); storage != "" {
			return o.folder(ctx, storage, session)
		}
		return &Error{Path: path, Err: errors.New("expected a folder with opencode.db or storage/session in it")}
	case bytes.HasPrefix(head, []byte(sqliteMagic)):
		return o.database(ctx, path, session)
	case opencodeExport.Match(head):
		return o.export(ctx, path)
	case opencodeSession.Match(head):
		return o.file(ctx, path)
	}
	return &Error{Path: path, Err: errors.New(`expected an SQLite database, a session file, or {"info":…,"messages":[…]}`)}
}

// export reads what opencode export prints: {info, messages: [{info, parts}]}. Memory is one message.
func (o *opencodeReader) export(ctx context.Context, path string) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	s := jsonscan.NewStream(f, MaxLine)
	fail := func(err error) error {
		if fault, ok := errors.AsType[broken](err); ok {
			return &Error{Path: path, Line: s.Line(), Err: fault.error}
		}
		return err
	}
	for s.Begin('{'); s.More('}'); {
		switch key := string(s.Key()); {
		case key == "info":
			if b := s.Raw(); s.Err() == nil {
				err = o.session(b)
			}
		case key == "messages" && s.Peek() == '[':
			for s.Begin('['); s.More(']'); {
				b := s.Raw()
				if s.Err() != nil {
					break
				}
				o.r.Lines++
				if err = errors.Join(ctx.Err(), o.exported(b)); err != nil {
					return fail(err)
				}
			}
		default:
			s.Skip()
		}
		if err != nil {
			return fail(err)
		}
	}
	err = s.End()
	if err != nil && o.r.Lines > 0 && isCut(err) {
		o.r.note("the file is cut off behind message %d: %v", o.r.Lines, err)
		return nil
	}
	if err != nil {
		return &Error{Path: path, Line: s.Line(), Err: err}
	}
	return nil
}

// exported reads one message with its parts.
func (o *opencodeReader) exported(b []byte) error {
	if err := jsonscan.ValidUTF8(b); err != nil {
		return broken{err}
	}
	var s jsonscan.Scanner
	var info, parts []byte
	s.Reset(b)
	for s.Begin('{'); s.More('}'); {
		switch string(s.Key()) {
		case "info":
			info = s.Raw()
		case "parts":
			parts = s.Raw()
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		return broken{err}
	}
	more, err := o.message(info)
	if err != nil || !more {
		return err
	}
	if parts != nil && parts[0] == '[' {
		s.Reset(parts)
		for s.Begin('['); s.More(']'); {
			if err := o.part(s.Raw()); err != nil {
				return err
			}
		}
	}
	return o.messageEnd()
}
