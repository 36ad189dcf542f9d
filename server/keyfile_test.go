package server_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/idemkit/idem/server"
	"github.com/idemkit/idem/tokens"
)

// issue signs a token with the back ends of the settings, and closes them.
func issue(t *testing.T, environ map[string]string) (token string, verify func(string) error) {
	t.Helper()
	b := open(t, environ, discard())
	issued, err := b.Tokens.Issue(tokens.Grant{Action: "order.create", Subject: tokens.SubjectDigest("", "s")})
	if err != nil {
		t.Fatal(err)
	}
	return issued.Token, func(token string) error { _, err := b.Tokens.Verify(token); return err }
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ database, keys string }{
		"beside a .db":          {"idem-demo.db", "idem-demo.keys"},
		"beside another name":   {"ledger.sqlite", "ledger.sqlite.keys"},
		"beside a bare name":    {"ledger", "ledger.keys"},
		"in the file's own dir": {filepath.Join("data", "ledger.db"), filepath.Join("data", "ledger.keys")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, c.database)), 0o700); err != nil {
				t.Fatal(err)
			}
			environ := map[string]string{"IDEM_DATABASE_URL": "sqlite:" + filepath.Join(folder, c.database)}
			token, _ := issue(t, environ)
			file, err := os.Stat(filepath.Join(folder, c.keys))
			if err != nil {
				t.Fatal(err)
			}
			if mode := file.Mode(); mode != 0o600 {
				t.Errorf("mode %v", mode)
			}
			if _, verify := issue(t, environ); verify(token) != nil {
				t.Error("the next start does not know the token")
			}
			if left, _ := filepath.Glob(filepath.Join(folder, filepath.Dir(c.keys), ".*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestKeyFileIsNotMadeWhereKeysAreGiven(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	issue(t, map[string]string{"IDEM_DATABASE_URL": "sqlite:" + filepath.Join(folder, "a.db"), "IDEM_KEYS": oneKey(t)})
	if _, err := os.Stat(filepath.Join(folder, "a.keys")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a key file: %v", err)
	}
}

// Processes that start at once must agree on one key, whoever makes it.
func TestKeyFileRace(t *testing.T) {
	t.Parallel()
	config := load(t, map[string]string{"IDEM_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "a.db")})
	const starters = 8
	all := make([]*server.Backends, starters)
	failed := make([]error, starters)
	var ready, done sync.WaitGroup
	ready.Add(starters)
	for i := range starters {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			all[i], failed[i] = server.Open(t.Context(), config, discard())
		})
	}
	done.Wait()
	var token string
	for i, b := range all {
		if failed[i] != nil {
			t.Errorf("starter %d: %v", i, failed[i])
			continue
		}
		t.Cleanup(func() { _ = b.Close() })
		if token == "" {
			issued, err := b.Tokens.Issue(tokens.Grant{Action: "a", Subject: tokens.SubjectDigest("", "s")})
			if err != nil {
				t.Fatal(err)
			}
			token = issued.Token
		}
		if _, err := b.Tokens.Verify(token); err != nil {
			t.Errorf("starter %d has another key: %v", i, err)
		}
	}
}

func TestKeyFileThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	secret := "kid:" + strings.Repeat(mark, 3) // too short
	for name, c := range map[string]struct {
		make func(path string) error
		says string
	}{
		"damaged":  {func(path string) error { return os.WriteFile(path, []byte(secret), 0o600) }, "it does not hold keys in the form of IDEM_KEYS; restore it, or remove it"},
		"empty":    {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "it does not hold keys"},
		"a folder": {func(path string) error { return os.Mkdir(path, 0o700) }, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := filepath.Join(t.TempDir(), "a.db")
			path := strings.TrimSuffix(database, ".db") + ".keys"
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			_, err := server.Open(t.Context(), load(t, map[string]string{"IDEM_DATABASE_URL": "sqlite:" + database}), discard())
			if err == nil {
				t.Fatal("opened")
			}
			if text := err.Error(); !strings.HasPrefix(text, "IDEM_KEYS is empty, and the key file "+path+" cannot be used: ") ||
				!strings.Contains(text, c.says) || strings.Contains(text, mark) {
				t.Error(text)
			}
		})
	}
}

// Load refuses this, and Open does so for who fills the Config in by hand.
func TestOpenRefusesSharedStoresWithoutKeys(t *testing.T) {
	t.Parallel()
	c := load(t, nil)
	c.RedisURL = "redis://127.0.0.1:1"
	_, err := server.Open(t.Context(), c, discard())
	var setting *server.SettingError
	if !errors.As(err, &setting) || setting.Variable != "IDEM_KEYS" {
		t.Errorf("%v", err)
	}
}
