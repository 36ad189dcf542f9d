package consumer

import (
	"maps"
	"strconv"
)

// Headers that a dead letter has beside its own. They stay when it is put back, and the consumer counts its attempts from HeaderAttempt on.
const (
	HeaderError    = "Idempotent-Error"    // why the last attempt failed
	HeaderAttempt  = "Idempotent-Attempt"  // the ledger's count when the message was given up
	HeaderConsumer = "Idempotent-Consumer" // the name of the consumer that gave up
	HeaderSource   = "Idempotent-Source"   // the stream or queue that it came from
	HeaderID       = "Idempotent-Id"       // the message's id, where the broker gives the dead letter one of its own
)

// Message is one delivery.
type Message struct {
	ID      string            // the broker's or the producer's id; may be empty, and need not be unique: see KeyFunc
	Body    []byte            // never written to. Empty: there is nothing to handle, see ErrNoBody
	Headers map[string]string // as the producer set them; nil: none
	// Delivery counts how often the broker has handed out this message, this time included: 1 is the first. 0: it does not say. Deliveries that ended in an
	// uncounted Retry are left out where the broker can be told so. SameTx alone needs it, see there.
	Delivery int
	Source   string // the stream or queue, for people
}

// Dead returns the message as it goes to the dead letters: with the verdict in its headers. The message itself is not changed.
func (m Message) Dead(v Verdict) Message {
	headers := make(map[string]string, len(m.Headers)+5)
	maps.Copy(headers, m.Headers)
	headers[HeaderConsumer] = v.Consumer
	headers[HeaderAttempt] = strconv.Itoa(v.Attempt)
	if v.Err != nil {
		headers[HeaderError] = oneLine(v.Err.Error())
	}
	if m.Source != "" {
		headers[HeaderSource] = m.Source
	}
	if m.ID != "" {
		headers[HeaderID] = m.ID
	}
	m.Headers = headers
	return m
}

// spent is the number of attempts that a dead letter had before it was put back, of those known to the ledger: a header that says more is forged, or older than
// the record. Another consumer's are not counted.
func (m Message) spent(name string, known int) int {
	if m.Headers[HeaderConsumer] != name {
		return 0
	}
	n, err := strconv.Atoi(m.Headers[HeaderAttempt])
	if err != nil || n < 0 || n > known {
		return 0
	}
	return n
}
