import HatoAuth
import HatoCommand
import HatoModel

/// Sends accounts to the service, a page a call, and counts what becomes of them.
struct UserUpload {
    private static let rowsMax = 1_000
    private static let bytesMax = 4 << 20

    private let client: CommandClient
    private let output: CommandOutput
    /// The parameters of every call.
    private let start: JSONObject
    private var page: [(number: Int, row: Auth.Users.Row)] = []
    private var pageBytes = 0
    /// What no two accounts of a call may have in common.
    private var names: Set<String> = []
    private(set) var counts: MovingProgress
    /// Accounts whose e-mail address gets no mail.
    private(set) var withoutMails = 0

    init(client: CommandClient, output: CommandOutput, start: JSONObject, counts: MovingProgress) {
        self.client = client
        self.output = output
        self.start = start
        self.counts = counts
    }

    /// Whether the next account must be in another call.
    func needsSending(before row: Auth.Users.Row) -> Bool {
        page.count >= Self.rowsMax || pageBytes >= Self.bytesMax || !names.isDisjoint(with: Self.names(row))
    }

    /// Passes over an account that is in the call already, with the same fields. Returns whether it is; those of
    /// earlier calls are not compared.
    func passesOver(_ row: Auth.Users.Row, number: Int) -> Bool {
        guard let uid = row.uid, names.contains("uid \(uid.lowercased())"),
            let earlier = page.first(where: { $0.row.uid == uid }), earlier.row.json == row.json
        else { return false }
        complain(number, uid, "it is the same as account \(earlier.number), and counts once")
        return true
    }

    /// - Parameter number: the position in the file, from 1.
    mutating func add(_ row: Auth.Users.Row, number: Int) {
        page.append((number, row))
        pageBytes += row.json.encoded.count
        names.formUnion(Self.names(row))
        if row.hasAddressWithoutMails { withoutMails += 1 }
    }

    /// An account that is not sent, because it cannot be read.
    mutating func refuse(_ number: Int, _ uid: String?, _ message: String) {
        counts.refused += 1
        complain(number, uid, message)
    }

    /// Sends what was added. Throws `RPCError` when the request is refused as a whole.
    ///
    /// - Parameter read: the accounts of the file up to which all have been added or refused.
    mutating func send(read: Int) async throws {
        if !page.isEmpty {
            var params = start
            params["users"] = .array(page.map(\.row.json))
            let result = try Auth.Users.Import.decodeResult(
                try await client.call(method: Auth.Users.Import.method, params: params))
            counts.imported += result.imported
            counts.refused += result.errors.count
            for error in result.errors where page.indices.contains(error.index) {
                complain(page[error.index].number, error.uid, error.message)
            }
        }
        counts.accounts = read
        page.removeAll(keepingCapacity: true)
        names.removeAll(keepingCapacity: true)
        pageBytes = 0
    }

    private func complain(_ number: Int, _ uid: String?, _ message: String) {
        output.complain("account \(number)\(uid.map { " (\($0))" } ?? ""): \(message)")
    }

    /// Folded more than the service does: a call too many is no mistake.
    private static func names(_ row: Auth.Users.Row) -> [String] {
        let named = [("uid", row.uid), ("email", row.email), ("username", row.username)]
        return named.compactMap { kind, name in name.map { "\(kind) \($0.lowercased())" } }
    }
}
