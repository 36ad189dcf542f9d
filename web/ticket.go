package web

import (
	"crypto/aes"
	"crypto/cipher"
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

// seal makes one opaque word of a ticket, under the key that the service came with: it tells nothing of the stores, and nobody else can make one, which a store
// that may forget would believe.
func (c *serviceCall) seal(t idem.Ticket) (string, error) {
	ticket, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(sealed{Format: idem.Format, Ticket: ticket})
	if err != nil {
		return "", err
	}
	box, err := under(c.key)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(box.Seal(nil, nil, text, nil)), nil
}

// under a service key: AES-256-GCM, whose random nonce is part of the word.
func under(key [sha256.Size]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// unseal returns idem.ErrFormat for the claim of a newer version. Any other error says that none of the service keys gave it out.
func (g *Guard) unseal(claim string) (t idem.Ticket, err error) {
	word, err := base64.RawURLEncoding.Strict().DecodeString(claim)
	if err != nil {
		return t, err
	}
	text, err := g.open(word)
	if err != nil {
		return t, err
	}
	var whole sealed
	if err := json.Unmarshal(text, &whole); err != nil {
		return t, err
	}
	if whole.Format > idem.Format {
		return t, fmt.Errorf("%w: a claim of format %d", idem.ErrFormat, whole.Format)
	}
	return t, json.Unmarshal(whole.Ticket, &t)
}

func (g *Guard) open(word []byte) (text []byte, err error) {
	err = errors.New("a claim without our seal")
	for _, key := range g.serviceKeys {
		box, unusable := under(key)
		if unusable != nil {
			return nil, unusable
		}
		if text, err = box.Open(nil, nil, word, nil); err == nil {
			return text, nil
		}
	}
	return nil, err
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
