"""The strings that tokenizer_vectors.py encodes, and the text that it trains small tokenizers on: written by hand or drawn by a seed."""

import random

CORPUS = [
    "The harbour of the old town lies where the river meets the sea. In the spring the boats go out before the sun is up, and they're "
    "back by noon; in the winter they don't go out at all. There's a light on the northern pier, built in 1871, and a second one on "
    "the island, built 40 years later.",
    "Question: which of the two lighthouses was built first? Answer: the one on the northern pier, which was built in 1871, while that on "
    "the island wasn't built until 1911. I'd say we've found what we'll need, and it's what I'm looking for.",
    "The whole of the whole story: whole words, whole lines, a whole page.\n\n\tIndented text\n\t\tand more of it\n    four spaces\n        eight\n",
    "def mean(values):\n    \"\"\"The mean of values, or 0 without any.\"\"\"\n    if not values:\n        return 0.0\n    total = 0.0\n    for value in values:\n"
    "        total += value\n    return total / len(values)\n\n\nprint(mean([1, 2, 3]))  # 2.0\n",
    "func (t *Tree) Insert(key int, value string) error {\n\tif t == nil {\n\t\treturn errors.New(\"nil tree\")\n\t}\n\tfor i := 0; i < 10; i++ {\n"
    "\t\tt.root = t.root.insert(key, value)\n\t}\n\treturn nil\n}\n",
    "Über den Fluß führt eine alte Brücke; daneben steht das schöne Gasthaus. Le café près de la gare était fermé, mais l'été il est ouvert. "
    "Двадцать лет назад здесь был лес, а теперь здесь город. 東京の夏は暑い。今日は雨が降っている。 北京的冬天很冷。 서울의 겨울은 춥다.",
    "Name: value\r\nOther: 12345\r\n\r\n{\"key\": [1, 2, 3], \"other\": {\"nested\": true}}\r\n<p class=\"note\">text</p>\r\n",
    "In 2024 there were 365 or 366 days; 1,000,000 is a million, 3.14159 is pi, 100% is all, and $20.00 is the price. (See page 7.)",
]

