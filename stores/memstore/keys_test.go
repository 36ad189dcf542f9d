//go:build !race

package memstore_test

// keysSeen is the number of keys of TestMillionKeys.
const keysSeen = 1_000_000
