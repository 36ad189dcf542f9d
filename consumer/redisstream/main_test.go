package redisstream_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/idemkit/idem/consumer"
	"github.com/idemkit/idem/consumer/consumertest"
	"github.com/idemkit/idem/consumer/redisstream"
	"github.com/idemkit/idem/internal/testkit"
	"github.com/idemkit/idem/stores/sqlitestore"
)

// The test binary runs again as a process to be killed where these are set.
const (
	nameVariable   = "IDEM_REDISSTREAM_CONSUMER"
	addrVariable   = "IDEM_REDISSTREAM_ADDR"
	streamVariable = "IDEM_REDISSTREAM_STREAM"
	ledgerVariable = "IDEM_REDISSTREAM_LEDGER"
	sameTxVariable = "IDEM_REDISSTREAM_SAME_TX"
	grantsVariable = "IDEM_REDISSTREAM_GRANTS" // the handler writes before it hangs
)

func TestMain(m *testing.M) {
	if name := os.Getenv(nameVariable); name != "" {
		if err := hang(context.Background(), name); err != nil {
			fmt.Fprintln(os.Stdout, "failed:", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func hang(ctx context.Context, name string) error {
	db, err := sqlitestore.Open(os.Getenv(ledgerVariable))
	if err != nil {
		return err
	}
	ledger, err := sqlitestore.New(db, sqlitestore.Options{})
	if err != nil {
		return err
	}
	rdb := redis.NewClient(testkit.RedisOptions(os.Getenv(addrVariable)))
	var options []consumer.Option
	if sameTx, _ := strconv.ParseBool(os.Getenv(sameTxVariable)); sameTx {
		options = append(options, consumer.SameTx())
	}
	run := func(ctx context.Context, c *consumer.Consumer) error {
		adapter, err := redisstream.New(rdb, config(os.Getenv(streamVariable), 1))
		if err != nil {
			return err
		}
		return adapter.Run(ctx, c)
	}
	if os.Getenv(grantsVariable) == "" {
		return consumertest.Hang(ctx, ledger, name, os.Stdout, run, options...)
	}
	c, err := consumer.New(ledger, name, func(ctx context.Context, m consumer.Message) error {
		if err := grant(ctx, m); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, "begun")
		<-ctx.Done()
		return ctx.Err()
	}, append(options, consumer.Lease(time.Second), consumer.Limit(time.Hour))...)
	if err != nil {
		return err
	}
	return run(ctx, c)
}

const grantsTable = `CREATE TABLE grants (id TEXT NOT NULL)`

// grant writes in the ledger's transaction.
func grant(ctx context.Context, m consumer.Message) error {
	tx, err := sqlitestore.Tx(ctx)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO grants VALUES (?)`, m.ID)
	return err
}