HAND = [
    "->", "(x):\n", "", " ", "a", "\n", "\r\n", "\t", "\0", "a\0b\0\0c", "\ufffd", "\ufffd\ufffd x\ufffd", "\ufeff", "\ufeffHello", "Hello, world!", "hello world", " hello",
    "hello ", "  hello", "hello  ", "   hello   world   ", "Hello\nWorld", "Hello\n\nWorld", "Hello \n \n World", "a\n\n\n\n\nb", "a \n", "a\n ", "a\r\rb", "a\r\n\r\nb",
    "a \r\n \r\n b", "\n\n\n", " \n\n", "\n \n", "\t\t\tx", "x\t\ty", " \t \t x", "a\u00a0b", "a\u00a0\u00a0b", " \u00a0 b", "\u3000\u3000字", "a\u2003\u2003b", "a\u200bb", "a\u0085b",
    "\u0085\u0085x", "a\u2028b\u2029c", "a\x1cb\x1d\x1e\x1fc", "\x0b\x0cx", "a\x7fb", "\x01\x02\x03", "\u180ex", "\u1680x",
    "don't", "DON'T", "Don'T", "it's", "IT'S", "we're we've we'll I'd I'm", "WE'RE WE'VE WE'LL I'D I'M", "'s", "''s", "' s", "'sx", "x'sx", "rock'n'roll", "'tis", "y'all'd've",
    "it\u2019s", "don\u2019t", "it'\u017f", "IT'\u017f a", "x'\u017fe", "'\u017f'\u017f", "1'\u017f", "a \u017f", "\u212a", "'\u212a", "it'\u212a", "1's 2'll 3'VE", "'S'T'RE'VE'M'LL'D", "'ll'Ll'lL'LL", "'re'Re'rE'RE",
    "'v'r'l", "'l l", "o'clock", "5'11\"", "'\u1e9e", "'\u0130", "'\u0131",
    "123", "1234567890", "12 345", "1,234,567.89", "3.14159", "2024-12-02T08:30:00Z", "0x1F", "1e-5", "v1.2.3", "$19.99", "50%", "1st 2nd 3rd", "a1b2c3", "\u00bd \u00b2 \u00b3", "H\u2082O x\u00b2", "\u2460\u2461 \u2167 \u3007",
    "\u0661\u0662\u0663\u0664", "\u0967\u0968\u0969 \u09e7\u09e8", "\uff11\uff12\uff13", "\U0001d7d8\U0001d7d9", "\u4e00\u4e8c\u4e09", "\u10107", "\U00010107\U00010108", "1\u0661\uff11\u00b21",
    "naive na\u00efve nai\u0308ve", "caf\u00e9", "cafe\u0301", "cafe\u0301s caf\u00e9s", "e\u0301e\u0301", "\u00e9\u00e9", "a\u0308\u0308", "A\u030a \u00c5 \u212b", "\u2126 \u03a9", "\ufb01 \ufb02", "\u1e9b\u0323", "q\u0307\u0323 q\u0323\u0307", "\u1100\u1161\u11a8", "\uac00\u11a8", "\ud55c\uae00",
    "\u304b\u3099", "\u304c", "\u0958", "\u0915\u093c", "\u0f43", "\u2adc", "\u0344", "\u0340\u0341", "\uf900\ufa0e", "\U0002f800", "\U0001d15e", "\u0301", "\u0301\u0301\u0301", " \u0301", "\n\u0301", "1\u0301", "'s\u0301", "a\u0328\u0301\u0302\u0303\u0304\u0305",
    "\u0300a", "\u0345\u0301\u0316", "Zal\u0351\u036b\u0343\u036a\u0302gotext".replace("g", "g\u0334\u0353"),
    "\u65e5\u672c\u8a9e\u306e\u6587\u7ae0\u3067\u3059\u3002", "\u4e2d\u6587\u6587\u672c\uff0c\u6ca1\u6709\u7a7a\u683c\u3002", "\ud55c\uad6d\uc5b4 \ubb38\uc7a5\uc785\ub2c8\ub2e4.", "\u0420\u0443\u0441\u0441\u043a\u0438\u0439 \u0442\u0435\u043a\u0441\u0442", "\u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u092e\u0947\u0902", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01", "\u10d2\u10d0\u10db\u10d0\u10e0\u10ef\u10dd\u10d1\u10d0", "\u1228\u1228\u12a5", "\u0ba4\u0bae\u0bbf\u0bb4\u0bcd", "\u0f56\u0f7c\u0f51\u0f0b", "\u1019\u103c\u1014\u103a\u1019\u102c", "abc \u202e\u05d0\u05d1\u05d2\u202c def", "\u200fRTL\u200e",
    "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f3f3\ufe0f\u200d\U0001f308", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\u2764\ufe0f \u2764", "1\ufe0f\u20e3", "\U0001f937\U0001f3fe\u200d\u2640\ufe0f ok", "\U0001fae8\U0001fae9\U0001fadf",
    "\U0001f600\U0001f600\U0001f600 \U0001f600", "\ue000\uf8ff", "\U000f0000\U0010fffd", "\U000e0041\U000e007f", "\uffff\ufffe", "\U0010ffff", "\ufdd0",
    "\u1c89\u1c8a", "\ua7cb\ua7cc\ua7cd\ua7da\ua7db\ua7dc", "\U00010d40\U00010d41\U00010d50\U00010d70", "\U000105c9\U000105d2\u0307", "\U00011383\U00011382\U000113c9", "\U00016121\U0001611e\U0001611e", "\U00016d68\U00016d67\U00016d67",
    "\U0002ebf0\U0002ee5d", "\U00011bf0\U00011bf1 \U0001ccf0\U0001ccf9", "\U0001e5d0\U0001e5f1", "\u0897\u0301", "a\u0897\u0323", "\u1adc\u1acf", "\ua7ce\ua7cf\ua7d2\ua7d4", "\U000323b0\U00033479", "\U00010940\U00010959", "\U00011db0\U00011de0", "\U00016ea0\U00016ebb", "\u20c1 \u20c0", "\u0c5c\u0cdc", "\U0001fa8a\U0001f6d8",
    "<|endoftext|>", "a<|endoftext|>b", "<|im_start|>user\nHi<|im_end|>\n", "text <|im_start|> text", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>", "<|endoftext|><|endoftext|>", "<|endoftext", "|endoftext|>", "<<|endoftext|>>",
    " <|endoftext|> ", "\n\n<|im_end|>\n\n", "<|endoftext|>\u0301", "<|im_\u0301start|>", "<think>\nx\n</think>\n\n", "<tool_call>\n{\"name\": 1}\n</tool_call>", "a<think>b", "<tool_response>x</tool_response>", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<|repo_name|>x<|file_sep|>y",
    "<|reserved_special_token_0|> <|reserved_special_token_247|>", "<|eot_id|>'s", "it<|im_end|>'s", " <|vision_start|><|image_pad|><|vision_end|>", "<repo_name> <file_sep> <filename> <gh_stars> <jupyter_start> <empty_output>", "<issue_start>x<issue_closed>", "<s></s> [INST] <pad> <unk>", "<think><think></think>", "< think >", "<THINK>",
    "<|left|>", "a  <|left|>  b", "a \n\t<|left|> b", "a <|both|> b", "a  <|both|>  <|both|>  b", "a<|both|>b", "\u00a0<|both|>\u3000b", "<right>  b", "a  <right>\n\n b", "<right> <right>", "a <both> b", "\u2003<both>\u2003", "<|x|> <|x|", "a <|x|> b", "<|endoftext|>|>", "|>|>", "<|left|>|> x", "x|>y", "<tool> <to <t <tool", "<tootool>",
    "a  b   c    d", "cafe\u0301s caf\u00e9s  caf\u00e9", "xe\u0301e\u0301x", "xa\u0308\u0308x xa\u0308\u0323\u0308", "<both>cafe\u0301s<both>", "<|left|><|left|>", " <right> <both> <|both|> <|left|> ",
    "<w>", "a<w>b", "a <w> b", "<w><w>", "<w>, <w>.", "word", "words", "sword", "a word b", "word word", "word,word", "word\u0301", "_word_", "1word", "word1", "word\u00e9", "\u00e9word", "word\u0661", "word-word", " strip ", "a  strip  b", "strip strip", "  strips", "x strip.", "\u05d0word", "\u0301word", "word\u200d", "word\u203fx", "word\u24d0", "\u20dd" "word",
    "Question: who wrote it?\nAnswer:", "https://example.org/a/b?c=d&e=f#g", "user@example.org", "C:\\Users\\x\\file.txt", "/usr/local/bin", "__init__", "snake_case_name", "camelCaseName", "SCREAMING_CASE", "kebab-case-name", "a+b=c", "a += b * (c - d) / e;", "if (x != y && z >= 3) { return !w; }\n",
    "for i in range(10):\n    print(i)\n", "#include <stdio.h>\r\nint main(void) {\r\n\treturn 0;\r\n}\r\n", "SELECT * FROM t WHERE a = 'b';", "<div class=\"x\">\n  <p>y</p>\n</div>", "{\"a\": [1, 2.5, null], \"b\": \"\\u00e9\"}", "\\alpha + \\beta = \\frac{1}{2}", "# Title\n\n- item\n- item\n\n```go\nx := 1\n```\n", "| a | b |\n|---|---|\n", "....", "...!!!???", "--", "---- ----", "====\n", "!@#$%^&*()",
    "\u201cquoted\u201d \u2018text\u2019", "\u2014 \u2013 \u2026", "\u00a1\u00bf", "a.b.c", "e.g. i.e.", "U.S.A.", "AT&T", "(a)(b)", "[[x]]", "~~~", "^_^", "\u20ac100 \u00a350", "\u00ae\u2122", "\u221a\u222b\u2211", "\u2190\u2192", "\u250c\u2500\u2510", "\u2580\u2588", "\u0138 \u0149 \u01c5", "\u00df \u1e9e \u0130 \u0131", "\u02bcs \u02b9",
    "qqzz", " whole", "whole", "a whole\n\n\nqqzz123", "\u00e4\u00f6", "x \u00e4\u00f6 123123",
    "a" * 100, " " * 100, "\n" * 100, "\t" * 50, "ab" * 100, "1" * 100, "!" * 100, "\u00e9" * 50, "e\u0301" * 50, "\u0301" * 60, "\U0001f600" * 30, "\u4e2d" * 60, "\u3160" * 40, "\u1161" * 40, "\uff9e" * 40, "\uac00" + "\u11a8" * 40, " a" * 60, " \n" * 50, "\r\n" * 50, "'s" * 40, "= " * 40,
    "a" * 5000, " " * 5000, " " * 5000 + "a", "ab" * 2500, "\n" * 5000, "1" * 5000,
]

CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"]

# First and last characters of scripts and of kinds of characters.
SCRIPTS = [
    (0x41, 0x7A), (0xC0, 0x24F), (0x370, 0x3FF), (0x400, 0x52F), (0x531, 0x58A), (0x591, 0x5F4), (0x600, 0x6FF), (0x700, 0x74F), (0x780, 0x7B1), (0x7C0, 0x7FA), (0x900, 0x97F), (0x980, 0x9FE), (0xA01, 0xA76), (0xA81, 0xAFF),
    (0xB01, 0xB77), (0xB82, 0xBFA), (0xC00, 0xC7F), (0xC80, 0xCF3), (0xD00, 0xD7F), (0xD81, 0xDF4), (0xE01, 0xE5B), (0xE81, 0xEDF), (0xF00, 0xFDA), (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x139F), (0x13A0, 0x13FD),
    (0x1400, 0x167F), (0x1680, 0x16F8), (0x1780, 0x17F9), (0x1800, 0x18AA), (0x1A20, 0x1AFF), (0x1B00, 0x1BFF), (0x1C80, 0x1CFF), (0x1D00, 0x1DFF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x20F0), (0x2100, 0x218F), (0x2190, 0x23FF),
    (0x2460, 0x24FF), (0x2C00, 0x2DFF), (0x2E80, 0x2FFF), (0x3001, 0x30FF), (0x3105, 0x33FF), (0x4E00, 0x9FFF), (0xA000, 0xA4C6), (0xA4D0, 0xA7FF), (0xA800, 0xABFF), (0xAC00, 0xD7A3), (0xD7B0, 0xD7FB), (0xE000, 0xF8FF), (0xF900, 0xFAFF),
    (0xFB00, 0xFDFF), (0xFE00, 0xFE6F), (0xFF01, 0xFFEE), (0x10000, 0x101FD), (0x10280, 0x103FF), (0x10400, 0x105FF), (0x10800, 0x10CFF), (0x10D00, 0x10EFF), (0x11000, 0x114FF), (0x11580, 0x11BFF), (0x11C00, 0x11FFF), (0x12000, 0x12543),
    (0x13000, 0x143FA), (0x16100, 0x16139), (0x16A00, 0x16F9F), (0x17000, 0x18D08), (0x1B000, 0x1B2FB), (0x1CC00, 0x1CEFF), (0x1D100, 0x1D7FF), (0x1E000, 0x1E6FF), (0x1E800, 0x1EEFF), (0x1F000, 0x1FBFF), (0x20000, 0x2A6DF), (0x2EBF0, 0x2FA1F),
    (0x30000, 0x323AF), (0xE0001, 0xE01EF),
]
SPACES = [" ", " ", " ", "\n", "\n", "\r", "\r\n", "\t", "\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\u200b", "\x1c", "\u180e", "\ufeff", "\x0b", "\x0c"]
MARKS = [0x300, 0x301, 0x302, 0x303, 0x304, 0x306, 0x307, 0x308, 0x30A, 0x30C, 0x316, 0x31B, 0x323, 0x325, 0x327, 0x328, 0x32D, 0x331, 0x334, 0x338, 0x342, 0x345, 0x3099, 0x309A, 0x5B0, 0x64B, 0x651, 0x93C, 0x9BE, 0xDCF, 0x1161, 0x11A8, 0x1AC0, 0x897, 0x1DFA]
ZEROS = [0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x17E0, 0x1810, 0xFF10, 0x104A0, 0x11066, 0x1D7CE, 0x1E950, 0x10D40, 0x16D70, 0xB2, 0x2080, 0x2160, 0x2460, 0x3021, 0x10107, 0x12400, 0x1D360, 0x2CFD, 0x9F4]
CODE = ["func", "return", "if", "self", "(", ")", "{", "}", "[", "]", ":=", "==", "->", "=>", ";", ",", ".", "\n", "\n\t", "\n    ", " ", " ", "0", "1", "42", "\"", "'", "//", "/*", "#", "_", "foo", "barBaz", "QUX", "nil", "...", "&&", "||", "<", ">", "\\n", "%d", "$", "@"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|begin_of_text|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|left|>", "<|both|>", "<right>", "<both>", "|>", "<|"]


def character(rng):
    low, high = rng.choice(SCRIPTS)
    return chr(rng.randint(low, high))


def word(rng):
    low, high = rng.choice(SCRIPTS)
    return "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6)))


def mixture(rng, n):
    parts = [
        lambda: rng.choice(SPACES) * rng.choice([1, 1, 1, 2, 3]), lambda: word(rng), lambda: rng.choice(CORPUS)[(a := rng.randrange(200)) : a + rng.randrange(12)],
        lambda: rng.choice(CONTRACTIONS + ["'S", "'LL", "'\u017f", "\u2019s"]), lambda: chr(rng.choice(ZEROS) + rng.randrange(4)) * rng.choice([1, 2, 4]), lambda: rng.choice(CODE),
        lambda: character(rng) + chr(rng.choice(MARKS)), lambda: rng.choice(["!", "?!", "\u200d", "\ufe0f", "\0", "\ufffd", "-", "\u2014"]),
    ]
    return "".join(rng.choice(parts)() for _ in range(n))


def strings():
    """At least 1,000 strings, none twice."""
    rng, out = random.Random(1), list(HAND)
    for c in CONTRACTIONS:
        out += [f"x{c} y", f"X{c.upper()} Y", f"1{c}2", f" {c}", f"{c}{c[1:]}", f"x {c.title()}", f"\n{c}\n", f"!{c}!"]
    for _ in range(130):
        out.append("".join(rng.choice(SPACES + ["a", "1", "!", " b", ".\n"]) for _ in range(rng.randint(1, 10))))
    for low, high in SCRIPTS:
        out.append(" ".join("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6))) for _ in range(rng.randint(1, 4))))
    for zero in ZEROS:
        out.append("".join(chr(zero + rng.randrange(9)) for _ in range(rng.randint(2, 5))) + "x" + chr(zero + 1) + " " + chr(zero + 2) + "1")
    for _ in range(110):
        base = rng.choice([lambda: chr(rng.randint(0x41, 0x7A)), lambda: chr(rng.randint(0xC0, 0x24F)), lambda: chr(rng.randint(0x1E00, 0x1FFF)), lambda: character(rng)])
        out.append("".join(base() + "".join(chr(rng.choice(MARKS)) for _ in range(rng.randrange(4))) for _ in range(rng.randint(1, 4))))
    for _ in range(60):
        out.append("".join(rng.choice(CODE) for _ in range(rng.randint(3, 25))))
    for _ in range(60):
        text = rng.choice(CORPUS)
        a = rng.randrange(len(text) - 20)
        out.append(text[a : a + rng.randint(5, 80)])
    for _ in range(60):
        out.append("".join(rng.choice(SPECIALS + [" ", "\n", "a", "  ", "caf\u00e9s", "e\u0301", "\u3000"]) for _ in range(rng.randint(2, 7))))
    for _ in range(260):
        out.append(mixture(rng, rng.randint(2, 10)))
    out = list(dict.fromkeys(s for s in out if not any(0xD800 <= ord(c) < 0xE000 for c in s)))
    assert len(out) >= 1000
    return out
