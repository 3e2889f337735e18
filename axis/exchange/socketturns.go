package exchange

// A Side is one end of a socket.
type Side uint8

// The sides of a socket.
const (
	FromProgram Side = iota
	FromServer
)

// The opcodes of messages (RFC 6455, 5.2).
const (
	TextMessage   = 1
	BinaryMessage = 2
)

// A TurnPart says what a message of a socket is to a conversation with a model.
type TurnPart uint8

// The parts of a turn.
const (
	TurnOutside TurnPart = iota // no part of a turn: it stands on the tape by itself
	TurnBegins                  // it begins a turn
	TurnWithin                  // it belongs to one that has begun
	TurnEnds                    // the same, and ends it
	TurnWhole                   // of a server: it begins a turn and ends it
)

// A Turn is what Turns says of one message.
//
// A turn is one call of a model. Its request is what the program's message that began it asks (Request), its answer the server's
// messages of it: they stand in its llm_call alone. What the program sends within one stands on the tape by itself, as what is
// outside does. A turn that has not ended when the socket does is cut there.
type Turn struct {
	Part TurnPart
	// Of tells turns of one socket apart that are under way together, by any number; one may be used again when its turn has ended.
	Of uint64
	// Request, of TurnBegins and TurnWhole, is what the turn would have asked by HTTP: it is classified, its key is what a replay finds
	// the turn by, and its body is what the tape holds, so that who reads a tape needs no other record for it. Its body need not be
	// what was sent, for a message may mean what stood in those before it. It has not been scrubbed.
	Request *Request
	// Refuse makes, of TurnBegins by a program whose turn is on no tape, the text message that says so to it; the socket goes on. Nil
	// closes it.
	Refuse func(message string) []byte
}

// Turns follows the messages of one socket, in the order in which they pass. What it is given is what passed, with its secrets
// while recording, and it keeps none of it: a payload is valid until it returns. It is used by one goroutine at a time.
type Turns interface {
	Client(opcode int, payload []byte) Turn // a message that the program sent
	Server(opcode int, payload []byte) Turn // one that it received
}

// A SocketClassifier is a Classifier that knows conversations with models over sockets.
type SocketClassifier interface {
	Classifier
	// Sockets returns what follows the messages of a socket that was opened by r, scrubbed, whose URL begins with ws:// or wss://;
	// nil where nothing is known of it. It is asked once a socket, in recording and on replay.
	Sockets(r *Request) Turns
	// Rename returns a message with other ids in the place of those that masks take out of it: what to returns for one, which stays
	// where that is "".
	Rename(message []byte, to func(id string) string) []byte
}
