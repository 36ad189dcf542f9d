package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/idemkit/idem/tokens"
)

// ring is the keys of the setting, or those kept beside the SQLite file.
func (c Config) ring(ctx context.Context, sqlite string, logger *slog.Logger) ([]tokens.Key, error) {
	if c.Keys == "" && (c.RedisURL != "" || sqlite == "") {
		return nil, &SettingError{"IDEM_KEYS", c.checkShared()}
	}
	if c.Keys != "" {
		ring, err := tokens.ParseKeys(c.Keys.Reveal())
		if err != nil {
			return nil, refused("IDEM_KEYS", err)
		}
		return ring, nil
	}
	path := keyFile(sqlite)
	ring, made, err := keptKeys(path)
	if err != nil {
		return nil, fmt.Errorf("IDEM_KEYS is empty, and the key file %s cannot be used: %w", absolute(path), err)
	}
	logger.InfoContext(ctx, "idem: the signing key is kept in a file", "path", absolute(path), "new", made)
	return ring, nil
}

// keyFile is beside the database: idem-demo.db has idem-demo.keys.
func keyFile(sqlite string) string { return strings.TrimSuffix(sqlite, ".db") + ".keys" }

// errKeyFile shows nothing of the file: it holds a secret, or one that was damaged.
var errKeyFile = errors.New("it does not hold keys in the form of IDEM_KEYS; restore it, or remove it to have a new key made, " +
	"whereupon tokens that are out are refused and everybody loads the page again")

// keptKeys reads the file, and makes it where there is none. Of several processes that start at once one makes it, and all read the same.
func keptKeys(path string) (ring []tokens.Key, made bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if made, err = makeKeyFile(path); err != nil {
			return nil, false, err
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, false, err
	}
	ring, err = tokens.ParseKeys(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, false, fmt.Errorf("%w (%w)", errKeyFile, err)
	}
	return ring, made, nil
}

// makeKeyFile writes the key under another name and links it to its own: the file is whole or not there, whoever looks and whatever crashes, and
// link, like O_EXCL, refuses a name that is taken.
func makeKeyFile(path string) (made bool, err error) {
	setting, err := tokens.GenerateHS256("demo")
	if err != nil {
		return false, err
	}
	// CreateTemp opens with O_EXCL and mode 0600.
	draft, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.WriteString(setting + "\n")
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return false, err
	}
	switch err := os.Link(draft.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return false, nil
	default:
		return err == nil, err
	}
}
