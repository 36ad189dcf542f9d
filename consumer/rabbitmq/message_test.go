package rabbitmq

import (
	"errors"
	"maps"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idemkit/idem/consumer"
)

func TestDeliveries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		redelivered bool
		headers     amqp.Table
		want        int
	}{
		"first":                                   {want: 1},
		"second, quorum queue":                    {redelivered: true, headers: amqp.Table{"x-delivery-count": int64(1)}, want: 2},
		"seventh, quorum queue":                   {redelivered: true, headers: amqp.Table{"x-delivery-count": int64(6)}, want: 7},
		"again, classic queue":                    {redelivered: true, want: 2},
		"again, and the count says nothing":       {redelivered: true, headers: amqp.Table{"x-delivery-count": int64(0)}, want: 2},
		"first here, count from another queue":    {headers: amqp.Table{"x-delivery-count": int64(9)}, want: 1},
		"after a rest":                            {headers: amqp.Table{HeaderDelivery: int64(2)}, want: 3},
		"again after a rest":                      {redelivered: true, headers: amqp.Table{HeaderDelivery: int64(2), "x-delivery-count": int64(3)}, want: 6},
		"a producer's nonsense":                   {headers: amqp.Table{HeaderDelivery: "many"}, want: 1},
		"a producer's negative":                   {headers: amqp.Table{HeaderDelivery: int64(-7)}, want: 1},
		"a producer's table":                      {headers: amqp.Table{HeaderDelivery: amqp.Table{}}, want: 1},
		"a number in another type":                {headers: amqp.Table{HeaderDelivery: int32(2)}, want: 3},
		"a number that would not fit an addition": {headers: amqp.Table{HeaderDelivery: int64(1) << 62}, want: maxCount + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := deliveries(amqp.Delivery{Redelivered: c.redelivered, Headers: c.headers}); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// delivery has every property and a header of many types.
func delivery() amqp.Delivery {
	return amqp.Delivery{
		Headers: amqp.Table{
			"text": "köln", "bytes": []byte("raw"), "number": int32(-7), "real": 1.5, "yes": true, "none": nil,
			"when": time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC), "table": amqp.Table{"a": int64(1)}, "array": []any{"a"}, "money": amqp.Decimal{Scale: 2, Value: 100},
			"x-death": []any{amqp.Table{"queue": "points.retry.1s"}}, "x-delivery-count": int64(3), "CC": []any{"elsewhere"}, "BCC": []any{"there"},
			HeaderDelivery: int64(4), HeaderAttempt: int64(4), HeaderError: "earlier",
		},
		ContentType: "application/json", ContentEncoding: "gzip", DeliveryMode: amqp.Transient, Priority: 3, CorrelationId: "c", ReplyTo: "r",
		Expiration: "60000", MessageId: "order-1", Timestamp: time.Unix(1_800_000_000, 0), Type: "order.created", UserId: "shop", AppId: "app",
		Body: []byte("body"), Redelivered: true,
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	m := message("points", delivery())
	want := map[string]string{
		"text": "köln", "bytes": "raw", "number": "-7", "real": "1.5", "yes": "true", "when": "2026-12-01T08:00:00Z",
	}
	if !maps.Equal(m.Headers, want) {
		t.Errorf("headers %v, want %v", m.Headers, want)
	}
	if m.ID != "order-1" || string(m.Body) != "body" || m.Source != "points" || m.Delivery != 8 {
		t.Errorf("message %+v", m)
	}
	if m := message("points", amqp.Delivery{}); m.Headers != nil || m.ID != "" || m.Delivery != 1 {
		t.Errorf("message of nothing %+v", m)
	}
}

func TestCopies(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	failed := consumer.Verdict{Action: consumer.Retry, Attempt: 5, Counted: true, Err: broken, Consumer: "points"}
	refused := failed
	refused.Counted = false
	d := delivery()
	m := message("points", d)
	for name, c := range map[string]struct {
		copy       amqp.Publishing
		expiration string
		headers    amqp.Table // beside the producer's
	}{
		"resting after an attempt": {
			resting(d, m, failed, 1500*time.Millisecond), "1500",
			amqp.Table{HeaderDelivery: int64(8), HeaderAttempt: int64(5), HeaderError: "broken"},
		},
		"resting, and nothing counted": {
			resting(d, m, refused, time.Millisecond), "1",
			amqp.Table{HeaderDelivery: int64(7), HeaderAttempt: int64(5), HeaderError: "broken"},
		},
		"dead": {
			dead(d, m, failed), "",
			amqp.Table{
				consumer.HeaderError: "broken", consumer.HeaderAttempt: "5", consumer.HeaderConsumer: "points",
				consumer.HeaderSource: "points", consumer.HeaderID: "order-1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkProperties(t, d, c.copy)
			if c.copy.Expiration != c.expiration {
				t.Errorf("expiration %q, want %q", c.copy.Expiration, c.expiration)
			}
			for header, value := range c.headers {
				if c.copy.Headers[header] != value {
					t.Errorf("header %s is %#v, want %#v", header, c.copy.Headers[header], value)
				}
			}
			if kept := len(c.copy.Headers) - len(c.headers); kept != 11 {
				t.Errorf("%d headers of the producer's are kept, want 11: %v", kept, c.copy.Headers)
			}
			if err := c.copy.Headers.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
	if d.Headers[HeaderDelivery] != int64(4) || d.Headers["CC"] == nil {
		t.Error("the delivery's own headers were changed")
	}
}

func checkProperties(t *testing.T, d amqp.Delivery, p amqp.Publishing) {
	t.Helper()
	for _, header := range []string{"text", "number", "table", "array", "x-death"} {
		if _, kept := p.Headers[header]; !kept {
			t.Errorf("header %s is lost", header)
		}
	}
	for _, header := range []string{"CC", "BCC", "x-delivery-count"} {
		if _, kept := p.Headers[header]; kept {
			t.Errorf("header %s is kept", header)
		}
	}
	if p.DeliveryMode != amqp.Persistent {
		t.Error("not persistent")
	}
	if p.UserId != "" {
		t.Error("the user id would be refused")
	}
	same := p.ContentType == d.ContentType && p.ContentEncoding == d.ContentEncoding && p.Priority == d.Priority && p.CorrelationId == d.CorrelationId &&
		p.ReplyTo == d.ReplyTo && p.MessageId == d.MessageId && p.Timestamp.Equal(d.Timestamp) && p.Type == d.Type && p.AppId == d.AppId && string(p.Body) == string(d.Body)
	if !same {
		t.Errorf("properties %+v", p)
	}
}

// A message that was a dead letter before has a new error now, and what is the same keeps its type.
func TestDeadAgain(t *testing.T) {
	t.Parallel()
	d := amqp.Delivery{MessageId: "order-1", Body: []byte("b"), Headers: amqp.Table{
		consumer.HeaderError: "old", consumer.HeaderAttempt: int64(5), consumer.HeaderConsumer: "points",
	}}
	p := dead(d, message("points", d), consumer.Verdict{Action: consumer.DeadLetter, Attempt: 10, Err: errors.New("new"), Consumer: "points"})
	if p.Headers[consumer.HeaderError] != "new" || p.Headers[consumer.HeaderAttempt] != "10" || p.Headers[consumer.HeaderConsumer] != "points" {
		t.Errorf("headers %v", p.Headers)
	}
}
