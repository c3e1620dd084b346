import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// What clients of Firebase send over sockets, and what must come back: a file of JSON for each conversation.
///
/// A step is `{"socket": "a", "send": …}`, `{"socket": "a", "expect": …}` or `{"socket": "a", "cut": true}`; a socket
/// opens with its first step, and its hello is checked. In what is expected, `"<any>"` is any value. In both, `<uid>`
/// and `<token>` are those of an anonymous account, and `<admin>` is the administrator key.
@Suite(.timeLimit(.minutes(10)))
struct GatewayTranscripts {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts")

    static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []).sorted()

    @Test func thereAreTranscripts() { #expect(Self.names.count >= 3) }

    @Test(arguments: names)
    func theGatewayRespondsAsInTheTranscript(name: String) async throws {
        let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
        let transcript = try JSONParser.parse(text)
        let rules = try #require(transcript["rules"])
        try await GatewayStack.run(rules: rules) { stack in
            let account = try stack.newToken()
            func filled(_ value: JSONValue) throws -> String {
                EncodedJSON(value).text.replacing("<uid>", with: account.uid).replacing("<token>", with: account.token)
                    .replacing("<admin>", with: ServingProgram.administratorKey)
            }
            var sockets: [String: FirebaseSocket] = [:]
            for (index, step) in (transcript["steps"]?.array ?? []).enumerated() {
                let socketName = step["socket"]?.string ?? "a"
                if sockets[socketName] == nil {
                    let socket = try FirebaseSocket(stack)
                    let hello = try socket.message()
                    #expect(hello?["d"]?["t"] == "h" && hello?["d"]?["d"]?["h"] == "localhost")
                    #expect(hello?["d"]?["d"]?["v"] == "5")
                    sockets[socketName] = socket
                }
                let socket = try #require(sockets[socketName])
                if let message = step["send"] { try socket.send(try filled(message)) }
                if step["cut"] == true {
                    socket.cut()
                    sockets[socketName] = nil
                }
                guard let expected = step["expect"] else { continue }
                let got = try socket.message() ?? "closed"
                let wanted = try JSONParser.parse(try filled(expected))
                #expect(
                    got.fits(wanted), "step \(index): \(EncodedJSON(got).text) instead of \(EncodedJSON(wanted).text)")
            }
        }
    }
}

extension JSONValue {
    /// Whether it is the expected value; `"<any>"` in that stands for any.
    fileprivate func fits(_ expected: JSONValue) -> Bool {
        switch (self, expected) {
        case (_, "<any>"): true
        case (.object(let mine), .object(let other)):
            mine.count == other.count && other.members.allSatisfy { mine[$0.name]?.fits($0.value) == true }
        case (.array(let mine), .array(let other)):
            mine.count == other.count && zip(mine, other).allSatisfy { $0.fits($1) }
        default: self == expected
        }
    }
}
