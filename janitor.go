package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"
)

// Janitor looks after a ledger, and after the entrance in front of it: what outlived its lease is recovered, what failed is compensated, what is past
// its retention is deleted, and what the two say differently is repaired. Only business types that are named here are recovered, compensated or
// given up: other processes have their own.
type Janitor struct {
	Ledger Ledger
	Store  TokenStore // is compared with the ledger. Nil: there is none

	// Resolvers say what became of a claim of their business type that outlived its lease. A panic counts as an error. Parts of the claim's key that do not
	// fit a column come as Column replaced them; OutboundKey is the attempt's all the same.
	Resolvers map[string]Resolver
	// Compensations are run for records of their business type that have failed and been quiet for CompensateAfter: they find the recorded attempt,
	// plus one, with FromContext, and end in Succeeded, Cancelled, or Failed, to be called again. A panic counts as Failed. One that dies with its process leaves
	// a claim, which a Resolver of the same type makes Failed again; without one it waits for the next duplicate.
	Compensations map[string]Work
	// Retentions are how long records of a business type are kept from their end on, where it is not DefaultRetention.
	Retentions map[string]time.Duration
	// Abandoned are this process's business types without a resolver: their claims are purged when lease and retention are over.
	Abandoned []string

	Every           time.Duration // pause between rounds, give or take a fifth. 0 or less: DefaultPurgeEvery
	Batch           int           // records a transaction. 0 or less: DefaultPurgeBatch
	CompensateAfter time.Duration // 0: DefaultCompensateAfter
	Observe         func(ctx context.Context, done Tidied, err error)
}

// Tidied counts what a round did.
type Tidied struct {
	Recovered   int // claims that outlived their lease, and whose outcome is known now
	Compensated int // failed records that a compensation ended
	Purged      int // records past their retention
	Repaired    int // entrance records that did not know of the ledger's success
	Removed     int // entrance records of a success that the ledger does not know
}

// Defaults of the janitor.
const (
	DefaultPurgeEvery      = 10 * time.Minute
	DefaultPurgeBatch      = 1000
	DefaultCompensateAfter = time.Minute
)

// roundLease bounds how long a round that died keeps the others from theirs; stepLimit how long one of the round's four steps, behind a resolver that
// hangs say, keeps the others waiting.
const (
	roundLease = time.Minute
	stepLimit  = 15 * time.Minute
)

// Run does a round on its schedule until the context ends, whose error it returns. A failed round is observed, and the next one tried. Of all the
// processes on one ledger one at a time does a round.
func (j Janitor) Run(ctx context.Context) error {
	every := cmp.Or(max(j.Every, 0), DefaultPurgeEvery)
	for {
		pause := time.NewTimer(every*4/5 + rand.N(every*2/5+1))
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-pause.C:
		}
		done, err := j.Round(ctx)
		if j.Observe != nil && !errors.Is(err, ErrInProgress) {
			j.Observe(ctx, done, err)
		}
	}
}

// Round recovers, compensates, purges and reconciles once. What fails is joined, and the rest done nevertheless. ErrInProgress: another process is at it. The
// rounds of all processes are kept apart by a claim in the ledger itself, which needs neither a session lock nor a connection held.
func (j Janitor) Round(ctx context.Context) (Tidied, error) {
	locked, held, err := TryLock(ctx, j.Ledger, K("idem.janitor", "round"), LockOptions{Lease: roundLease, Longest: 5 * stepLimit})
	if err != nil {
		return Tidied{}, err
	}
	defer func() { _ = held.Release(ctx) }()
	var done Tidied
	var errs []error
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) (err error) { done.Recovered, err = j.Recover(ctx); return err },
		func(ctx context.Context) (err error) { done.Compensated, err = j.Compensate(ctx); return err },
		func(ctx context.Context) (err error) { done.Purged, err = j.Purge(ctx); return err },
		func(ctx context.Context) (err error) { done.Repaired, done.Removed, err = j.Reconcile(ctx); return err },
	} {
		bounded, cancel := context.WithTimeout(locked, stepLimit)
		errs = append(errs, step(bounded))
		cancel()
	}
	return done, errors.Join(errs...)
}

