package idem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// Defaults of the engine's settings.
const (
	DefaultLease           = 15 * time.Second
	DefaultWait            = 10 * time.Second
	DefaultLimit           = 30 * time.Second
	DefaultRetention       = 720 * time.Hour
	DefaultResultRetention = 24 * time.Hour
)

// OnceOption changes how Once runs.
type OnceOption func(*Call)

// WithLease sets the lease, renewed every third of it while the function runs. Default DefaultLease.
func WithLease(d time.Duration) OnceOption { return func(c *Call) { c.Lease = d } }

// WithWait sets how long a duplicate waits for the first. Default DefaultWait; 0: not at all.
func WithWait(d time.Duration) OnceOption { return func(c *Call) { c.Wait = d } }

// WithLimit bounds the function. Default DefaultLimit.
func WithLimit(d time.Duration) OnceOption { return func(c *Call) { c.Limit = d } }

// WithRetention sets how long key and result are kept after the last change. Default DefaultRetention.
func WithRetention(d time.Duration) OnceOption { return func(c *Call) { c.Retention = d } }

// WithFingerprint binds the key to a payload: another one under the same key is ErrPayloadMismatch.
func WithFingerprint(payload []byte) OnceOption {
	return func(c *Call) { c.Fingerprint = append([]byte{Format}, Digest(string(payload))...) }
}

// WithResolver is asked what became of an earlier attempt before there is another. The Body of what it says to have succeeded is the value as JSON,
// with Kept true.
func WithResolver(r Resolver) OnceOption { return func(c *Call) { c.Resolve = r } }

// InOneTx commits the claim, what fn writes in the ledger's transaction, and the record together, or none of them. A crash or an error then leaves no evidence,
// and the next call is attempt one; it cannot go with WithResolver.
func InOneTx() OnceOption { return func(c *Call) { c.SameTx = true } }

// Once runs fn for the first call of the key and returns its value to every call, as JSON keeps it. The claim is committed before fn starts, so that
// a crash leaves evidence and the next call is attempt two; fn finds its claim with FromContext, and the ledger's
// transaction with its package's Tx, which commits together with the record.
//
// An error of fn ends the claim as failed, is returned to this caller, and lets the next call try again;
// one that is ErrOutcomeUnknown leaves it processing. Once returns the errors of Engine.Do otherwise. A call waits for another process only as long as its options say.
func Once[T any](ctx context.Context, ledger Ledger, key Key, fn func(context.Context) (T, error), options ...OnceOption) (T, error) {
	var value T
	engine, err := NewEngine(EngineConfig{Ledger: ledger})
	if err != nil {
		return value, err
	}
	call := Call{
		Request: Request{Key: key, Lease: DefaultLease, Retention: DefaultRetention},
		Wait:    DefaultWait, Limit: DefaultLimit,
	}
	for _, option := range options {
		option(&call)
	}
	var failure error
	reply, err := engine.Do(ctx, call, func(ctx context.Context) Ending {
		var ending Ending
		value, ending, failure = ended(fn(ctx))
		return ending
	})
	switch {
	case err != nil:
		var none T
		return none, err
	case failure != nil || !reply.Replayed:
		return value, failure
	}
	return kept[T](key, reply.Result.Body)
}

// kept is the value of an earlier call, whose T may have been another. The id is no error's to show.
func kept[T any](key Key, body []byte) (T, error) {
	var value T
	if err := json.Unmarshal(body, &value); err != nil {
		var none T
		return none, fmt.Errorf("idem: the kept result of %q does not fit %s: %w", key.Type, reflect.TypeFor[T](), err)
	}
	return value, nil
}

// ended turns what fn returned into the ending of its claim. A value that JSON cannot hold could not be replayed: it is a failure.
func ended[T any](value T, err error) (T, Ending, error) {
	if err == nil {
		body, failure := json.Marshal(value)
		if failure == nil {
			return value, Ending{State: Succeeded, Result: Result{Body: body, Kept: true}}, nil
		}
		err = fmt.Errorf("%w: the value cannot be kept as JSON: %w", ErrInvalid, failure)
	}
	state := Failed
	if errors.Is(err, ErrOutcomeUnknown) {
		state = Processing
	}
	return value, Ending{State: state, Reason: err.Error()}, err
}
