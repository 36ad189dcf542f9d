package web

import (
	"context"
	"time"

	"github.com/idemkit/idem"
)

// dropLimit bounds how long an answer waits for its key to be dropped: by itself it falls after a lease.
const dropLimit = 3 * time.Second

// dropKey removes the record of work that succeeded, before the answer leaves.
func (s *submission) dropKey(c idem.Claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.r.Context()), dropLimit)
	defer cancel()
	_, err := s.config.Store.Drop(ctx, idem.Record{Key: c.Key, State: idem.Succeeded, Owner: c.Owner, Attempt: c.Attempt})
	s.unreleased(err)
}
