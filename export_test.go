package idem

// Flying counts the keys that somebody waits for.
func Flying(e *Engine) int {
	e.flights.mu.Lock()
	defer e.flights.mu.Unlock()
	return len(e.flights.flying)
}
