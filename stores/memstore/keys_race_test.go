//go:build race

package memstore_test

// keysSeen is smaller under the race detector, which makes every access ten times as dear; the bytes are measured without it.
const keysSeen = 200_000
