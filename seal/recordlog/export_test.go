package recordlog

// Encode is the bytes of an entry in the log.
func Encode(e *Entry) ([]byte, error) { return e.encode() }
