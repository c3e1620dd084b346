import FoundationEssentials
import HatoModel
public import Logging

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Writes each log entry as one line to standard error, as text for people or as JSON for collectors.
///
/// One `write` per line, so that lines of several threads are never interleaved.
public struct StandardErrorLogHandler: LogHandler {
    /// How lines are written.
    public enum Format: String, Sendable {
        case text
        case json
    }

    /// Messages below this level are dropped.
    public var logLevel: Logger.Level
    /// Metadata of every line.
    public var metadata: Logger.Metadata = [:]
    /// Adds metadata to every line; nil: nothing.
    public var metadataProvider: Logger.MetadataProvider?
    private let label: String
    private let format: Format

    public init(label: String, format: Format, level: Logger.Level) {
        self.label = label
        self.format = format
        logLevel = level
    }

    /// Metadata of every line, by name.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes a line.
    public func log(event: LogEvent) {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
        if let given = event.metadata { all.merge(given) { $1 } }
        let line = line(event.level, event.message.description, all, now: Date())
        Array(line.utf8).withUnsafeBytes { bytes in
            // A log that cannot be written must not stop the service, and there is no other place to report it.
            _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count)
        }
    }

    func line(_ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata, now: Date) -> String {
        let time = now.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let pairs = metadata.sorted { $0.key < $1.key }
        switch format {
        case .text:
            let tail = pairs.map { " \($0.key)=\($0.value)" }.joined()
            let entry = "\(time) \(level) \(label): \(message)\(tail)"
            return Self.shown(entry) + "\n"
        case .json:
            var object: JSONObject = [
                "time": .string(time), "level": .string(level.rawValue), "label": .string(label),
                "message": .string(message),
            ]
            for (key, value) in pairs where object[key] == nil { object[key] = .string("\(value)") }
            var writer = JSONWriter()
            writer.write(.object(object))
            return String(decoding: writer.bytes, as: UTF8.self) + "\n"
        }
    }

    /// Escapes control characters: text from peers must neither begin a line of its own nor control a terminal.
    private static func shown(_ entry: String) -> String {
        guard entry.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return entry }
        // By scalar: a carriage return and a line feed are one `Character`.
        return entry.unicodeScalars.map { scalar in
            switch scalar {
            case "\n": "\\n"
            case "\r": "\\r"
            case _ where scalar.properties.generalCategory == .control:
                "\\u{\(String(scalar.value, radix: 16))}"
            default: String(scalar)
            }
        }.joined()
    }
}
