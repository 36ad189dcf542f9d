package redisstore

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/idemkit/idem"
)

// longest is the greatest Duration, in microseconds: rounding up may have gone beyond.
const longest = math.MaxInt64 / int64(time.Microsecond)

// record reads what describe in record.lua returns.
func record(key idem.Key, f []string) (idem.Record, error) {
	if len(f) != 11 {
		return idem.Record{}, unexpected(f)
	}
	attempt, badAttempt := strconv.Atoi(f[1])
	left, badLease := strconv.ParseInt(f[6], 10, 64)
	status, badStatus := strconv.Atoi(f[7])
	keep, badKeep := strconv.ParseInt(f[10], 10, 64)
	if err := errors.Join(badAttempt, badLease, badStatus, badKeep); err != nil {
		return idem.Record{}, fmt.Errorf("redisstore: a record's number: %w", err)
	}
	found := idem.Record{
		Key: key, State: idem.State(f[0]), Attempt: attempt, Owner: f[2], Subject: f[3], RequestID: f[4],
		Fingerprint: bytesOf(f[5]), LeaseLeft: time.Duration(min(left, longest)) * time.Microsecond,
	}
	if found.State != idem.Succeeded {
		return found, nil
	}
	found.Result.Status = status
	if f[8] == "" {
		return found, nil
	}
	header, body, err := decode(f[9])
	if err != nil {
		return idem.Record{}, err
	}
	found.Result = idem.Result{Status: status, Header: header, Body: body, Kept: true,
		Keep: time.Duration(min(keep, longest/1000)) * time.Millisecond}
	return found, nil
}

// bytesOf gives nil for what there is not.
func bytesOf(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
