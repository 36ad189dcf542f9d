package idem

import (
	"context"
	"math/rand/v2"
	"time"
)

// Janitor cleans a ledger up: finished records whose retention is over.
type Janitor struct {
	Ledger  Ledger
	Every   time.Duration // pause between rounds, give or take a fifth. 0: DefaultPurgeEvery
	Batch   int           // records a transaction. 0: DefaultPurgeBatch
	Observe func(ctx context.Context, purged int, err error)
}

// Defaults of the janitor.
const (
	DefaultPurgeEvery = 10 * time.Minute
	DefaultPurgeBatch = 1000
)

// Run purges on its schedule until the context ends, whose error it returns. A failed round is observed, and the next one tried.
func (j Janitor) Run(ctx context.Context) error {
	every := j.Every
	if every == 0 {
		every = DefaultPurgeEvery
	}
	for {
		pause := time.NewTimer(every*4/5 + rand.N(every*2/5+1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
		purged, err := j.Purge(ctx)
		if j.Observe != nil {
			j.Observe(ctx, purged, err)
		}
	}
}

// Purge deletes, batch by batch, all finished records whose retention is over, and returns how many.
func (j Janitor) Purge(ctx context.Context) (int, error) {
	batch := j.Batch
	if batch == 0 {
		batch = DefaultPurgeBatch
	}
	for purged := 0; ; {
		n, err := j.Ledger.Purge(ctx, batch)
		purged += n
		if err != nil || n < batch {
			return purged, err
		}
	}
}
