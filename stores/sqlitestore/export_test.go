package sqlitestore

// Waiting is how many renewals and how many other writers wait for the gate.
func (s *Store) Waiting() (urgent, regular int) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return len(s.gate.urgent), len(s.gate.regular)
}
