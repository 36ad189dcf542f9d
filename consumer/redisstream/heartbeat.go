package redisstream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/idemkit/idem/consumer"
)

// batch bounds the ids of one script, which holds up all of Redis while it runs.
const batch = 500

// forgotten is how many MinIdle the name of a silent process stays in the group, where nothing is pending under it.
const forgotten = 100

// beat speaks for all entries in hand, each third of MinIdle, until ctx ends. First it removes the names that killed processes left.
func (r *run) beat(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, settleLimit)
	_, _ = r.leaving(bounded, nil) // Redis may be away, and the next one to begin does it
	cancel()
	for every := r.config.MinIdle / 3; pause(ctx, every); {
		r.mu.Lock()
		ids := slices.Collect(maps.Keys(r.held))
		r.mu.Unlock()
		for part := range slices.Chunk(ids, batch) {
			bounded, cancel := context.WithTimeout(ctx, every)
			err := r.script(bounded, r.scripts.beat, anys(part)...).Err()
			cancel()
			if err != nil && ctx.Err() == nil && !missing(err) {
				r.config.Logger.WarnContext(ctx, "heartbeat failed", "stream", r.config.Stream, "group", r.config.Group, "error", err)
			}
		}
	}
}

// leave hands over what this process could not end, and takes its name from the group. Where Redis is away the others find out by its silence.
func (r *run) leave() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.work), settleLimit)
	defer cancel()
	entries := slices.Collect(maps.Values(r.held))
	for len(entries) > batch {
		r.handOver(ctx, entries[:batch])
		entries = entries[batch:]
	}
	r.handOver(ctx, entries)
}

func (r *run) handOver(ctx context.Context, entries []*entry) {
	var args []any
	for _, e := range entries {
		silence := max(r.config.MinIdle-max(time.Until(e.due), 0), 0)
		args = append(args, e.id, e.used, silence.Milliseconds())
	}
	gone, err := r.leaving(ctx, args)
	for _, id := range gone {
		if e := r.held[id]; !e.trimmed {
			err = errors.Join(err, r.say(ctx, e, r.abandoned(e)))
		}
	}
	if err != nil && !missing(err) {
		r.config.Logger.WarnContext(ctx, "entries not handed over", "stream", r.config.Stream, "group", r.config.Group, "entries", len(entries), "error", err)
	}
}

var errAbandoned = errors.New("redisstream: its entry was trimmed, and the process that still had it ended")

// abandoned is the verdict on an entry that is nowhere but here.
func (r *run) abandoned(e *entry) consumer.Verdict {
	return consumer.Verdict{Action: consumer.DeadLetter, Consumer: r.consumer.Name(), Attempt: e.last.Attempt, Err: errors.Join(errAbandoned, e.last.Err)}
}

func (r *run) leaving(ctx context.Context, entries []any) (gone []string, err error) {
	args := append([]any{(forgotten * r.config.MinIdle).Milliseconds()}, entries...)
	return r.script(ctx, r.scripts.leave, args...).StringSlice()
}

func anys(texts []string) []any {
	args := make([]any, len(texts))
	for i, text := range texts {
		args[i] = text
	}
	return args
}
