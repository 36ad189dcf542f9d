package redisstream

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

// The fields of an entry that are no headers.
const (
	FieldID   = "id"
	FieldBody = "body"
)

// Fields is an entry as this package reads it, in pairs of name and value for XADD: id, body, then the headers by name. Where the message has no id it gets a random
// one. idem.ErrInvalid where a header has the name of one of the other two.
func Fields(m consumer.Message) ([]string, error) {
	for name := range m.Headers {
		if reserved(name) {
			return nil, fmt.Errorf("%w: redisstream: a header cannot be named %q", idem.ErrInvalid, name)
		}
	}
	if m.ID == "" {
		m.ID = idem.NewOwner()
	}
	return fields(m), nil
}

func reserved(name string) bool { return name == FieldID || name == FieldBody }

// fields gives headers with reserved names, which a Decode of the user's may have read, another one.
func fields(m consumer.Message) []string {
	list := []string{FieldID, m.ID, FieldBody, string(m.Body)}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		field := name
		if reserved(name) {
			field = "header-" + name
		}
		list = append(list, field, m.Headers[name])
	}
	return list
}

// Publish adds a message to the stream and returns the entry's id. go-redis repeats a command whose reply was lost, so there may be two entries: they have the same
// message id, and a consumer handles one.
func Publish(ctx context.Context, rdb redis.Cmdable, stream string, m consumer.Message) (string, error) {
	values, err := Fields(m)
	if err != nil {
		return "", err
	}
	return rdb.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: values}).Result()
}

// Letter is one dead letter.
type Letter struct {
	Entry   string // its id in the stream of dead letters
	Message consumer.Message
}

// Dead returns up to count dead letters of the consumer of this name, the oldest first. To have one tried again Publish its message, headers and all, and then XDEL
// its entry.
func (a *Adapter) Dead(ctx context.Context, name string, count int64) ([]Letter, error) {
	entries, err := a.rdb.XRangeN(ctx, a.config.named(name).Dead, "-", "+", count).Result()
	if err != nil {
		return nil, err
	}
	letters := make([]Letter, 0, len(entries))
	for _, entry := range entries {
		letters = append(letters, Letter{Entry: entry.ID, Message: decode(texts(entry.Values))})
	}
	return letters, nil
}

func decode(fields map[string]string) consumer.Message {
	m := consumer.Message{ID: fields[FieldID], Body: []byte(fields[FieldBody]), Headers: make(map[string]string, len(fields))}
	for name, value := range fields {
		if !reserved(name) {
			m.Headers[name] = value
		}
	}
	return m
}
