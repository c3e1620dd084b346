import Foundation
import HatoModel
import HatoRPC
import HatoTesting
import Testing

/// What clients of Firebase send over sockets, and what must come back: a file of JSON for each conversation, with the
/// rules of the default database, further `databases` with theirs, and the steps. `Tests/Interop` plays the same files.
///
/// A step of a socket has its name, `a` unless said otherwise, and some of:
/// - `open`: its target; a socket opens with its first step, and its hello is checked unless `hello` is false.
/// - `send`: a message, in chunks of `chunk` characters if there is that; `frame`: a text frame as it is.
/// - `expect`: the next message, in so many `chunks`, or `"closed"`; `expectInAnyOrder`: the next ones.
/// - `expectPipelined`: the pushes and the response of each of the requests before. The pushes and the responses each
///   come in their order, and a response comes behind its pushes.
/// - `cut`: the connection ends without a word; `close`: with a close frame, to which nothing but one responds. A later
///   step opens the socket anew.
///
/// Other steps: `request` with `headers` and `body`, and the `status` (200) and JSON of the `response`; `rules`, which
/// are set; `call` with `params`, an administrator's native call; `renew`, which refreshes the token of an account;
/// `restart` and `kill` of a program.
///
/// In what is expected, `"<any>"` is any value. Everywhere, `<uid>` and `<token>` are those of an anonymous account,
/// `<uid:b>` and `<token:b>` those of another one, `<session:a>` is the id of the newest session of the socket `a`,
/// `<admin>` the administrator key, `<host>` the host of the socket, and `<786×z>` is so many characters.
@Suite(.timeLimit(.minutes(10)))
struct GatewayTranscripts {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Transcripts")

    static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []).sorted()

    @Test func thereAreTranscripts() { #expect(Self.names.count >= 20) }

    @Test(arguments: names)
    func theGatewayRespondsAsInTheTranscript(name: String) async throws {
        let text = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
        let transcript = try JSONParser.parse(text)
        let rules = try #require(transcript["rules"])
        try await GatewayStack.run(rules: rules) { stack in
            var player = TranscriptPlayer(stack)
            for (name, rules) in transcript["databases"]?.object?.members.map({ ($0.name, $0.value) }) ?? [] {
                try player.call(
                    "messages.databases.create",
                    ["database": .string(name), "rules": .string(EncodedJSON(rules).text)])
            }
            for (index, step) in (transcript["steps"]?.array ?? []).enumerated() {
                do { try player.play(step) } catch { throw DeadlineExceeded("step \(index): \(error)") }
            }
        }
    }
}
