package redisstream

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem/consumer"
)

// entry is one entry of the stream that this process has in hand.
type entry struct {
	id      string
	message consumer.Message
	trimmed bool      // nothing is left of it but the id
	used    int64     // deliveries that count
	due     time.Time // when its rest is over
	last    consumer.Verdict
}

func (r *run) entry(d delivered) *entry {
	e := &entry{id: d.id, used: d.deliveries - 1}
	e.fill(r, d.fields)
	return e
}

// fill makes the entry's message, for its next delivery.
func (e *entry) fill(r *run, fields map[string]string) {
	e.trimmed = len(fields) == 0
	e.message = consumer.Message{}
	if !e.trimmed { // a Decode might make a body of nothing
		e.message = r.decode(e.id, fields)
	}
	if e.message.ID == "" {
		e.message.ID = r.config.Stream + "/" + e.id
	}
	e.message.Source = r.config.Stream
	e.message.Delivery = int(e.used) + 1
}

// decode makes of fields that Decode panics on a message without body: a dead letter, with the fields as headers, instead of the end of one process after another.
func (r *run) decode(id string, fields map[string]string) (m consumer.Message) {
	defer func() {
		if value := recover(); value != nil {
			r.config.Logger.Error("Decode panicked", "stream", r.config.Stream, "entry", id, "panic", value, "stack", string(debug.Stack()))
			m = consumer.Message{Headers: fields}
		}
	}()
	return r.config.Decode(fields)
}

// accept puts an entry in hand. There is room for it: nobody else takes tokens of lives.
func (r *run) accept(ctx context.Context, e *entry) {
	r.lives <- struct{}{}
	r.mu.Lock()
	r.held[e.id] = e
	r.mu.Unlock()
	r.serving.Go(func() {
		defer func() { <-r.lives }()
		if r.serve(ctx, e) {
			r.mu.Lock()
			delete(r.held, e.id)
			r.mu.Unlock()
		}
	})
}

func (r *run) holds(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, held := r.held[id]
	return held
}

// serve goes with an entry from its delivery to the end of its pending. false: ctx ended before; the entry is still in hand.
func (r *run) serve(ctx context.Context, e *entry) bool {
	for {
		verdict, ok := r.handle(ctx, e)
		if !ok {
			return false
		}
		if verdict.Action != consumer.Retry {
			return r.settle(ctx, e, verdict)
		}
		if verdict.Counted {
			e.used++
		}
		e.due, e.last = time.Now().Add(verdict.Delay), verdict
		if !pause(ctx, verdict.Delay) {
			return false
		}
		if mine, ok := r.again(ctx, e); !mine || !ok {
			return ok
		}
	}
}

// handle waits for a free hand and lets the consumer judge. false: ctx ended first.
func (r *run) handle(ctx context.Context, e *entry) (consumer.Verdict, bool) {
	select {
	case r.hands <- struct{}{}:
	case <-ctx.Done():
		return consumer.Verdict{}, false
	}
	defer func() { <-r.hands }()
	if ctx.Err() != nil {
		return consumer.Verdict{}, false
	}
	return r.consumer.Handle(r.work, e.message), true
}

// settleLimit bounds one try to carry out a verdict: it is also what is tried once when Run's context has ended.
const settleLimit = 3 * time.Second

// settle carries out an end, however long Redis is away. false: ctx ended before it could be said.
func (r *run) settle(ctx context.Context, e *entry, v consumer.Verdict) bool {
	for failures := tries(0); ; {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
		err := r.say(bounded, e, v)
		cancel()
		if err == nil {
			return true
		}
		r.config.Logger.WarnContext(ctx, "verdict not carried out", "stream", r.config.Stream, "entry", e.id, "verdict", v.Action.String(), "error", err)
		if !pause(ctx, failures.next(r.config.Reconnect)) {
			return false
		}
	}
}

// say acknowledges the entry; a dead letter is written in the same script, unless nothing is left that could be one.
func (r *run) say(ctx context.Context, e *entry, v consumer.Verdict) error {
	if v.Action == consumer.Ack || e.trimmed {
		return r.ack(ctx, e)
	}
	letter := fields(e.message.Dead(v))
	if len(letter) > mostWords {
		return r.buryLarge(ctx, e, letter)
	}
	args := append([]any{r.config.Group, e.id, r.config.MaxDead}, anys(letter)...)
	return r.scripts.bury.Run(ctx, r.rdb, []string{r.config.Stream, r.config.Dead}, args...).Err()
}

func (r *run) ack(ctx context.Context, e *entry) error {
	return r.rdb.XAck(ctx, r.config.Stream, r.config.Group, e.id).Err()
}

// mostWords is how many a letter may have for Lua, which can hand just below 8,000 to one command.
const mostWords = 7000

// buryLarge takes two commands, the letter first: at worst there are two letters.
func (r *run) buryLarge(ctx context.Context, e *entry, letter []string) error {
	add := &redis.XAddArgs{Stream: r.config.Dead, MaxLen: r.config.MaxDead, Approx: true, Values: letter}
	if err := r.rdb.XAdd(ctx, add).Err(); err != nil {
		return err
	}
	return r.ack(ctx, e)
}

// again delivers a rested entry. mine is false where it has another owner, or none although it is there; ok is false where ctx ended first. What is nowhere else
// any more is handled as it is in memory.
func (r *run) again(ctx context.Context, e *entry) (mine, ok bool) {
	for failures := tries(0); ; {
		reply, err := r.script(ctx, r.scripts.again, e.id, e.used+1).Slice()
		if err == nil && len(reply) == 2 {
			switch reply[0] {
			case "lost":
				return false, true
			case "gone":
				e.message.Delivery = int(e.used) + 1
			default:
				e.fill(r, pairs(reply[1]))
			}
			return true, true
		}
		if !pause(ctx, failures.next(r.config.Reconnect)) {
			return false, false
		}
	}
}
