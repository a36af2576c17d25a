// Package report shows an outcome as one HTML page that needs nothing but itself:
// the paper's tables, pictures with the numbers they were drawn from, and the
// recorded trajectories call by call. Each picture is also a file of its own, SVG
// and PNG, from one drawing code.
//
// What is lacking is said with the command that makes it; nothing is drawn in its
// place. Texts of models, documents and questions never become markup.
package report
