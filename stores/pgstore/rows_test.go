//go:build !race && !million

package pgstore_test

// rowsPurged is the number of rows of TestPurgeWhileOtherKeysAreClaimed.
const rowsPurged = 100_000
