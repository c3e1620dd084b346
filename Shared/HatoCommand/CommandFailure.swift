import ArgumentParser
public import HatoModel
import HatoRPC

/// Why a command failed: the exit code of protocol §8 and the text for stderr.
public struct CommandFailure: Error, Sendable, Hashable {
    /// Exit codes, numbered as in sysexits.h.
    public enum Code: Int32, Sendable, Hashable, CaseIterable {
        /// The server refused the call.
        case refused = 1
        case usage = 64
        case unavailable = 69
        case `internal` = 70
        case inputOutput = 74
        case notAllowed = 77
        case configuration = 78
    }

    /// The exit code.
    public var code: Code
    /// The text for stderr.
    public var message: String
    /// The server's error, if there is one.
    public var error: RPCError?

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The failure for a server's error, with its exit code.
    public init(_ error: RPCError) {
        code =
            switch error.code {
            case .unauthenticated, .permissionDenied: .notAllowed
            case .unavailable: .unavailable
            case .internalError: .internal
            default: .refused
            }
        message = error.message
        self.error = error
    }

    /// The failure for any error of a command's work.
    public init(_ error: any Error) {
        switch error {
        case let error as CommandFailure: self = error
        case let error as RPCError: self.init(error)
        case let error as ArgumentError: self.init(.usage, error.message)
        case let error as ValidationError: self.init(.usage, error.message)
        case let error as JSONError: self.init(.usage, "not valid JSON: \(error)")
        case let error as any RPCErrorConvertible: self.init(error.rpcError)
        case let error as TLSFileError: self.init(.inputOutput, "\(error)")
        default: self.init(.internal, "\(error)")
        }
    }

    /// The text for stderr: a sentence, and for a server's error its reason and data as JSON, so that scripts can read
    /// it.
    public var report: String {
        guard let error else { return message }
        return "\(message)\n\(String(decoding: error.json.encoded, as: UTF8.self))"
    }
}
