package server

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/tokens"
)

const (
	hour = time.Hour
	year = 365 * 24 * hour
)

// span is the range of a duration, both ends included.
type span struct {
	variable    string
	value       time.Duration
	least, most time.Duration
	example     string
}

func (c Config) spans() []span {
	return []span{
		{"IDEM_TOKEN_TTL", c.TokenTTL, idem.MinLease, year, "30m"},
		{"IDEM_LEASE", c.Lease, idem.MinLease, hour, "15s"},
		{"IDEM_WAIT", c.Wait, 0, hour, "10s; 0: not at all"},
		{"IDEM_RETENTION", c.Retention, idem.MinLease, 10 * year, "720h"},
		{"IDEM_RESULT_RETENTION", c.ResultRetention, idem.MinLease, 10 * year, "24h"},
	}
}

var errRange = errors.New("is out of range")

// allowed says what a variable may be, as the end of a sentence.
func allowed(variable string) string {
	for _, s := range (Config{}).spans() {
		if s.variable == variable {
			return fmt.Sprintf("%s to %s, such as %s", short(s.least), short(s.most), s.example)
		}
	}
	switch variable {
	case "IDEM_ADDR":
		return "host:port with a port from 0 to 65535, such as 127.0.0.1:8080"
	case "IDEM_REDIS_URL":
		return "empty (a store in this process), redis://[user:password@]host:port/db, rediss:// likewise, several comma-separated addresses " +
			"(a cluster), or redis+sentinel://[user:password@]host:port,host:port/master/db; blanks, commas and slashes in a password are percent-encoded"
	case "IDEM_DATABASE_URL":
		return "empty (the SQLite file " + defaultSQLite + "), sqlite:PATH, or postgres://user:password@host:port/database; " +
			"what is no letter or digit in a password is percent-encoded"
	case "IDEM_KEYS":
		return "kid:base64 (HS256, 32 bytes or more), kid:ed25519:SEED or kid:ed25519-pub:KEY, several parted by commas; the first signs"
	case "IDEM_PUBLIC_URL":
		return "empty, or http:// or https:// with a host and nothing behind it, such as https://shop.example"
	case "IDEM_TOKEN_RATE":
		return "a number of tokens and a time, such as 600/1m, or off"
	case "IDEM_SERVICE_KEY":
		return "empty (the service calls are off), or 1 to 512 visible ASCII characters"
	case "IDEM_OPS_PASSWORD":
		return "empty (the console is off), or 1 to 512 characters without control characters"
	}
	return "empty"
}

// short drops the zero parts that time.Duration prints.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// check judges what env could parse; variables in unparsed have their line already.
func (c Config) check(unparsed []*SettingError) []*SettingError {
	var wrong []*SettingError
	bad := func(variable string) bool {
		at := func(e *SettingError) bool { return e.Variable == variable }
		return slices.ContainsFunc(unparsed, at) || slices.ContainsFunc(wrong, at)
	}
	say := func(variable, problem string) {
		if problem != "" && !bad(variable) {
			wrong = append(wrong, &SettingError{variable, problem})
		}
	}
	not := func(variable string, err error) {
		if err != nil {
			say(variable, refused(variable, err).Problem)
		}
	}
	not("IDEM_ADDR", checkAddr(c.Addr))
	_, err := parseRedis(c.RedisURL.Reveal())
	not("IDEM_REDIS_URL", err)
	_, err = parseDatabase(c.DatabaseURL.Reveal())
	not("IDEM_DATABASE_URL", err)
	if err := c.checkKeys(); err != nil {
		say("IDEM_KEYS", keysProblem(err))
	}
	for _, s := range c.spans() {
		if s.value < s.least || s.value > s.most {
			not(s.variable, errRange)
		}
	}
	// Its default gives way where only the retention was set.
	if c.ResultRetention > c.Retention && c.ResultRetention != idem.DefaultResultRetention && !bad("IDEM_RETENTION") {
		say("IDEM_RESULT_RETENTION", fmt.Sprintf("is above the retention; it may be %s (IDEM_RETENTION) or less", short(c.Retention)))
	}
	not("IDEM_PUBLIC_URL", checkPublicURL(c.PublicURL))
	not("IDEM_SERVICE_KEY", checkText(c.ServiceKey.Reveal(), '!', '~'))
	not("IDEM_OPS_PASSWORD", checkText(c.OpsPassword.Reveal(), ' ', '\U0010FFFF'))
	if !bad("IDEM_TOKEN_TTL") && !bad("IDEM_LEASE") {
		say("IDEM_RETENTION", c.checkRetention())
	}
	if !bad("IDEM_REDIS_URL") && !bad("IDEM_DATABASE_URL") {
		say("IDEM_KEYS", c.checkShared())
	}
	return wrong
}

func checkAddr(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("is not host:port")
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(number, 10) != port {
		return errors.New("has no port number")
	}
	return nil
}

func checkPublicURL(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return errors.New("is not the URL of a web server")
	case u.User != nil, u.Path != "" && u.Path != "/", u.RawQuery != "", u.ForceQuery, u.Fragment != "":
		return errors.New("says more than scheme, host and port")
	}
	return nil
}

func checkText(text string, least, most rune) error {
	const longest = 512
	if len(text) > longest {
		return errors.New("is too long")
	}
	for _, c := range text {
		if c < least || c > most || c == '\x7f' || c == '\uFFFD' {
			return errors.New("has characters that cannot be sent")
		}
	}
	return nil
}

// keysProblem does not say twice what they may be.
func keysProblem(err error) string {
	text := err.Error()
	if !strings.Contains(text, "kid:base64") {
		text += "; it may be " + allowed("IDEM_KEYS")
	}
	return text + "; `go run ./cmd/idem keys` makes one"
}

func (c Config) checkKeys() error {
	if c.Keys == "" {
		return nil
	}
	ring, err := tokens.ParseKeys(c.Keys.Reveal())
	if err == nil {
		_, err = tokens.New(tokens.Config{Keys: ring})
	}
	if err != nil {
		return errors.New("is not a ring of keys: " + strings.ReplaceAll(err.Error(), "tokens: ", ""))
	}
	return nil
}

// checkRetention: a record must outlive every token that leads to it, or a spent token would be taken for a fresh one.
func (c Config) checkRetention() string {
	switch {
	case c.Retention < c.TokenTTL:
		return fmt.Sprintf("is below the life of a token; it may be %s (IDEM_TOKEN_TTL) or more", short(c.TokenTTL))
	case c.Retention < c.Lease:
		return fmt.Sprintf("is below the lease; it may be %s (IDEM_LEASE) or more", short(c.Lease))
	}
	return ""
}

// checkShared: processes that share a store must share the keys, and one that makes its own would refuse the others' tokens.
func (c Config) checkShared() string {
	database, _ := parseDatabase(c.DatabaseURL.Reveal())
	if c.Keys != "" || (c.RedisURL == "" && database.sqlite != "") {
		return ""
	}
	return "is empty, and must not be with a shared Redis or Postgres: every process needs the same keys; `go run ./cmd/idem keys` makes one"
}
