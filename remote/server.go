package remote

import (
	"context"
	"fmt"
	"slices"
)

// Server is what a server says of itself.
type Server struct {
	Model         string // the model that is asked
	ContextTokens int    // its limit for context and output together; 0: it does not say
}

// connect asks a server for its models and picks the one that is to be used.
func (c *client) connect(ctx context.Context) (Server, error) {
	var answer struct {
		Data []struct {
			ID          string `json:"id"`
			MaxModelLen int    `json:"max_model_len"` // vLLM and SGLang have it
		} `json:"data"`
	}
	if _, err := c.call(ctx, "/v1/models", nil, func(text []byte) error { return parse(text, &answer) }); err != nil {
		return Server{}, fmt.Errorf("server %s: %w", c.shown, err)
	}
	names := make([]string, len(answer.Data))
	for i, m := range answer.Data {
		names[i] = m.ID
	}
	at := slices.Index(names, c.Model)
	if c.Model == "" && len(names) > 0 {
		at = 0
	}
	if len(names) == 0 {
		return Server{}, fmt.Errorf("server %s: %w: it lists no model", c.shown, ErrRefused)
	}
	if at < 0 {
		return Server{}, fmt.Errorf("server %s: %w: it has no model %q, but %q", c.shown, ErrRefused, c.Model, names)
	}
	return Server{Model: names[at], ContextTokens: max(0, answer.Data[at].MaxModelLen)}, nil
}
