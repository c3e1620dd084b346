import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// The transcripts of `GatewayTranscripts` that need no more than messages of clients: over polls, and over polls with
/// a socket that takes over.
@Suite(.timeLimit(.minutes(10)))
struct PolledTranscripts {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts")

    private static let members: Set = ["socket", "send", "expect", "cut"]

    static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []).sorted()
        .filter { name in
            guard let text = try? String(contentsOf: folder.appending(path: name), encoding: .utf8),
                let transcript = try? JSONParser.parse(text), transcript["databases"] == nil
            else { return false }
            return (transcript["steps"]?.array ?? []).allSatisfy { step in
                step.object?.members.allSatisfy { members.contains($0.name) } == true
                    && !["<host>", ":b>", "×"].contains { EncodedJSON(step).text.contains($0) }
            }
        }

    @Test func thereAreTranscripts() { #expect(Self.names.count >= 3) }

    /// Clients that poll are given up soon. Their requests go to different event loops.
    private static let options = ["--poll-idle-ms-max", "5000", "--poll-ms-max", "1000", "--event-loops", "3"]

    @Test(arguments: names, [FirebaseTransport.polls, .switched])
    func theGatewayRespondsAsInTheTranscript(name: String, transport: FirebaseTransport) async throws {
        let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
        let transcript = try JSONParser.parse(text)
        let rules = try #require(transcript["rules"])
        try await GatewayStack.run(rules: rules, Self.options) { stack in
            let account = try stack.newToken()
            func filled(_ value: JSONValue) throws -> String {
                EncodedJSON(value).text.replacing("<uid>", with: account.uid).replacing("<token>", with: account.token)
                    .replacing("<admin>", with: ServingProgram.administratorKey)
            }
            var clients: [String: any FirebaseClient] = [:]
            /// Clients that a socket will take over, with the ids of their sessions.
            var polling: [String: (poller: FirebasePoller, session: String)] = [:]
            func client(_ name: String) throws -> any FirebaseClient {
                if let client = clients[name] { return client }
                let poller = transport == .socket ? nil : try FirebasePoller(stack)
                let client: any FirebaseClient = if let poller { poller } else { try FirebaseSocket(stack) }
                let hello = try client.message()
                #expect(hello?["d"]?["t"] == "h" && hello?["d"]?["d"]?["h"] == "localhost")
                #expect(hello?["d"]?["d"]?["v"] == "5")
                clients[name] = client
                if let poller, let session = hello?["d"]?["d"]?["s"]?.string, transport == .switched {
                    polling[name] = (poller, session)
                }
                return client
            }
            for (index, step) in (transcript["steps"]?.array ?? []).enumerated() {
                let name = step["socket"]?.string ?? "a"
                let client = try client(name)
                if let message = step["send"] { try client.send(try filled(message)) }
                if step["cut"] == true {
                    client.cut()
                    clients[name] = nil
                }
                guard let expected = step["expect"] else { continue }
                let got = try client.message() ?? "closed"
                let wanted = try JSONParser.parse(try filled(expected))
                #expect(
                    got.fits(wanted), "step \(index): \(EncodedJSON(got).text) instead of \(EncodedJSON(wanted).text)")
                guard let waiting = polling.removeValue(forKey: name) else { continue }
                try waiting.poller.switchToSocket(stack, session: waiting.session)
            }
        }
    }
}
