package sqlitestore_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/idemkit/idem"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// The test binary runs again as another process where these are set: what it does there, and on which file.
const (
	roleVariable = "IDEM_SQLITESTORE_ROLE"
	fileVariable = "IDEM_SQLITESTORE_FILE"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := play(context.Background(), role, os.Getenv(fileVariable)); err != nil {
			fmt.Fprintln(os.Stdout, "failed:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// play does its part, says "ready" and, unless the part is over then, waits to be killed.
func play(ctx context.Context, role, path string) error {
	db, err := sqlitestore.Open(path)
	if err != nil {
		return err
	}
	defer db.Close()
	if role == "migrate" {
		return sqlitestore.Migrate(ctx, db, sqlitestore.Options{})
	}
	store, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		return err
	}
	if role == "contend" {
		return contend(ctx, store)
	}
	if err := die(ctx, store, role); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "ready")
	_, err = io.Copy(io.Discard, os.Stdin) // ends when the parent does
	return err
}

// die brings an order to the point at which the process is killed.
func die(ctx context.Context, store *sqlitestore.Store, role string) error {
	q := request("1")
	var answer idem.Answer
	var work idem.Tx
	var err error
	if role == "same transaction" {
		answer, ctx, work, err = store.ClaimTx(ctx, q, 0)
	} else if answer, err = store.Claim(ctx, q); err == nil {
		ctx, work = store.Open(ctx, answer.Claim, 0)
	}
	if err != nil || role == "claimed" {
		return err
	}
	tx, err := sqlitestore.Tx(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO orders VALUES ('1')`); err != nil {
		return err
	}
	if role == "completed" {
		return work.Complete(ctx, created())
	}
	return nil
}

const contended = 60

// contend claims every key and says how many it won.
func contend(ctx context.Context, store *sqlitestore.Store) error {
	won := 0
	for i := range contended {
		answer, err := store.Claim(ctx, request(fmt.Sprint(i)))
		if err != nil {
			return err
		}
		if answer.Outcome == idem.Won {
			won++
			if err := store.Complete(ctx, answer.Claim, created()); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(os.Stdout, "won", won)
	return nil
}

// process is this test binary in a role.
func process(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, fileVariable+"="+path)
	return cmd
}

// killed runs a role until it is ready and kills it there.
func killed(t *testing.T, role, path string) {
	t.Helper()
	cmd := process(t, role, path)
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if killErr := cmd.Process.Kill(); killErr != nil {
		t.Error(killErr)
	}
	_ = cmd.Wait() // killed
	if err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
}
