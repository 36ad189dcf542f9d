package redisstream

// Missing is missing, for the texts of Redis versions that are not at hand.
var Missing = missing
