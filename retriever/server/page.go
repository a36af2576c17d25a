package server

import (
	_ "embed" // the page and the description of the interface
	"net/http"
)

//go:embed openapi.json
var openAPI []byte

//go:embed page.html
var page []byte

// serve answers with fixed bytes.
func serve(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body)
	}
}
