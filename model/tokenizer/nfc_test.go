package tokenizer

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestNFC: what tokenizers 0.23.3 (normalizers.NFC) makes of each text.
func TestNFC(t *testing.T) {
	repeat := strings.Repeat
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"plain 1984\n", "plain 1984\n"},
		{"e\u0301", "\u00e9"},
		{"a\u0323\u0302 \u1ea1\u0302", "\u1ead \u1ead"},
		{"a\u0302\u0323", "\u1ead"},
		{"\u0301e", "\u0301e"},
		{"\u1100\u1161\u11a8", "\uac01"},
		{"\u212b\u2126", "\u00c5\u03a9"},
		{"\u0344", "\u0308\u0301"},
		{"\u0958", "\u0915\u093c"},
		// Marks later than Unicode 9.0 stay where they are, and part what is around them.
		{"O\u032b\u0349\U00011f42", "O\u032b\u0349\U00011f42"},
		{"I\u036c\u0d3c", "I\u036c\u0d3c"},
		{"e\u1df6\u0301", "e\u1df6\u0301"},
		{"e\u0301\u1df6\u0323", "\u00e9\u1df6\u0323"},
		{"a\u0302\u0323\u08ca", "\u1ead\u08ca"},
		{"\U00011935\U00011930", "\U00011935\U00011930"},
		{"\U00011938", "\U00011938"},
		// Nothing is put into many marks.
		{"e" + repeat("\u0301", 60), "\u00e9" + repeat("\u0301", 59)},
		{repeat("\u0301", 33), repeat("\u0301", 33)},
		{"x" + repeat("\u0323\u0301", 31), "x" + repeat("\u0323", 31) + repeat("\u0301", 31)},
		{"a" + repeat("\u0334", 40) + "\u0301", "\u00e1" + repeat("\u0334", 40)},
		// Bytes that are no character stay.
		{"\xffe\u0301\xe4\xbd", "\xff\u00e9\xe4\xbd"},
		{"\xffe" + repeat("\u0301", 40) + "\xe4\xbd", "\xff\u00e9" + repeat("\u0301", 39) + "\xe4\xbd"},
	} {
		if got := nfc(c.text); got != c.want {
			t.Errorf("nfc(%+.80q) = %+.80q, want %+.80q", c.text, got, c.want)
		}
		if got := composed(ordered(c.text)); got != c.want {
			t.Errorf("composed(ordered(%+.80q)) = %+.80q, want %+.80q", c.text, got, c.want)
		}
	}
}

// TestNFCAgainstText holds the longer way to golang.org/x/text's where the two are to agree.
func TestNFCAgainstText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 20000 {
		var b strings.Builder
		for range 1 + rng.IntN(8) {
			switch rng.IntN(4) {
			case 0:
				b.WriteRune('a' + rng.Int32N(26))
			case 1:
				b.WriteRune(0x300 + rng.Int32N(0x70))
			case 2:
				b.WriteRune(0x80 + rng.Int32N(0x3000))
			case 3:
				b.WriteRune([]rune{0x1100, 0x1161, 0x11a8, 0xac00, 0x3099, 0x304b}[rng.IntN(6)] + rng.Int32N(20))
			}
		}
		text := b.String()
		if _, later := longestMarks(text); later {
			continue
		}
		compared++
		if got, want := composed(ordered(text)), norm.NFC.String(text); got != want {
			t.Fatalf("%+q: %+q, want %+q", text, got, want)
		}
	}
	if compared < 10000 {
		t.Errorf("only %d texts compared", compared)
	}
}
