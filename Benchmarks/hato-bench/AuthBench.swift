import Foundation
import HatoModel
import HatoTesting

/// Tokens, passwords and accounts.
struct AuthBench: Sendable {
    var settings: BenchSettings

    func measure(_ table: inout Table) async throws {
        try await VerifyBench(settings: settings).measure(&table)
        table.rows += try await TestStack.run([]) { try await RefreshBench(settings: settings, stack: $0).rows() }.rows
        table.rows += try await TestStack.run([]) { try await RevocationBench(stack: $0).rows() }.rows
        try await onKeptData(&table) { try await SignInBench(settings: settings, stack: $0).rows() }
        try await onKeptData(&table) { try await TimingBench(settings: settings, stack: $0).rows() }
        let folder = DataFolder()
        defer { folder.remove() }
        table.rows += try await AccountsBench(settings: settings, folder: folder).rows().rows
    }

    /// A stack that keeps its data hashes passwords as in production; a temporary one hashes them at little cost.
    private func onKeptData(_ table: inout Table, _ body: (TestStack) async throws -> Table) async throws {
        let folder = DataFolder()
        defer { folder.remove() }
        table.rows += try await TestStack.run(folder.setting, body).rows
    }
}

/// The data of stacks that are started with the same folder.
struct DataFolder: Sendable {
    private let path =
        FileManager.default.temporaryDirectory.appendingPathComponent("hato-bench-\(UUID().uuidString)").path

    var setting: [String] { ["--data", path] }

    func remove() { try? FileManager.default.removeItem(atPath: path) }
}

/// Requests to auth.
enum AuthRequests {
    static let password = "correct horse battery"

    static func signIn(_ email: String, _ password: String) -> [UInt8] {
        ChatRequests.line(
            Auth.SignIn.method, Array("{\"email\":\"\(email)\",\"password\":\"\(password)\"}".utf8))
    }
}

/// What a response says, read without decoding all of it.
enum ResponseText {
    static let refreshToken = pattern("refreshToken")
    static let refreshTokenOfFirebase = pattern("refresh_token")
    static let idToken = pattern("idToken")
    static let after = pattern("after")

    private static func pattern(_ name: String) -> [UInt8] { Array("\"\(name)\":\"".utf8) }

    /// The text of the first member with this pattern, which has no escapes; nil if there is none.
    static func member(_ pattern: [UInt8], of line: UnsafeRawBufferPointer) -> [UInt8]? {
        var from = 0
        while let found = UnsafeRawBufferPointer(rebasing: line[from...]).place(of: UInt8(ascii: "\"")) {
            let place = from + found
            let end = place + pattern.count
            if end <= line.count, line[place..<end].elementsEqual(pattern) {
                let rest = UnsafeRawBufferPointer(rebasing: line[end...])
                return rest.place(of: UInt8(ascii: "\"")).map { Array(rest[..<$0]) }
            }
            from = place + 1
        }
        return nil
    }
}
