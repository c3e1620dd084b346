/// The value that a member of a request is set to, as text: valid JSON or not.
struct HostileValue {
    /// Short enough to be printed.
    var name: String
    var text: String
    /// Whether it is tried because of its size.
    var isNumber = false

    init(_ text: String, named name: String? = nil) {
        self.name = name ?? text
        self.text = text
    }

    static func repeated(_ unit: String, _ count: Int) -> HostileValue {
        HostileValue("\"" + String(repeating: unit, count: count) + "\"", named: "\"\(unit)\" × \(count)")
    }
}

extension HostileValue {
    /// Values on each side of the ranges of integers and doubles, and texts that are no JSON numbers.
    static let numbers: [HostileValue] = [
        "0", "-1", "1", "0.5", "2147483647", "2147483648", "2147483649", "-2147483647", "-2147483648", "-2147483649",
        "4294967295", "4294967296", "9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993",
        "4611686018427387392", "4611686018427387904", "9223372036854774784", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "18446744073709551616", "1e308", "-1e308", "5e-324", "1e309",
        "1000000", "1000001", "NaN", "Infinity", "-Infinity", "\"NaN\"", "\"1\"", "-0", "-0.0",
    ].map {
        var value = HostileValue($0)
        value.isNumber = true
        return value
    }

    /// Values of other types than the declared one.
    static let others: [HostileValue] = [
        "null", "true", "[]", "{}", "[[[]]]", "{\"a\":{\"b\":null}}", "[0,null]", "{\".sv\":\"timestamp\"}",
        "{\".sv\":{\"increment\":1e308}}", "{\".sv\":{\"increment\":9007199254740993}}",
        "{\".value\":1,\".priority\":-1}",
        "{\".value\":{\"a\":1}}", "{\".priority\":{\"a\":1}}", "{\"\":1}", "{\"a/b\":1}", "{\"value\":1,\"key\":2}",
    ].map { HostileValue($0) }

    /// Lengths on each side of every limit of members, and characters with a special meaning somewhere.
    static let texts: [HostileValue] =
        [
            "\"\"", "\" \"", "\"a\"", "\"\\u0000\"", "\"a\\u0000b\"", "\"\u{0}\"", "\"\\ud800\"", "\"\\udc00\\ud800\"",
            "\"\\ud83d\\ude00\"", "\"😀\"", "\"\u{202E}txt.exe\"", "\"שלום\"", "\"é\"", "\"e\u{301}\"", "\"\u{FEFF}\"",
            "\"\u{FFFF}\"", "\"\u{10FFFF}\"", "\"\\u007f\"", "\"\\u001f\"", "\"\\n\"", "\"a\\tb\"", "\".\"", "\"..\"",
            "\"#\"",
            "\"$\"", "\"$key\"", "\"[]\"", "\"/\"", "\"//\"", "\"/a/\"", "\"/.priority\"", "\"a/.priority/b\"",
            "\"/.info\"",
            "\"/.sv\"", "\"{\"", "\"{a\"", "\"{a}{a}\"", "\"/{a}/{a}\"", "\"\\\\\"", "\"%00\"", "\"%2F\"",
            "\"../../etc/passwd\"",
            "\"-1\"", "\"9223372036854775808\"", "\"[MIN_NAME]\"", "\"[MAX_NAME]\"",
            "\"00000000000000000000000000000000\"",
            "\"http://[::1\"", "\"https://a:99999999999/\"", "\"https://\"", "\"a@\"", "\"@b\"", "\"a@b.\"", "\"ſ\"",
            "\"İ\"", "\"ß\"",
            "\"a'b\\\"c\"", "\"eyJhbGciOiJFUzI1NiJ9.eyJleHAiOjFlMzA4fQ.AAAA\"", "\"..\"", "\"a.b.c\"", "\"\\x\"",
            "\"open",
        ].map { HostileValue($0, named: $0.debugDescription) } + lengths.flatMap { [repeated("a", $0)] }
        + [127, 255, 256, 257, 768, 1025, 4097].flatMap { [repeated("é", $0), repeated("😀", $0)] }
        + [31, 32, 33, 64, 1000].flatMap { [repeated("/a", $0), repeated("a/", $0), repeated("{a}", $0)] }
        + [16, 20_000].flatMap { [repeated("\\u0000", $0), repeated("[", $0), repeated("(", $0)] }

    private static let lengths = [
        19, 20, 21, 63, 64, 65, 127, 128, 129, 200, 201, 253, 254, 255, 256, 257, 767, 768, 769, 785, 786, 787, 999,
        1000, 1001, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8192, 16_384, 16_385, 30_000, 65_535, 65_536,
        65_537, 262_143, 262_145, 524_288, 524_289, 1_048_576, 1_048_577,
    ]

    /// Texts on each side of the large limits.
    static let longTexts = [10_485_760, 10_485_761, 16_777_216].map { repeated("a", $0) }
}
