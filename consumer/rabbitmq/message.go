package rabbitmq

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem/consumer"
)

// Headers of a resting message. A handler and a dead letter do not have them: the dead letter has the consumer package's own.
const (
	HeaderError    = "x-idem-error"    // why it rests
	HeaderAttempt  = "x-idem-attempt"  // the ledger's count when it was put to rest
	HeaderDelivery = "x-idem-delivery" // counted deliveries before; the broker's own count begins again with each rest

	headerDeliveries = "x-delivery-count" // quorum queues: deliveries before this one
)

// message is the delivery as the consumer sees it. Headers that hold tables or arrays, such as x-death, have no text and are left out.
func message(queue string, d amqp.Delivery) consumer.Message {
	m := consumer.Message{ID: d.MessageId, Body: d.Body, Delivery: deliveries(d), Source: queue}
	for name, value := range d.Headers {
		if own(name) {
			continue
		}
		if text, ok := headerText(value); ok {
			if m.Headers == nil {
				m.Headers = make(map[string]string, len(d.Headers))
			}
			m.Headers[name] = text
		}
	}
	return m
}

func own(name string) bool {
	return name == HeaderError || name == HeaderAttempt || name == HeaderDelivery || name == headerDeliveries
}

func headerText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	case time.Time:
		return v.UTC().Format(time.RFC3339), true
	case nil, amqp.Table, []any, amqp.Decimal:
		return "", false
	}
	return fmt.Sprint(value), true
}

// deliveries counts this one, those that this queue made before, and those before the last rest. A header on a message that this queue
// delivers for the first time came with it, from another queue. A classic queue tells only that there was one before.
func deliveries(d amqp.Delivery) int {
	n := number(d.Headers[HeaderDelivery]) + 1
	if d.Redelivered {
		n += max(number(d.Headers[headerDeliveries]), 1)
	}
	return n
}

// maxCount bounds a count that a header claims.
const maxCount = 1 << 30

func number(value any) int {
	text, _ := headerText(value)
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return min(max(n, 0), maxCount)
}

// resting is the delivery as it goes to a retry level.
func resting(d amqp.Delivery, m consumer.Message, v consumer.Verdict, delay time.Duration) amqp.Publishing {
	p := copied(d)
	p.Expiration = strconv.FormatInt(delay.Milliseconds(), 10)
	counted := m.Delivery
	if !v.Counted {
		counted--
	}
	p.Headers[HeaderDelivery] = int64(counted)
	p.Headers[HeaderAttempt] = int64(v.Attempt)
	if text, failed := m.Dead(v).Headers[consumer.HeaderError]; failed && v.Err != nil {
		p.Headers[HeaderError] = text
	}
	return p
}

// dead is the delivery as it goes to the dead letters: whatever the verdict adds, and the producer's headers with their own types.
func dead(d amqp.Delivery, m consumer.Message, v consumer.Verdict) amqp.Publishing {
	p := copied(d)
	for name, text := range m.Dead(v).Headers {
		if before, had := m.Headers[name]; !had || before != text {
			p.Headers[name] = text
		}
	}
	return p
}

// copied keeps properties and headers, but for what is ours, what the broker counts, and what would send the copy astray: CC is routed to other queues as well, an
// expiration applies to the copy, and a user id that is not the connection's is refused.
func copied(d amqp.Delivery) amqp.Publishing {
	headers := make(amqp.Table, len(d.Headers)+5)
	maps.Copy(headers, d.Headers)
	maps.DeleteFunc(headers, func(name string, _ any) bool {
		return own(name) || strings.EqualFold(name, "CC") || strings.EqualFold(name, "BCC")
	})
	return amqp.Publishing{
		Headers: headers, ContentType: d.ContentType, ContentEncoding: d.ContentEncoding, DeliveryMode: amqp.Persistent, Priority: d.Priority,
		CorrelationId: d.CorrelationId, ReplyTo: d.ReplyTo, MessageId: d.MessageId, Timestamp: d.Timestamp, Type: d.Type, AppId: d.AppId,
		Body: d.Body,
	}
}
