// Package page shows an audit as one HTML page that needs nothing but itself: what
// each layout stores, at which positions, what sees what, where that differs from
// the states in which the tokens were sampled, and what comes of it.
//
// Switching between trajectories and layouts is plain HTML and CSS; the script only
// moves the cursor that asks about single tokens. Token texts are what a model or a
// document wrote, so nothing of them ever becomes markup.
package page
