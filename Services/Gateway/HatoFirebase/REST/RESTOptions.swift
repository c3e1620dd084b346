import HatoModel

/// What the parameters of a request say about the form of its response and about its size (spec realtime-database
/// §7.2).
struct RESTOptions: Sendable, Hashable {
    /// How a response is printed.
    enum Print: Sendable, Hashable {
        case compact
        case pretty
        /// No body, status 204.
        case silent
    }

    var printing = Print.compact
    var isShallow = false
    /// With priorities.
    var isExport = false
    /// Rules without comments.
    var isStrict = false
    /// Rules are only checked.
    var isDryRun = false
    /// The function that a JSONP response calls.
    var callback: String?
    /// The file name of a download.
    var download: String?
    /// What a read may take.
    var timeoutMs: Int?
    /// Values that a write may have; nil: as many as the service takes.
    var writeValuesMax: Int?

    init() {}

    init(_ parameters: QueryParameters, _ limits: RESTLimits) throws(RESTError) {
        switch parameters["print"] {
        case nil: break
        case "pretty": printing = .pretty
        case "silent": printing = .silent
        default: throw RESTErrors.parameter("print", "pretty or silent")
        }
        switch parameters["format"] {
        case nil: break
        case "export": isExport = true
        case "strict": isStrict = true
        default: throw RESTErrors.parameter("format", "export or strict")
        }
        isShallow = try parameters.flag("shallow")
        isDryRun = try parameters.flag("dryRun")
        callback = try parameters["callback"].map { text throws(RESTError) in try Self.callback(text) }
        download = parameters.nonEmpty("download")
        timeoutMs = try parameters["timeout"].map { text throws(RESTError) in try Self.milliseconds(text) }
        writeValuesMax = try Self.writeValuesMax(parameters["writeSizeLimit"], limits.valuesPerSecond)
    }

    /// Characters of the name of a function.
    private static let callbackBytesMax = 128

    /// Identifiers with dots between them: nothing else may reach a script.
    private static func callback(_ text: String) throws(RESTError) -> String {
        let isSafe =
            text.utf8.count <= callbackBytesMax
            && text.split(separator: ".", omittingEmptySubsequences: false)
                .allSatisfy { name in
                    guard let first = name.utf8.first, !isDigit(first) else { return false }
                    return name.utf8.allSatisfy {
                        isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "$")
                    }
                }
        guard isSafe else { throw RESTErrors.parameter("callback", "the name of a function, e.g. app.received") }
        return text
    }

    /// Firebase's own bound, which its clients know: no setting.
    private static let timeoutMsMax = 15 * 60_000

    /// `500ms`, `3s` or `2min`.
    private static func milliseconds(_ text: String) throws(RESTError) -> Int {
        let digits = text.utf8.prefix(while: isDigit)
        let unit = text.utf8.dropFirst(digits.count)
        let factor: Int? =
            switch String(decoding: unit, as: UTF8.self) {
            case "ms": 1
            case "s": 1_000
            case "min": 60_000
            default: nil
            }
        guard let factor, let first = digits.first, first != UInt8(ascii: "0") else {
            throw RESTErrors.parameter("timeout", "a number of ms, s or min, e.g. 3s")
        }
        // Nine digits cannot overflow.
        guard digits.count <= 9, let count = Int(String(decoding: digits, as: UTF8.self)),
            count * factor <= timeoutMsMax
        else { throw RESTErrors.parameter("timeout", "at most 15min") }
        return count * factor
    }

    /// The values that are estimated to be written in the time that a word stands for.
    private static func writeValuesMax(_ word: String?, _ valuesPerSecond: Int) throws(RESTError) -> Int? {
        let seconds: Int
        switch word {
        case nil, "unlimited": return nil
        case "tiny": seconds = 1
        case "small": seconds = 10
        case "medium": seconds = 30
        case "large": seconds = 60
        default: throw RESTErrors.parameter("writeSizeLimit", "tiny, small, medium, large or unlimited")
        }
        let (values, overflows) = valuesPerSecond.multipliedReportingOverflow(by: seconds)
        return overflows ? .max : values
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    private static func isLetter(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")
    }
}
