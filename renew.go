package idem

import (
	"context"
	"errors"
	"sync"
	"time"
)

// hold keeps the leases of a claim, and of the entrance beside it, while work goes on. cancel is called with a cause when the claim
// is lost; with a ledger only the ledger's lease decides that.
func (v *visit) hold(ctx context.Context, claim Claim, cancel context.CancelCauseFunc) holds {
	lost := func(cause error) {
		v.observe(ctx, Event{Kind: ClaimLost, Type: claim.Key.Type, Attempt: claim.Attempt, Err: cause})
		cancel(cause)
	}
	v.refresh(ctx, claim)
	var held holds
	switch {
	case v.tx != nil: // nobody sees the claim before it commits
	case v.ledger != nil:
		held = append(held, v.claims.hold(claim, v.asked, lost).stop)
	default:
		held = append(held, v.entrances.hold(claim, v.asked, lost).stop)
	}
	if v.entrance != nil {
		held = append(held, v.entrances.hold(*v.entrance, v.asked, func(error) {}).stop)
	}
	return held
}

// refresh renews a claim that was long in coming, behind another writer say: counted from the question, its lease might be over before the work begins.
func (v *visit) refresh(ctx context.Context, claim Claim) {
	if v.tx != nil || time.Since(v.asked) < claim.Lease/3 {
		return
	}
	store := Store(v.store)
	if v.ledger != nil {
		store = v.ledger
	}
	bounded, cancel := context.WithTimeout(ctx, finishLimit)
	defer cancel()
	sent := time.Now()
	if lost, err := store.Extend(bounded, []Claim{claim}); err == nil && len(lost) == 0 {
		v.asked = sent
	}
}

// holds are the ends of what is held. Stopping twice is harmless.
type holds []func()

func (h holds) stop() {
	for _, stop := range h {
		stop()
	}
}

// renewals extends the leases of all claims of one store that this process holds: those that are due together in one call.
type renewals struct {
	extend func(context.Context, []Claim) ([]int, error)
	mu     sync.Mutex
	held   map[*lease]struct{}
}

// lease is one held claim. Its own deadline is the authority: the work is told to stop when it passes, whatever
// the store would say by then.
type lease struct {
	*renewals
	claim    Claim
	lost     func(cause error)
	due      time.Time
	deadline time.Time
	renewing bool
	renewal  *time.Timer
	expiry   *time.Timer
}

func newRenewals(extend func(context.Context, []Claim) ([]int, error)) *renewals {
	return &renewals{extend: extend, held: map[*lease]struct{}{}}
}

// hold renews the claim every third of its lease, first counted from since, until it is stopped or lost.
func (r *renewals) hold(claim Claim, since time.Time, lost func(error)) *lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &lease{renewals: r, claim: claim, lost: lost, due: since.Add(claim.Lease / 3), deadline: since.Add(claim.Lease)}
	r.held[l] = struct{}{}
	l.renewal = time.AfterFunc(time.Until(l.due), r.renewDue)
	l.expiry = time.AfterFunc(time.Until(l.deadline), l.expire)
	return l
}

func (l *lease) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}

// stands reports whether the claim is held still, by its own deadline.
func (l *lease) stands() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, held := l.held[l]
	return held && time.Now().Before(l.deadline)
}

func (l *lease) drop() {
	delete(l.held, l)
	l.renewal.Stop()
	l.expiry.Stop()
}

// expire gives the claim up, unless a renewal moved the deadline while the timer fired.
func (l *lease) expire() {
	l.mu.Lock()
	_, held := l.held[l]
	if held && time.Now().Before(l.deadline) {
		l.expiry.Reset(time.Until(l.deadline))
		l.mu.Unlock()
		return
	}
	l.drop()
	l.mu.Unlock()
	if held {
		l.lost(ErrLeaseExpired)
	}
}

// renewDue renews every lease that is due about now, in one call.
func (r *renewals) renewDue() {
	due := r.takeDue(time.Now())
	if len(due) == 0 {
		return
	}
	claims := make([]Claim, len(due))
	sent := time.Now()
	var patience time.Duration
	for i, l := range due {
		claims[i] = l.claim
		// One that hangs leaves time for another try, on another connection, before the lease is over.
		patience = max(patience, min(l.claim.Lease/12*5, l.deadline.Sub(sent)))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lost, err := r.extend(ctx, claims)
	for _, l := range r.renewed(due, lost, err, sent) {
		l.lost(ErrClaimLost)
	}
}

func (r *renewals) takeDue(now time.Time) []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	var due []*lease
	for l := range r.held {
		if !l.renewing && !l.due.After(now.Add(l.claim.Lease/12)) {
			l.renewing = true
			due = append(due, l)
		}
	}
	return due
}

// renewed books the outcome and returns the leases that somebody else has. What could not be asked about is tried again soon, for as long as the
// lease still stands.
func (r *renewals) renewed(due []*lease, lost []int, err error, sent time.Time) []*lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	var gone []*lease
	isLost, unasked := set(lost), unanswered(len(due), err)
	for i, l := range due {
		l.renewing = false
		if _, held := r.held[l]; !held {
			continue
		}
		switch {
		case unasked[i] && errors.Is(err, ErrInvalid):
			continue
		case unasked[i]:
			l.due = time.Now().Add(max(l.claim.Lease/10, MinLease))
		case isLost[i]:
			l.drop()
			gone = append(gone, l)
			continue
		default:
			l.due, l.deadline = sent.Add(l.claim.Lease/3), sent.Add(l.claim.Lease)
			l.expiry.Reset(time.Until(l.deadline))
		}
		l.renewal.Reset(time.Until(l.due))
	}
	return gone
}

// unanswered are the indexes of the claims that a call of Extend says nothing about.
func unanswered(claims int, err error) map[int]bool {
	var part *PartError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &part):
		return set(part.Unasked)
	}
	all := make(map[int]bool, claims)
	for i := range claims {
		all[i] = true
	}
	return all
}

func set(indexes []int) map[int]bool {
	all := make(map[int]bool, len(indexes))
	for _, index := range indexes {
		all[index] = true
	}
	return all
}
