package redisstream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/consumer"
)

// run is one call of Run: one member of the group.
type run struct {
	Adapter
	consumer *consumer.Consumer

	name    string             // in the group
	work    context.Context    // of the handlers: outlives Run's by the grace
	expire  context.CancelFunc // ends it
	hands   chan struct{}      // a token for each handler that runs
	lives   chan struct{}      // a token for each entry in hand: running, waiting or resting
	serving sync.WaitGroup
	beating sync.WaitGroup
	quiet   context.CancelFunc // ends the heartbeat

	mu   sync.Mutex
	held map[string]*entry

	due time.Time // of the next search for silent processes' entries
}

func newRun(ctx context.Context, a *Adapter, c *consumer.Consumer) *run {
	r := &run{
		Adapter: *a, consumer: c, name: idem.NewOwner(), held: map[string]*entry{},
		hands: make(chan struct{}, a.config.Concurrency), lives: make(chan struct{}, a.config.Concurrency+a.config.Resting),
	}
	r.config = r.config.named(c.Name())
	r.config.Grace = cmp.Or(r.config.Grace, c.Limit())
	r.work, r.expire = context.WithCancel(context.WithoutCancel(ctx))
	return r
}

// begin starts what goes on beside reading: the heartbeat, and the grace that begins when ctx ends.
func (r *run) begin(ctx context.Context) {
	beat, quiet := context.WithCancel(context.WithoutCancel(ctx))
	r.quiet = quiet
	r.beating.Go(func() { r.beat(beat) })
	r.beating.Go(func() {
		select {
		case <-ctx.Done():
			pause(beat, r.config.Grace)
			r.expire()
		case <-beat.Done():
		}
	})
}

// end waits for what is in hand and hands over the rest.
func (r *run) end() {
	r.serving.Wait()
	r.quiet()
	r.beating.Wait()
	r.expire()
	r.leave()
}

// read fetches entries for as long as there is room for them.
func (r *run) read(ctx context.Context) {
	var failures tries
	for {
		room := r.room(ctx)
		if room == 0 {
			return
		}
		entries, err := r.fetch(ctx, room)
		for _, e := range entries {
			r.accept(ctx, e)
		}
		switch {
		case err == nil:
			failures = 0
		case ctx.Err() == nil:
			r.mend(ctx, err, &failures)
		}
	}
}

// room waits until a handler is free and returns how many entries may be fetched; 0: ctx has ended.
func (r *run) room(ctx context.Context) int {
	for _, tokens := range []chan struct{}{r.lives, r.hands} {
		select {
		case tokens <- struct{}{}:
			<-tokens
		case <-ctx.Done():
			return 0
		}
	}
	if ctx.Err() != nil {
		return 0
	}
	free := min(cap(r.hands)-len(r.hands), cap(r.lives)-len(r.lives))
	return max(free, 1)
}

// fetch takes over what is left of silent processes, when it is time to look, and otherwise waits for new entries.
func (r *run) fetch(ctx context.Context, room int) ([]*entry, error) {
	if !time.Now().Before(r.due) {
		taken, err := r.take(ctx, room)
		if err != nil || len(taken) > 0 {
			return taken, err
		}
	}
	streams, err := r.rdb.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: r.config.Group, Consumer: r.name, Streams: []string{r.config.Stream, ">"}, Count: int64(room), Block: r.config.Block,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	var entries []*entry
	for _, stream := range streams {
		for _, message := range stream.Messages {
			entries = append(entries, r.entry(delivered{id: message.ID, deliveries: 1, fields: texts(message.Values)}))
		}
	}
	return entries, err
}

// take searches the pending list, and again after a third of MinIdle where less was found than there is room for.
func (r *run) take(ctx context.Context, room int) ([]*entry, error) {
	reply, err := r.script(ctx, r.scripts.take, r.config.MinIdle.Milliseconds(), room).Slice()
	if err != nil {
		return nil, err
	}
	taken, err := parseTaken(reply)
	if err != nil {
		return nil, err
	}
	if len(taken) < room {
		r.due = time.Now().Add(r.config.MinIdle / 3)
	}
	entries := make([]*entry, 0, len(taken))
	for _, d := range taken {
		if !r.holds(d.id) { // its own heartbeat was late
			entries = append(entries, r.entry(d))
		}
	}
	return entries, nil
}

// mend makes the group again where it is missing, and otherwise waits a little.
func (r *run) mend(ctx context.Context, err error, failures *tries) {
	if missing(err) && !r.config.NoDeclare {
		if err = r.declare(ctx); err == nil {
			r.config.Logger.InfoContext(ctx, "consumer group made again", "stream", r.config.Stream, "group", r.config.Group)
			return
		}
	}
	r.config.Logger.WarnContext(ctx, "stream not read", "stream", r.config.Stream, "group", r.config.Group, "error", err)
	pause(ctx, failures.next(r.config.Reconnect))
}

// firstPause is the first of the growing pauses while Redis is away.
const firstPause = 20 * time.Millisecond

// tries counts failures in a row.
type tries int

func (t *tries) next(most time.Duration) time.Duration {
	*t++
	return min(firstPause<<min(int(*t)-1, 20), most)
}

// pause waits and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
