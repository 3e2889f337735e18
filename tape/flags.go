package tape

// Further keys of a process_spawn, each true where it stands.
const (
	// ForkedKey is that of a process which has executed nothing, or of a thread: it is what its parent is.
	ForkedKey = "forked"
	// LeftKey is that of a process which lived when the program had ended, and was killed then.
	LeftKey = "left"
	// AgainKey is that of a process which lives on as another program, by an execve of its own: its exit is not known.
	AgainKey = "again"
	// OwnTicksKey is that of a process whose monotonic clock is the kernel's on a replay too: of a runtime that reads it all the time. In which
	// order its timers come is chance.
	OwnTicksKey = "own_ticks"
)

// CutKeys are those of a process whose stdin, stdout or stderr is not whole on its record: who read it left, its writer was killed, or it was
// too long. How much there is of it is chance.
var CutKeys = [3]string{"stdin_cut", "stdout_cut", "stderr_cut"}

// PlaceKey is the further key that has the recorder's ordinal of when something began: of an http_exchange and an llm_call, its request;
// of a process_spawn, the process.
const PlaceKey = "at"

// FlagFields are those of names for which it is true.
func FlagFields(names map[string]bool) (out []Field) {
	for _, name := range append([]string{ForkedKey, LeftKey, AgainKey, OwnTicksKey}, CutKeys[:]...) {
		if names[name] {
			out = append(out, Field{Name: name, Value: []byte("true")})
		}
	}
	return out
}

// HasFlag reports whether a record has this key, and it is true.
func HasFlag(k Kind, name string) bool {
	extra := Extras(k)
	return extra != nil && string(FieldValue(*extra, name)) == "true"
}
