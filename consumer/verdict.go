package consumer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/idemkit/idem"
)

// Action is what the broker is to do with a message.
type Action int

// The actions.
const (
	Ack        Action = iota + 1 // acknowledge it: it is done
	Retry                        // deliver it again after the verdict's delay
	DeadLetter                   // keep it for a person, as Message.Dead gives it, and then acknowledge it
)

// String is the action's name in lower case.
func (a Action) String() string {
	switch a {
	case Ack:
		return "ack"
	case Retry:
		return "retry"
	case DeadLetter:
		return "dead letter"
	}
	return fmt.Sprintf("action(%d)", int(a))
}

// Verdict is what is to become of a delivery. An adapter carries it out; one that cannot leaves the message unacknowledged, so that it comes again.
type Verdict struct {
	Action   Action
	Delay    time.Duration // with Retry: how long the message is to rest
	Attempt  int           // the ledger's count of the attempt that ran or was refused; 0: none was claimed
	Counted  bool          // an attempt was used up. A Retry that is not counted may come any number of times
	Replayed bool          // with Ack: it was done before, and the handler did not run
	Err      error         // why it was not acknowledged, or was without being handled; nil otherwise
	Consumer string        // the name of the consumer
}

// What a verdict's error may be, to be compared with errors.Is. The others are the handler's own and those of idem.Engine.
var (
	// ErrNoBody says that the message has no body: it was trimmed, or published so. It is a dead letter at once.
	ErrNoBody = errors.New("consumer: the message has no body")
	// ErrNoKey says that the message cannot be told from others: it has no id and there is no KeyFunc, or that gave none. It is a dead letter at once: a guessed key,
	// such as a digest of the body, would swallow the second of two equal messages that are both meant.
	ErrNoKey = errors.New("consumer: the message has no key; give it an id, or the consumer a KeyFunc")
	// ErrPermanent, joined to a handler's error, says that no further attempt can help: the message is a dead letter at once.
	ErrPermanent = errors.New("consumer: permanent failure")
	// ErrPanicked says that the handler, the KeyFunc or the resolver panicked; the text has the value.
	ErrPanicked = errors.New("consumer: a panic")
	// ErrExhausted says that no attempt is left: the last one ended without a verdict, as its process was killed or
	// lost its claim, or the message is a dead letter that came again without its headers.
	ErrExhausted = errors.New("consumer: all attempts are used up")
)

// oneLine is idem.Reason on one line: the text goes into headers.
func oneLine(text string) string {
	return idem.Reason(strings.NewReplacer("\r\n", "; ", "\n", "; ").Replace(text))
}
