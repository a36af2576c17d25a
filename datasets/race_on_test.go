//go:build race

package datasets

// underRace: the race detector makes reading ten times slower.
const underRace = true
