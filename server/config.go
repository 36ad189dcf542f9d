package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Config is the settings, as Load reads them. Printed or logged, it shows no secret.
type Config struct {
	// Addr is where Serve listens, "host:port"; port 0 picks a free one.
	Addr string `env:"IDEM_ADDR" envDefault:"127.0.0.1:8080"`

	// RedisURL names the entrance store. Empty: one in this process. "redis://user:password@host:6379/0", "rediss://" over TLS; several addresses,
	// "redis://user:password@host1:6379,host2:6379", are a cluster's; "redis+sentinel://user:password@sentinel1:26379,sentinel2:26379/master/0",
	// with ?sentinel_username= and ?sentinel_password= where the sentinels ask for them. A comma within a password is written %2C. go-redis' own
	// parameters, such as ?pool_size=50, are taken.
	RedisURL Secret `env:"IDEM_REDIS_URL"`

	// DatabaseURL names the ledger. Empty: the SQLite file idem-demo.db in the working directory. "sqlite:PATH"; "postgres://...", with the parameters
	// of pgxpool, such as ?pool_max_conns=50.
	DatabaseURL Secret `env:"IDEM_DATABASE_URL"`

	// Keys are the ring in the form of tokens.ParseKeys; the first signs. Empty: made once and kept beside the SQLite file.
	Keys Secret `env:"IDEM_KEYS"`

	TokenTTL        time.Duration `env:"IDEM_TOKEN_TTL" envDefault:"30m"`
	Lease           time.Duration `env:"IDEM_LEASE" envDefault:"15s"`
	Wait            time.Duration `env:"IDEM_WAIT" envDefault:"10s"` // 0: a duplicate does not wait
	Retention       time.Duration `env:"IDEM_RETENTION" envDefault:"720h"`
	ResultRetention time.Duration `env:"IDEM_RESULT_RETENTION" envDefault:"24h"`

	// PublicURL is how browsers name this server, such as "https://shop.example", where something stands in front of it. https says that TLS ends
	// there. Empty: browsers connect to Addr.
	PublicURL string `env:"IDEM_PUBLIC_URL"`

	// TokenRate is how many tokens a subject may ask for, and a tenth of what an address may. Zero, written "off": any number.
	TokenRate Rate `env:"IDEM_TOKEN_RATE" envDefault:"600/1m"`

	ServiceKey  Secret `env:"IDEM_SERVICE_KEY"`  // of services that are not written in Go. Empty: their calls are off
	OpsPassword Secret `env:"IDEM_OPS_PASSWORD"` // of the console. Empty: it is off
}

// SettingError is one variable that does not parse or is out of range. Its text is one line, which shows nothing of the value: a secret may have been
// put into the wrong variable.
type SettingError struct {
	Variable string
	Problem  string // what it is not, and what it may be
}

func (e *SettingError) Error() string { return e.Variable + " " + e.Problem }

// refused is a variable's line, with what it may be. The error's text must not show the value.
func refused(variable string, err error) *SettingError {
	return &SettingError{variable, err.Error() + "; it may be " + allowed(variable)}
}

// Load reads the settings from environ; nil: the process's own environment. An empty variable is one that is not set. The error joins a *SettingError,
// a line of its own, for every variable that is wrong.
func Load(environ map[string]string) (Config, error) {
	var c Config
	err := env.ParseWithOptions(&c, env.Options{
		Environment: environ,
		FuncMap:     map[reflect.Type]env.ParserFunc{reflect.TypeFor[time.Duration](): parseDuration},
	})
	wrong := unparsed(err)
	wrong = append(wrong, c.check(wrong)...)
	if len(wrong) == 0 {
		return c, nil
	}
	lines := make([]error, len(wrong))
	for i, one := range wrong {
		lines[i] = one
	}
	return Config{}, errors.Join(lines...)
}

// parseDuration replaces env's own, whose error shows the value.
func parseDuration(text string) (any, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, errors.New("is not a duration")
	}
	return d, nil
}

// unparsed turns env's errors, which name fields of the struct, into ours. What it may be is said where the range is known.
func unparsed(err error) []*SettingError {
	if err == nil {
		return nil
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return []*SettingError{{"the environment", fmt.Sprintf("cannot be read: %T", err)}}
	}
	var wrong []*SettingError
	for _, one := range all.Errors {
		var failure env.ParseError
		if !errors.As(one, &failure) {
			wrong = append(wrong, &SettingError{"the environment", fmt.Sprintf("cannot be read: %T", one)})
			continue
		}
		wrong = append(wrong, refused(variableOf(failure.Name), failure.Err))
	}
	return wrong
}

func variableOf(field string) string {
	found, _ := reflect.TypeFor[Config]().FieldByName(field)
	return found.Tag.Get("env")
}

// Variable is one setting, for a program's help.
type Variable struct {
	Name    string
	Default string // empty: none
	Allowed string // what it may be, as the end of a sentence
}

// Variables are all settings that Load reads.
func Variables() []Variable {
	var all []Variable
	for field := range reflect.TypeFor[Config]().Fields() {
		name := field.Tag.Get("env")
		all = append(all, Variable{name, field.Tag.Get("envDefault"), allowed(name)})
	}
	return all
}

// Describe is a line for each of the variables that are named, for a program's help; for all where none is.
func Describe(names ...string) string {
	var text strings.Builder
	for _, v := range Variables() {
		if len(names) > 0 && !slices.Contains(names, v.Name) {
			continue
		}
		text.WriteString("  " + v.Name + ": " + v.Allowed)
		if v.Default != "" {
			text.WriteString(" (default " + v.Default + ")")
		}
		text.WriteString("\n")
	}
	return text.String()
}

// WarnUnknown logs the names of variables of environ ("NAME=value") that begin with IDEM_ and are no settings: somebody meant one. Values are not shown.
func WarnUnknown(ctx context.Context, environ []string, logger *slog.Logger) {
	known := map[string]bool{}
	for _, v := range Variables() {
		known[v.Name] = true
	}
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "IDEM_") && !known[name] {
			logger.WarnContext(ctx, "idem: there is no such setting", "variable", name)
		}
	}
}
