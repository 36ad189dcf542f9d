package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/idemkit/idem"
)

// sealed is a claim in a service's hands. The format is that of records, so that a version meets only claims that it can read.
type sealed struct {
	Format int             `json:"format"`
	Ticket json.RawMessage `json:"ticket"`
}

// seal makes one opaque word of a ticket, under the key that the service came with: a store that may forget believes a claim of which it knows nothing.
func (c *serviceCall) seal(t idem.Ticket) (string, error) {
	ticket, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(sealed{Format: idem.Format, Ticket: ticket})
	return base64.RawURLEncoding.EncodeToString(append(sealOf(text, c.key), text...)), err
}

func sealOf(text []byte, key [sha256.Size]byte) []byte {
	code := hmac.New(sha256.New, key[:])
	code.Write(text)
	return code.Sum(nil)
}

// unseal returns idem.ErrFormat for the claim of a newer version. Any other error says that none of the service keys gave it out.
func (g *Guard) unseal(claim string) (t idem.Ticket, err error) {
	word, err := base64.RawURLEncoding.Strict().DecodeString(claim)
	if err != nil {
		return t, err
	}
	if len(word) < sha256.Size || !g.sealed(word[:sha256.Size], word[sha256.Size:]) {
		return t, errors.New("a claim without our seal")
	}
	var whole sealed
	if err := json.Unmarshal(word[sha256.Size:], &whole); err != nil {
		return t, err
	}
	if whole.Format > idem.Format {
		return t, fmt.Errorf("%w: a claim of format %d", idem.ErrFormat, whole.Format)
	}
	return t, json.Unmarshal(whole.Ticket, &t)
}

func (g *Guard) sealed(seal, text []byte) bool {
	for _, key := range g.serviceKeys {
		if hmac.Equal(seal, sealOf(text, key)) {
			return true
		}
	}
	return false
}

// ticket reads a claim, and refuses what this guard did not give out to the tenant.
func (c *serviceCall) ticket(claim *string) (idem.Ticket, *refusal) {
	if claim == nil || *claim == "" {
		return idem.Ticket{}, missing("claim")
	}
	t, err := c.unseal(*claim)
	switch {
	case errors.Is(err, idem.ErrFormat):
		return t, refuse(StoreUnavailable).because(err)
	case err != nil, !visible(*claim), !c.gaveOut(t): // the decoder passes over line ends
		return t, refuse(BadRequest).with("the claim is not one that consume gave out").because(err)
	}
	c.name(t.Claim.RequestID)
	return t, nil
}

// gaveOut: another guard may have the same service key.
func (c *serviceCall) gaveOut(t idem.Ticket) bool {
	ledger := ""
	if c.config.Ledger != nil {
		ledger = c.config.Ledger.Name()
	}
	return t.Claim.Ledger == ledger && t.Claim.Key.Tenant == c.tenant(c.r) && (t.Entrance == nil || c.config.Store != nil)
}
