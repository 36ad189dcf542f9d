package server_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/tokens"
)

// mark is in every secret of these tests, so that one look finds any of them.
const mark = "hush"

// oneKey is a ring in the form of IDEM_KEYS.
func oneKey(t *testing.T) string {
	t.Helper()
	key, err := tokens.GenerateHS256("k1")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	want := server.Config{
		Addr: "127.0.0.1:8080", TokenTTL: 30 * time.Minute, Lease: 15 * time.Second, Wait: 10 * time.Second, Retention: 720 * time.Hour,
		ResultRetention: 24 * time.Hour, TokenRate: server.Rate{Tokens: 600, Per: time.Minute},
	}
	empty := map[string]string{}
	for _, name := range []string{
		"IDEM_ADDR", "IDEM_REDIS_URL", "IDEM_DATABASE_URL", "IDEM_KEYS", "IDEM_TOKEN_TTL", "IDEM_LEASE", "IDEM_WAIT", "IDEM_RETENTION",
		"IDEM_RESULT_RETENTION", "IDEM_PUBLIC_URL", "IDEM_TOKEN_RATE", "IDEM_SERVICE_KEY", "IDEM_OPS_PASSWORD",
	} {
		empty[name] = ""
	}
	for name, environ := range map[string]map[string]string{"nothing set": {}, "set and empty": empty, "others' variables": {"ADDR": "x", "IDEM": "y"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := server.Load(environ)
			if err != nil || got != want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestLoadReadsTheProcessEnvironment(t *testing.T) {
	t.Setenv("IDEM_LEASE", "7s")
	got, err := server.Load(nil)
	if err != nil || got.Lease != 7*time.Second {
		t.Errorf("lease %v, %v", got.Lease, err)
	}
}

func TestLoadTakes(t *testing.T) {
	t.Parallel()
	key := oneKey(t)
	private, public, err := tokens.GenerateEd25519("k2")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environ map[string]string
		holds   func(server.Config) bool
	}{
		"address, all interfaces": {map[string]string{"IDEM_ADDR": ":9000"}, func(c server.Config) bool { return c.Addr == ":9000" }},
		"address, IPv6":           {map[string]string{"IDEM_ADDR": "[::1]:0"}, func(c server.Config) bool { return c.Addr == "[::1]:0" }},
		"durations": {
			map[string]string{
				"IDEM_TOKEN_TTL": "1h", "IDEM_LEASE": "250ms", "IDEM_WAIT": "0", "IDEM_RETENTION": "1h", "IDEM_RESULT_RETENTION": "1m",
			},
			func(c server.Config) bool {
				return c.TokenTTL == time.Hour && c.Lease == 250*time.Millisecond && c.Wait == 0 && c.Retention == time.Hour && c.ResultRetention == time.Minute
			},
		},
		"Redis with keys": {
			map[string]string{"IDEM_REDIS_URL": "redis://localhost:6379/1", "IDEM_KEYS": key},
			func(c server.Config) bool {
				return c.RedisURL.Reveal() == "redis://localhost:6379/1" && c.Keys.Reveal() == key
			},
		},
		"Postgres with keys": {
			map[string]string{"IDEM_DATABASE_URL": "postgres://u:p@localhost/app", "IDEM_KEYS": key},
			func(c server.Config) bool { return c.DatabaseURL.Reveal() == "postgres://u:p@localhost/app" },
		},
		"SQLite needs no keys": {map[string]string{"IDEM_DATABASE_URL": "sqlite:/var/lib/shop.db"}, func(c server.Config) bool { return c.Keys == "" }},
		"ring of three": {
			map[string]string{"IDEM_KEYS": private + ", " + key + "," + strings.Replace(public, "k2", "k3", 1)},
			func(c server.Config) bool { return c.Keys != "" },
		},
		"TLS in front": {
			map[string]string{"IDEM_PUBLIC_URL": "https://shop.example/"}, func(c server.Config) bool { return c.TLS() },
		},
		"plain HTTP in front": {
			map[string]string{"IDEM_PUBLIC_URL": "http://shop.example:8080"}, func(c server.Config) bool { return !c.TLS() },
		},
		"rate": {
			map[string]string{"IDEM_TOKEN_RATE": "5/10s"}, func(c server.Config) bool { return c.TokenRate == server.Rate{Tokens: 5, Per: 10 * time.Second} },
		},
		"rate a minute": {
			map[string]string{"IDEM_TOKEN_RATE": "5/m"}, func(c server.Config) bool { return c.TokenRate.String() == "5/1m" },
		},
		"no rate": {map[string]string{"IDEM_TOKEN_RATE": "off"}, func(c server.Config) bool { return c.TokenRate == server.Rate{} }},
		"service key and password": {
			map[string]string{"IDEM_SERVICE_KEY": "s3cret", "IDEM_OPS_PASSWORD": "correct horse, größer"},
			func(c server.Config) bool {
				return c.ServiceKey.Reveal() == "s3cret" && c.OpsPassword.Reveal() == "correct horse, größer"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := server.Load(c.environ)
			if err != nil || !c.holds(got) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	key := oneKey(t)
	_, public, err := tokens.GenerateEd25519("p")
	if err != nil {
		t.Fatal(err)
	}
	const mayRetain = "IDEM_RETENTION is out of range; it may be 1ms to 87600h, such as 720h"
	const isShared = "is empty, and must not be with a shared Redis or Postgres"
	for name, c := range map[string]struct {
		variable, value string
		says            string // the beginning of the line
	}{
		"address without port":         {"IDEM_ADDR", "localhost", "IDEM_ADDR is not host:port; it may be host:port with a port from 0 to 65535"},
		"address, port by name":        {"IDEM_ADDR", "localhost:http", "IDEM_ADDR has no port number; it may be"},
		"address, port too large":      {"IDEM_ADDR", ":65536", "IDEM_ADDR has no port number; it may be"},
		"Redis, other scheme":          {"IDEM_REDIS_URL", "http://" + mark + "@h", "IDEM_REDIS_URL is not a Redis URL: it begins with none of"},
		"Redis, host alone":            {"IDEM_REDIS_URL", "localhost:6379", "IDEM_REDIS_URL is not a Redis URL: it begins with none of"},
		"Redis, slash in the password": {"IDEM_REDIS_URL", "redis://:a/" + mark + "@h:1", "IDEM_REDIS_URL is not a Redis URL: an address is not host:port"},
		"database, other scheme":       {"IDEM_DATABASE_URL", "mysql://u:" + mark + "@h/d", "IDEM_DATABASE_URL is not a database: it begins with none of"},
		"database, file without sqlite": {
			"IDEM_DATABASE_URL", "idem.db", "IDEM_DATABASE_URL is not a database: it begins with none of sqlite: and postgres://; it may be empty",
		},
		"database in memory":     {"IDEM_DATABASE_URL", "sqlite::memory:", "IDEM_DATABASE_URL does not name a file"},
		"database, bad port":     {"IDEM_DATABASE_URL", "postgres://u:" + mark + "@h:port/d", "IDEM_DATABASE_URL is not a Postgres URL"},
		"keys, no ring":          {"IDEM_KEYS", mark, "IDEM_KEYS is not a ring of keys: key 1: it must read kid:base64"},
		"keys, short secret":     {"IDEM_KEYS", key + ",k2:aHVzaA", "IDEM_KEYS is not a ring of keys: key 2: an HS256 secret must be 32 bytes or more"},
		"keys, one kid twice":    {"IDEM_KEYS", key + "," + key, "IDEM_KEYS is not a ring of keys: key 2 has the kid of an earlier one"},
		"keys, none that signs":  {"IDEM_KEYS", public, "IDEM_KEYS is not a ring of keys: key 1 signs and must not be a public key"},
		"life, no duration":      {"IDEM_TOKEN_TTL", mark, "IDEM_TOKEN_TTL is not a duration; it may be 1ms to 8760h, such as 30m"},
		"life, no unit":          {"IDEM_TOKEN_TTL", "30", "IDEM_TOKEN_TTL is not a duration"},
		"life, zero":             {"IDEM_TOKEN_TTL", "0", "IDEM_TOKEN_TTL is out of range"},
		"life beyond retention":  {"IDEM_TOKEN_TTL", "721h", "IDEM_RETENTION is below the life of a token; it may be 721h (IDEM_TOKEN_TTL) or more"},
		"lease, zero":            {"IDEM_LEASE", "0s", "IDEM_LEASE is out of range; it may be 1ms to 1h, such as 15s"},
		"lease, negative":        {"IDEM_LEASE", "-1s", "IDEM_LEASE is out of range"},
		"wait, negative":         {"IDEM_WAIT", "-1s", "IDEM_WAIT is out of range; it may be 0s to 1h, such as 10s; 0: not at all"},
		"wait, too long":         {"IDEM_WAIT", "2h", "IDEM_WAIT is out of range"},
		"retention, zero":        {"IDEM_RETENTION", "0", mayRetain},
		"retention, too long":    {"IDEM_RETENTION", "90000h", mayRetain},
		"retention below life":   {"IDEM_RETENTION", "29m59s", "IDEM_RETENTION is below the life of a token; it may be 30m (IDEM_TOKEN_TTL) or more"},
		"result beyond its key":  {"IDEM_RESULT_RETENTION", "721h", "IDEM_RESULT_RETENTION is above the retention; it may be 720h (IDEM_RETENTION) or less"},
		"result retention, zero": {"IDEM_RESULT_RETENTION", "0", "IDEM_RESULT_RETENTION is out of range; it may be 1ms to 87600h, such as 24h"},
		"public URL, no scheme":  {"IDEM_PUBLIC_URL", "shop.example", "IDEM_PUBLIC_URL is not the URL of a web server; it may be empty, or http:// or https://"},
		"public URL, a path":     {"IDEM_PUBLIC_URL", "https://shop.example/app", "IDEM_PUBLIC_URL says more than scheme, host and port"},
		"public URL, a user":     {"IDEM_PUBLIC_URL", "https://u:" + mark + "@shop.example", "IDEM_PUBLIC_URL says more than scheme, host and port"},
		"rate, a number":         {"IDEM_TOKEN_RATE", "600", "IDEM_TOKEN_RATE is not a rate; it may be a number of tokens and a time, such as 600/1m, or off"},
		"rate, none":             {"IDEM_TOKEN_RATE", "0/1m", "IDEM_TOKEN_RATE is out of range"},
		"rate, no unit":          {"IDEM_TOKEN_RATE", "600/60", "IDEM_TOKEN_RATE is not a rate"},
		"rate, too fast":         {"IDEM_TOKEN_RATE", "1/10ms", "IDEM_TOKEN_RATE is out of range"},
		"service key, a blank":   {"IDEM_SERVICE_KEY", mark + " " + mark, "IDEM_SERVICE_KEY has characters that cannot be sent; it may be empty"},
		"service key, too long":  {"IDEM_SERVICE_KEY", strings.Repeat(mark, 129), "IDEM_SERVICE_KEY is too long"},
		"password, a line break": {"IDEM_OPS_PASSWORD", mark + "\n", "IDEM_OPS_PASSWORD has characters that cannot be sent"},
		"no keys, shared Redis":  {"IDEM_REDIS_URL", "redis://localhost", "IDEM_KEYS " + isShared},
		"no keys, Postgres":      {"IDEM_DATABASE_URL", "postgres://localhost/d", "IDEM_KEYS " + isShared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := server.Load(map[string]string{c.variable: c.value})
			if err == nil {
				t.Fatal("taken")
			}
			if !strings.HasPrefix(err.Error(), c.says) {
				t.Errorf("%s\nwant the beginning %s", err, c.says)
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), mark) {
				t.Errorf("not one line without the value: %s", err)
			}
			var setting *server.SettingError
			if !errors.As(err, &setting) || !strings.HasPrefix(c.says, setting.Variable+" ") {
				t.Errorf("%#v", setting)
			}
		})
	}
}

func TestLoadRefusesARetentionBelowTheLease(t *testing.T) {
	t.Parallel()
	_, err := server.Load(map[string]string{"IDEM_TOKEN_TTL": "1s", "IDEM_LEASE": "1h", "IDEM_RETENTION": "1m"})
	if err == nil || err.Error() != "IDEM_RETENTION is below the lease; it may be 1h (IDEM_LEASE) or more" {
		t.Error(err)
	}
}

func TestLoadNamesEveryBadVariableOnce(t *testing.T) {
	t.Parallel()
	_, err := server.Load(map[string]string{
		"IDEM_LEASE": "soon", "IDEM_WAIT": "-1s", "IDEM_TOKEN_TTL": "x", "IDEM_RETENTION": "1ms", "IDEM_REDIS_URL": "x", "IDEM_TOKEN_RATE": "x",
	})
	if err == nil {
		t.Fatal("taken")
	}
	var named []string
	for line := range strings.Lines(err.Error()) {
		variable, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		named = append(named, variable)
		if !strings.Contains(rest, "; it may be ") {
			t.Errorf("%s does not say what it may be: %s", variable, rest)
		}
	}
	want := "IDEM_TOKEN_TTL IDEM_LEASE IDEM_TOKEN_RATE IDEM_REDIS_URL IDEM_WAIT"
	if got := strings.Join(named, " "); got != want {
		t.Errorf("named %s, want %s", got, want)
	}
}

func TestConfigShowsNoSecret(t *testing.T) {
	t.Parallel()
	c := load(t, map[string]string{
		"IDEM_REDIS_URL": "redis://u:" + mark + "@h", "IDEM_DATABASE_URL": "postgres://u:" + mark + "@h/d",
		"IDEM_KEYS":        oneKey(t) + "," + mark + ":" + strings.Repeat(mark, 11),
		"IDEM_SERVICE_KEY": mark, "IDEM_OPS_PASSWORD": mark,
	})
	out := &journal{}
	out.logger().Info("settings", "config", c, "key", c.ServiceKey)
	slog.New(slog.NewTextHandler(out, nil)).Info("settings", "config", c, "key", c.ServiceKey)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(out, verb+verb+"\n", c, c.OpsPassword)
	}
	if shown := out.String(); strings.Contains(shown, mark) || !strings.Contains(shown, "[set]") {
		t.Errorf("shown: %s", shown)
	}
	if server.Secret("").String() != "" || c.ServiceKey.Reveal() != mark {
		t.Error("an empty secret is shown as empty, and Reveal is the text")
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	var named []string
	for _, v := range server.Variables() {
		named = append(named, v.Name+"="+v.Default)
		if v.Allowed == "" || v.Allowed == "empty" {
			t.Errorf("%s: it is not said what it may be", v.Name)
		}
		// A default must be a value that Load takes.
		if _, err := server.Load(map[string]string{v.Name: v.Default}); err != nil {
			t.Error(err)
		}
	}
	want := "IDEM_ADDR=127.0.0.1:8080 IDEM_REDIS_URL= IDEM_DATABASE_URL= IDEM_KEYS= IDEM_TOKEN_TTL=30m IDEM_LEASE=15s IDEM_WAIT=10s IDEM_RETENTION=720h " +
		"IDEM_RESULT_RETENTION=24h IDEM_PUBLIC_URL= IDEM_TOKEN_RATE=600/1m IDEM_SERVICE_KEY= IDEM_OPS_PASSWORD="
	if got := strings.Join(named, " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestWarnUnknown(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	server.WarnUnknown(t.Context(), []string{"IDEM_KEY=" + mark, "IDEM_LEASE=1s", "HOME=" + mark, "IDEM_="}, slog.New(slog.NewTextHandler(&log, nil)))
	text := log.String()
	for _, variable := range []string{"variable=IDEM_KEY\n", "variable=IDEM_\n"} {
		if !strings.Contains(text, variable) {
			t.Errorf("no %q in %s", variable, text)
		}
	}
	if strings.Contains(text, mark) || strings.Count(text, "\n") != 2 {
		t.Errorf("it says %s", text)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	if got := strings.Count(server.Describe(), "\n"); got != len(server.Variables()) {
		t.Errorf("%d lines of %d variables", got, len(server.Variables()))
	}
	if got := server.Describe("IDEM_LEASE"); got != "  IDEM_LEASE: 1ms to 1h, such as 15s (default 15s)\n" {
		t.Errorf("%q", got)
	}
}
