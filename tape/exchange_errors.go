package tape

// Errors of an Exchange that say what the program did. Whoever compares two tapes must know them.
const (
	// Cancelled is the Error of an exchange that the program itself ended before its answer did.
	Cancelled = "the program ended the request"
	// HeldOn is the Error of a replayed exchange that was recorded as Cancelled and that the program, for all the time it was
	// given, did not end.
	HeldOn = "the program did not end the request, as it had while recording"
)
