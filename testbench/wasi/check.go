package wasi

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// checkHeader tells apart what people take for modules.
func checkHeader(code []byte) error {
	switch {
	case len(code) >= 8 && binary.LittleEndian.Uint32(code[4:]) == 1 && bytes.HasPrefix(code, []byte("\x00asm")):
		return nil
	case len(code) >= 8 && bytes.HasPrefix(code, []byte("\x00asm\x0d\x00\x01\x00")):
		return &ModuleError{Reason: "want a module for WASI preview 1, got a component (WASI preview 2 or later); " +
			"compile for wasip1: the target wasm32-wasip1 of Rust and clang, GOOS=wasip1 of Go"}
	case bytes.HasPrefix(code, []byte("\x00asm")):
		return &ModuleError{Reason: "want a WebAssembly module of version 1, got another version, or not all of one"}
	}
	return &ModuleError{Reason: fmt.Sprintf("want a WebAssembly module, which begins with \"\\x00asm\", got %.8q", code)}
}

// fits says whether a module that was compiled can run here.
func (e *engine) fits(m wazero.CompiledModule) error {
	var missing []Import
	wants := func(kind string, what interface{ Import() (string, string, bool) }) {
		if module, name, _ := what.Import(); kind != "function" || !e.offers[module][name] {
			missing = append(missing, Import{Module: module, Name: name, Kind: kind})
		}
	}
	for _, f := range m.ImportedFunctions() {
		wants("function", f)
	}
	for _, memory := range m.ImportedMemories() {
		wants("memory", memory)
	}
	exports := m.ExportedFunctions()
	has := func(name string) bool { return exports[name] != nil }
	switch {
	case missing != nil:
		return &ImportError{Missing: missing}
	case has("_initialize") && !has("_start"):
		return &ModuleError{Reason: "want a program, which exports _start, got a library (a reactor), which exports _initialize"}
	case !has("_start"):
		return &ModuleError{Reason: "want a program for WASI preview 1, which exports the function _start; this module does not"}
	case len(m.ExportedMemories()) == 0 && len(m.ImportedFunctions()) > 0:
		return &ModuleError{Reason: "want a memory that the module exports, where the functions that it imports find their arguments; it has none"}
	}
	return nil
}

// memoryOf is how many bytes of memory a module has, 0 where it exports none.
func memoryOf(m wazero.CompiledModule, instance api.Module) uint32 {
	if len(m.ExportedMemories()) == 0 {
		return 0
	}
	return instance.Memory().Size()
}
