package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

// sealed is a claim in a service's hands. The format is that of records, so that a version meets only claims that it can read.
type sealed struct {
	Format int         `json:"format"`
	Ticket idem.Ticket `json:"ticket"`
}

// seal makes one opaque word of a ticket. It is not signed: whoever may end a claim has the service key, and its owner cannot be guessed.
func seal(t idem.Ticket) (string, error) {
	text, err := json.Marshal(sealed{Format: idem.Format, Ticket: t})
	return base64.RawURLEncoding.EncodeToString(text), err
}

// unseal returns idem.ErrFormat for the claim of a newer version. Any other error says that it is none.
func unseal(claim string) (idem.Ticket, error) {
	text, err := base64.RawURLEncoding.Strict().DecodeString(claim)
	if err != nil {
		return idem.Ticket{}, err
	}
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return idem.Ticket{}, err
	}
	if version.Format > idem.Format {
		return idem.Ticket{}, fmt.Errorf("%w: a claim of format %d", idem.ErrFormat, version.Format)
	}
	var whole sealed
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&whole); err != nil {
		return idem.Ticket{}, err
	}
	if whole.Format < 1 {
		return idem.Ticket{}, fmt.Errorf("a claim of format %d", whole.Format)
	}
	return whole.Ticket, nil
}

// ticket reads a claim, and refuses what this guard cannot have given out.
func (c *serviceCall) ticket(claim *string) (idem.Ticket, *refusal) {
	if claim == nil || *claim == "" {
		return idem.Ticket{}, missing("claim")
	}
	t, err := unseal(*claim)
	switch {
	case errors.Is(err, idem.ErrFormat):
		return t, refuse(StoreUnavailable).because(err)
	case err != nil, !visible(*claim), !c.gaveOut(t): // the decoder passes over line ends
		return t, refuse(BadRequest).with("the claim is not one that consume gave out").because(err)
	}
	c.name(t.Claim.RequestID)
	return t, nil
}

func (c *serviceCall) gaveOut(t idem.Ticket) bool {
	ledger := ""
	if c.config.Ledger != nil {
		ledger = c.config.Ledger.Name()
	}
	whole := func(claim idem.Claim) bool {
		return claim.Validate() == nil && claim.Attempt > 0 && claim.Ledger == ledger
	}
	return whole(t.Claim) && tokens.ValidRequestID(t.Claim.RequestID) &&
		(t.Entrance == nil || c.config.Store != nil && c.config.Ledger != nil && whole(*t.Entrance))
}
