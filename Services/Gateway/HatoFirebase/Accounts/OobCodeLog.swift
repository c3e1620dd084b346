import HatoModel

/// The newest codes of mails that were requested in emulator mode: the service keeps hashes only (spec auth §8).
public struct OobCodeLog: Sendable, Hashable, SecretHolder {
    /// A code, as `oobCodes` lists it.
    public struct Entry: Sendable, Hashable, SecretHolder {
        var email: String
        var newEmail: String?
        var requestType: String
        var code: String
        var link: String

        public var description: String { "OobCodeLog.Entry(\(requestType))" }

        var json: JSONValue {
            .object(
                JSONObject(present: [
                    "email": .string(email), "requestType": .string(requestType), "oobCode": .string(code),
                    "oobLink": .string(link), "newEmail": .text(newEmail),
                ]))
        }
    }

    private let entriesMax: Int
    private var entries: [Entry] = []

    /// An empty log.
    ///
    /// - Parameter entriesMax: how many codes are kept.
    public init(entriesMax: Int = AccountLimits().codesMax) { self.entriesMax = entriesMax }

    /// Does what a response asks for.
    public mutating func apply(_ effect: AccountResponse.Effect) {
        switch effect {
        case .forgetCodes: entries = []
        case .remember(let entry):
            entries.append(entry)
            if entries.count > entriesMax { entries.removeFirst() }
        }
    }

    /// The codes, the oldest first.
    var json: JSONValue { .array(entries.map(\.json)) }

    public var description: String { "OobCodeLog(\(entries.count))" }
}