// Purge deletes, batch by batch, all records whose retention is over, and returns how many.
func (j Janitor) Purge(ctx context.Context) (int, error) {
	batch := j.batch()
	for purged := 0; ; {
		n, err := j.Ledger.Purge(ctx, j.Abandoned, batch)
		purged += n
		if err != nil || n < batch {
			return purged, err
		}
	}
}

// Recover asks the resolvers about claims that outlived their lease, under the next attempt, and returns how many outcomes are known now.
// One whose resolver cannot say stays as it is.
func (j Janitor) Recover(ctx context.Context) (int, error) {
	return j.each(ctx, Query{State: Processing, Types: slices.Sorted(maps.Keys(j.Resolvers))}, func(call Call, businessType string) (Call, Work) {
		call.Resolve = j.Resolvers[businessType]
		return call, func(context.Context) Ending { return Ending{State: Failed, Reason: "not done, says the resolver"} }
	})
}

// Compensate runs the compensations of failed records, under the next attempt, and returns how many are ended.
func (j Janitor) Compensate(ctx context.Context) (int, error) {
	q := Query{State: Failed, Types: slices.Sorted(maps.Keys(j.Compensations)), Quiet: cmp.Or(j.CompensateAfter, DefaultCompensateAfter)}
	return j.each(ctx, q, func(call Call, businessType string) (Call, Work) { return call, j.Compensations[businessType] })
}

// each claims what the query finds, and counts the endings. One batch a round: a record that cannot be ended must not be found again and again.
func (j Janitor) each(ctx context.Context, q Query, prepare func(call Call, businessType string) (Call, Work)) (int, error) {
	if len(q.Types) == 0 {
		return 0, nil
	}
	q.Limit = j.batch()
	found, err := j.Ledger.Find(ctx, q)
	if err != nil {
		return 0, err
	}
	engine, err := NewEngine(EngineConfig{Ledger: j.Ledger})
	if err != nil {
		return 0, err
	}
	names := map[string]string{} // a ledger gives back what its column has
	for _, businessType := range q.Types {
		names[Column(businessType)] = businessType
	}
	ended := 0
	var errs []error
	for _, record := range found {
		if ctx.Err() != nil {
			return ended, errors.Join(append(errs, ctx.Err())...)
		}
		businessType := names[Column(record.Key.Type)]
		call, work := prepare(j.call(record, businessType), businessType)
		reply, err := survive(ctx, engine, call, work)
		switch {
		case err != nil && !errors.Is(err, ErrCancelled) && !errors.Is(err, ErrAlreadyDone) && !errors.Is(err, ErrInProgress):
			errs = append(errs, err)
		case reply.Attempt == 0: // somebody else was quicker
		case q.State == Processing, reply.State == Succeeded, reply.State == Cancelled:
			ended++
		}
	}
	return ended, errors.Join(errs...)
}

// survive makes an error of a panic, which the engine has released the claim for: one record must not keep a process from running.
func survive(ctx context.Context, engine *Engine, call Call, work Work) (reply Reply, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("idem: looking after a record of %q panicked: %v\n%s", call.Key.Type, value, debug.Stack())
		}
	}()
	return engine.Do(ctx, call, work)
}

// call asks for the record's own claim, as its own subject.
func (j Janitor) call(r Record, businessType string) Call {
	return Call{
		Request: Request{
			Key: r.Key, Subject: r.Subject, RequestID: r.RequestID, Lease: DefaultLease,
			Retention: max(cmp.Or(j.Retentions[businessType], DefaultRetention), DefaultLease),
		},
		Limit: DefaultLimit,
	}
}

func (j Janitor) batch() int {
	if j.Batch < 1 {
		return DefaultPurgeBatch
	}
	return j.Batch
}
